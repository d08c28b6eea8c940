"""Records of what was judged: positive and negative plans (Omni-RAG §4.2.3), and their selection.

Of each source up to three queries that were judged one way, chosen at random; a source without
any is left empty; a case without any in all sources has no such plan. A case makes an SFT sample
when it has a positive plan, and a DPO triple when it has both. The paper's training ablations are
arguments of the selection.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from osler.errors import OslerError
from osler.llm.core.base import Message
from osler.methods.omni.plan import MOST, Query, SourcePlan, render_source_plan
from osler.methods.omni.planners import SourceDescription
from osler.methods.omni.planners.single import planner_messages
from osler_lab.evaluate.datasets.splits import family_of, question_digest
from osler_lab.train.record import (
    DATA,
    DIGEST,
    DpoRecord,
    Kind,
    RecordSize,
    SftRecord,
    data_head,
    render_rows,
    size_of,
    write_card,
)
from osler_lab.train.spo.explore import TrainingCase
from osler_lab.train.spo.judge import JudgedCase, QueryVerdict


@dataclass(frozen=True, slots=True)
class PlanPair:
    """Plans P⁺ and P⁻ of one case; either may be empty, and is then no plan."""

    positive: SourcePlan
    negative: SourcePlan

    @property
    def whole(self) -> bool:
        """Whether it trains DPO: "we only retain samples where both are available"."""
        return bool(self.positive.queries and self.negative.queries)


def plan_pair(
    judged: JudgedCase,
    rng: random.Random,
    *,
    sources: Sequence[str],
    at_most: int = MOST,
) -> PlanPair:
    """The plans of one case over these sources; what was judged of others is left out.

    Same verdicts and same chance, same pair.
    """
    # Positives are drawn before negatives, so P⁺ does not depend on whether P⁻ is wanted.
    verdicts = [verdict for verdict in judged.verdicts if verdict.source in sources]
    return PlanPair(*(_sample_plan(verdicts, way, rng, at_most) for way in (True, False)))


def _sample_plan(
    verdicts: Sequence[QueryVerdict], way: bool, rng: random.Random, at_most: int
) -> SourcePlan:
    by_source: dict[str, list[QueryVerdict]] = {}
    for verdict in verdicts:
        if verdict.positive is way:
            by_source.setdefault(verdict.source, []).append(verdict)
    chosen = [
        v for group in by_source.values() for v in rng.sample(group, min(at_most, len(group)))
    ]
    return SourcePlan.of(Query.read_wire(verdict.source, verdict.wire) for verdict in chosen)


def case_random(seed: int, key: str) -> random.Random:
    """A case's own chance: it does not depend on which other cases there are."""
    # Seeded by text: hash-based seeding would differ from process to process.
    return random.Random(f"{seed}:{key}")


Learns = Literal["positive", "negative"]


class NothingToLearn(OslerError):
    """Raised where no case makes a record."""


@dataclass(frozen=True)
class RecordRecipe:
    """Settings by which judged cases become records. The defaults are the paper's."""

    offers: tuple[SourceDescription, ...]
    """The sources of the prompt, in its order."""
    seed: int = 0
    at_most: int = MOST
    learns: Learns = "positive"
    """Plan that SFT learns: the negative one is the row "+ SFT (P⁻)" of Table 10."""
    ratio: float = 1.0
    """Share of the cases that are used (Fig. 5); a smaller share is a part of a larger."""
    without_tasks: tuple[str, ...] = ()
    """Tasks that are left out (Fig. 4), a data set in all its splits."""
    without_sources: tuple[str, ...] = ()
    """Sources that stand neither in prompts nor in plans (Table 8)."""
    longest: int = 4096
    """Tokens of prompt and plan together, as they are estimated; longer ones are left out."""

    @property
    def offered(self) -> tuple[SourceDescription, ...]:
        return tuple(offer for offer in self.offers if offer.name not in self.without_sources)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(offer.name for offer in self.offered)

    def uses_case(self, case: TrainingCase) -> bool:
        """Whether the case is one of those that this recipe takes."""
        # A threshold on a hash: the cases of ratio 0.25 are among those of 0.5 (Fig. 5).
        digest = hashlib.sha256(f"ratio {self.seed} {case.key}".encode()).digest()
        drawn = int.from_bytes(digest[:8]) / 2**64 < self.ratio
        left_out = {*self.without_tasks, *map(family_of, self.without_tasks)}
        task = case.sample.task
        return drawn and left_out.isdisjoint((task, family_of(task)))

    def make_pair(self, judged: JudgedCase) -> PlanPair:
        return plan_pair(
            judged,
            case_random(self.seed, judged.key),
            sources=self.names,
            at_most=self.at_most,
        )

    def planner_prompt(self, case: TrainingCase) -> list[Message]:
        """Messages of the planner, to the letter as it will be asked (`omni.planners.trained`)."""
        return planner_messages(case.question, self.offered, self.at_most)


@dataclass
class RecordTally:
    """The records, and what became of the cases that make none."""

    cases: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason to count."""
    first: dict[str, str] = field(default_factory=dict)
    """Reason to the first case of it."""
    size: RecordSize = field(default_factory=RecordSize)
    tasks: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    queries: Counter[str] = field(default_factory=Counter)
    """Queries by source, in the plans that are learnt."""

    def drop_case(self, why: str, case: TrainingCase) -> None:
        self.left_out[why] += 1
        self.first.setdefault(why, case.key)

    @property
    def summary(self) -> str:
        return "; ".join(
            f"{count} × {why} (first {self.first[why]})" for why, count in self.left_out.items()
        )


NO_POSITIVE, NO_NEGATIVE = "no query was judged positive", "no query was judged negative"
TOO_LONG = "longer than the limit"


def sft_records(
    recipe: RecordRecipe, judged: Iterable[JudgedCase], tally: RecordTally
) -> Iterator[SftRecord]:
    """Makes records of Eq. 2: the plan P⁺ after its prompt. `tally` is filled on the way.

    Raises `NothingToLearn` at the end where there was no record.
    """
    # §4.2.3: "we only retain samples" that have the plan which is learnt.
    lacks = NO_POSITIVE if recipe.learns == "positive" else NO_NEGATIVE
    for one in _used_cases(recipe, judged, tally):
        pair = recipe.make_pair(one)
        plan = pair.positive if recipe.learns == "positive" else pair.negative
        if not plan.queries:
            tally.drop_case(lacks, one.case)
            continue
        meta = {**_case_meta(one.case), "learns": recipe.learns}
        record = SftRecord(
            id=one.key,
            messages=tuple(recipe.planner_prompt(one.case)),
            completion=render_source_plan(plan, recipe.names),
            meta=meta,
        )
        if _fits_recipe(recipe, tally, one.case, size_of(record.messages, *record.replies)):
            tally.queries.update(query.source for query in plan.queries)
            yield record
    _require_some(tally, "SFT")


def dpo_records(
    recipe: RecordRecipe, judged: Iterable[JudgedCase], tally: RecordTally
) -> Iterator[DpoRecord]:
    """Makes records of Eq. 3-4: P⁺ preferred to P⁻. `tally` is filled on the way.

    Raises `NothingToLearn` at the end where there was no record.
    """
    for one in _used_cases(recipe, judged, tally):
        pair = recipe.make_pair(one)
        # §4.2.3: a DPO triple needs both P⁺ and P⁻.
        if not pair.whole:
            tally.drop_case(NO_NEGATIVE if pair.positive.queries else NO_POSITIVE, one.case)
            continue
        plans = [render_source_plan(plan, recipe.names) for plan in (pair.positive, pair.negative)]
        record = DpoRecord(
            id=one.key,
            messages=tuple(recipe.planner_prompt(one.case)),
            chosen=plans[0],
            rejected=plans[1],
            meta=_case_meta(one.case),
        )
        if _fits_recipe(recipe, tally, one.case, size_of(record.messages, *record.replies)):
            tally.queries.update(query.source for query in pair.positive.queries)
            yield record
    _require_some(tally, "DPO")


def _case_meta(case: TrainingCase) -> dict[str, str]:
    """Task and digest of the question: by the digest, a model is not measured by what it learnt."""
    return {"task": case.sample.task, DIGEST: question_digest(case.question.text)}


def _used_cases(
    recipe: RecordRecipe, judged: Iterable[JudgedCase], tally: RecordTally
) -> Iterator[JudgedCase]:
    for one in judged:
        if recipe.uses_case(one.case):
            tally.cases += 1
            yield one


def _fits_recipe(
    recipe: RecordRecipe, tally: RecordTally, case: TrainingCase, size: RecordSize
) -> bool:
    if size.longest > recipe.longest:
        tally.drop_case(TOO_LONG, case)
        return False
    tally.size += size
    tally.tasks[case.sample.task] += 1
    tally.languages[case.question.language] += 1
    return True


def _require_some(tally: RecordTally, what: str) -> None:
    if tally.size.records:
        return
    if not tally.cases:
        raise NothingToLearn(
            f"{what}: no case is left",
            fix="judge more questions, leave out fewer tasks, or take a larger ratio",
        )
    fixes = {
        NO_POSITIVE: "explore other queries or sources, or judge otherwise",
        NO_NEGATIVE: "train SFT alone, or explore queries that may fail",
        TOO_LONG: "raise --longest",
    }
    # The most frequent reason decides which fix is proposed.
    worst = tally.left_out.most_common(1)[0][0]
    raise NothingToLearn(f"{what}: none of {tally.cases} cases: {tally.summary}", fix=fixes[worst])


def recipe_facts(
    recipe: RecordRecipe,
    tally: RecordTally,
    explored: Mapping[str, Any],
    judge: str,
    ablation: str = "",
) -> dict[str, Any]:
    """Facts for the card: how the records were made."""
    return {
        "explorer": explored["explorer"],
        "knowledge base": explored["snapshot"],
        "judge": judge,
        "sources": list(recipe.names),
        "queries a source, at most": recipe.at_most,
        "learns": recipe.learns,
        "ratio": recipe.ratio,
        "seed": recipe.seed,
        "ablation": ablation,
        "left out": dict(tally.left_out),
        "queries by source": dict(tally.queries),
    }


_LINES: dict[Kind, str] = {
    "sft": '{"id", "messages": [{"role", "content"}, …], "completion", "meta"}',
    "dpo": '{"id", "messages": [{"role", "content"}, …], "chosen", "rejected", "meta"}',
}


def write_record_card(
    folder: Path, kind: Kind, tally: RecordTally, facts: Mapping[str, Any]
) -> None:
    """Writes the card of records beside them; `facts`: how they were made (`recipe_facts`).

    The licence is "other": the questions are those of the tasks, whose own terms hold.
    """
    size = tally.size
    head = {
        "license": "other",
        "language": sorted(tally.languages),
        "task_categories": ["text-generation"],
        "tags": ["medical", "retrieval", "source-planning", kind],
        **data_head(size.records, DATA),
    }
    write_card(
        folder,
        head,
        f"Source plans to learn ({kind.upper()})",
        f"{size.records:,} records, each `{_LINES[kind]}`. About {size.prompt:,} tokens of prompts"
        f" and {size.reply:,} of replies; the longest record has about {size.longest:,}. The"
        " questions are those of the tasks named here, whose own terms hold.",
        render_rows(sorted(tally.tasks.items())),
        "## How it was made",
        render_rows(facts.items()),
    )

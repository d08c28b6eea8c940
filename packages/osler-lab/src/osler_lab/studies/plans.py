"""Plans of many questions: made once and kept, what they are like, and what each source is worth.

The last is Omni-RAG Table 6.

Each question is planned and searched once. The reader then reads what was found, what was
found without each source, and nothing, so that all rows differ in the documents alone.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from osler.build import Parts, make_run
from osler.build.models import load_encoder
from osler.build.planning import planner_name
from osler.errors import BadRun, translate_os_errors
from osler.kb.base import Progress
from osler.kb.encoders.base import Encoder
from osler.llm.core.cache import write_whole
from osler.methods.omni.dossier import SavedPlan, read_saved_plan, save_plan
from osler.methods.omni.plan import Query, SourcePlan
from osler.methods.omni.planners.single import GivenPlan
from osler.methods.omni.retriever import PlannedRetriever
from osler.methods.omni.solver import OmniRag
from osler.questions import LabeledQuestion
from osler.retrieve import LookupResult
from osler.runs.answering import open_planning
from osler.settings import OmniRagSettings, Settings
from osler.text import is_cjk, make_slug
from osler.trace import Asked, BudgetExceeded, Event, Run, Solver
from osler.types import Question, Solution
from osler_lab.evaluate.datasets.splits import question_digest
from osler_lab.evaluate.intervals import Estimate, difference, proportion, widen_equal
from osler_lab.evaluate.metrics import choice as several


def queries_per_source(plans: Sequence[SourcePlan], sources: Iterable[str]) -> dict[str, float]:
    """Mean number of queries (Fig. 7). Raises `ValueError` without plans."""
    if not plans:
        raise ValueError("no plans, no mean")
    return {source: fmean(len(plan.of_source(source)) for plan in plans) for source in sources}


def words_per_query(plans: Iterable[SourcePlan], sources: Iterable[str]) -> dict[str, float | None]:
    """Mean words of a query (Table 12), a graph's term with it; `None` if absent.

    A Chinese character counts as a word.
    """
    made = list(plans)
    return {
        source: _mean_or_none(
            [_count_words(query.wire) for plan in made for query in plan.of_source(source)]
        )
        for source in sources
    }


def query_diversity(texts: Sequence[str], encoder: Encoder) -> float | None:
    """Mean cosine distance of all pairs (Eq. 5), in [0, 2]; `None` for fewer than two texts.

    Raises `ValueError` for a text without direction.
    """
    if len(texts) < 2:
        return None
    return several.query_diversity(encoder.encode(list(texts), kind="query").tolist())


def diversity_per_plan(
    plans: Iterable[SourcePlan], sources: Iterable[str], encoder: Encoder
) -> dict[str, float | None]:
    """Mean over the plans with two queries or more of a source (Table 13)."""
    made = list(plans)
    means = {}
    for source in sources:
        of = [[query.wire for query in plan.of_source(source)] for plan in made]
        means[source] = _mean_diversity(of, encoder)
    return means


def diversity_by_count(
    plans: Iterable[SourcePlan], sources: Iterable[str], encoder: Encoder
) -> dict[str, dict[int, float | None]]:
    """Mean diversity of the first 2, 3, … queries of each source over the plans (Fig. 6).

    A count that no plan reaches is left out, so the last ones are over fewer plans.
    """
    made = list(plans)
    means: dict[str, dict[int, float | None]] = {}
    for source in sources:
        lists = [[query.wire for query in plan.of_source(source)] for plan in made]
        means[source] = {
            count: _mean_diversity(
                [texts[:count] for texts in lists if len(texts) >= count], encoder
            )
            for count in range(2, max(map(len, lists), default=0) + 1)
        }
    return means


def _mean_diversity(lists: Iterable[Sequence[str]], encoder: Encoder) -> float | None:
    values = [query_diversity(texts, encoder) for texts in lists]
    return _mean_or_none([value for value in values if value is not None])


def relative_drop(accuracy: float, whole: float) -> float | None:
    """(accuracy - whole) / whole (Table 6); `None` where the whole is 0."""
    return several.relative_drop(accuracy, whole) if whole else None


@dataclass(frozen=True, slots=True)
class StageCost:
    """Cost of one stage of a run."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    """Seconds spent in model calls."""


def cost_per_stage(events: Iterable[Event]) -> Mapping[str, StageCost]:
    """Model calls by role: the planner's, the judge's and the reader's (Table 11)."""
    stages: dict[str, StageCost] = {}
    for event in events:
        if isinstance(event, Asked):
            so_far = stages.get(event.role, StageCost())
            stages[event.role] = StageCost(
                so_far.calls + event.usage.calls,
                so_far.tokens + event.usage.tokens,
                so_far.seconds + event.usage.seconds,
            )
    return stages


def _count_words(text: str) -> int:
    # The graph's wire form "term , query" has a comma of its own, which is no word.
    spaced = "".join(f" {char} " if is_cjk(char) else char for char in text)
    return sum(any(map(str.isalnum, word)) for word in spaced.split())


def _mean_or_none(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


ALL, NONE = "all", "none"


@dataclass(frozen=True, slots=True)
class SourceAblation:
    """A row of Table 6."""

    sources: str
    """"all", "none", or the one that was left out."""
    accuracy: Estimate
    drop: float | None
    """Relative to all; `None` for all itself, and where all is 0."""
    change: Estimate | None
    """Accuracy minus that of all, paired."""


@dataclass(frozen=True, slots=True)
class PlanStudyReport:
    rows: tuple[SourceAblation, ...]
    queries: dict[str, float]
    """Mean queries of a plan, by source (Fig. 7)."""
    words: dict[str, float | None]
    """Mean words of a query (Table 12)."""
    diversity: dict[str, float | None]
    """Mean of Eq. 5 over the plans (Table 13)."""
    costs: dict[str, StageCost]
    """Per question, by role, of a run with all sources."""
    seconds: dict[str, float]
    """Wall clock per question, by stage (Table 11)."""
    planner: str
    n: int


@dataclass
class _PlanOutcomes:
    plans: list[SourcePlan] = field(default_factory=list)
    right: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    events: list[Event] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))


async def study_plans(
    settings: Settings, posed: Sequence[LabeledQuestion], progress: Progress | None = None
) -> PlanStudyReport:
    """Plans, searches and reads every question, as often as there are sources, and twice more.

    Raises `BadConfig` where the strategy is not Omni-RAG.
    """
    solver, parts = await open_planning(settings)
    kept = _PlanOutcomes()
    for number, one in enumerate(posed, 1):
        await _study_question(settings, solver, parts, one, kept)
        if progress:
            progress("questions", number, len(posed))
    return PlanStudyReport(
        _ablation_rows(kept),
        queries_per_source(kept.plans, parts.sources),
        words_per_query(kept.plans, parts.sources),
        diversity_per_plan(kept.plans, parts.sources, load_encoder(settings)),
        {role: _mean_cost(cost, len(posed)) for role, cost in cost_per_stage(kept.events).items()},
        {stage: seconds / len(posed) for stage, seconds in kept.seconds.items()},
        planner_name(settings, parts),
        len(posed),
    )


async def _study_question(
    settings: Settings,
    solver: OmniRag,
    parts: Parts,
    one: LabeledQuestion,
    kept: _PlanOutcomes,
) -> None:
    run, sources = _new_run(settings, parts), parts.sources
    plan, found = SourcePlan(), {}
    began = time.perf_counter()
    try:
        proposal = await solver.propose_plan(one.question, run)
        kept.seconds["plan"] += time.perf_counter() - began
        began = time.perf_counter()
        plan, found = proposal.plan, await solver.search_plan(proposal, run)
        kept.seconds["search"] += time.perf_counter() - began
    except BudgetExceeded:
        kept.seconds["plan"] += time.perf_counter() - began
    kept.plans.append(plan)
    kept.events += run.events
    whole = save_plan(plan, sources, found, question=one.question)
    began, reading = time.perf_counter(), _new_run(settings, parts)
    kept.right[ALL].append(await _reads_correctly(solver, one, whole, reading))
    kept.seconds["read"] += time.perf_counter() - began
    kept.events += reading.events
    for source in sources:
        left = whole.without_source(source)
        again = _new_run(settings, parts)
        kept.right[source].append(await _reads_correctly(solver, one, left, again))
    alone = await solver.answer_from(one.question, {}, _new_run(settings, parts), alone=True)
    kept.right[NONE].append(alone.answer.option == one.gold)


def _new_run(settings: Settings, parts: Parts) -> Run:
    """Every reading has the same chance and the same bounds."""
    return make_run(settings, parts.names, "plans")


async def _reads_correctly(
    solver: OmniRag, one: LabeledQuestion, held: SavedPlan, run: Run
) -> bool:
    alone = not held.plan_reading.plan.queries
    solution = await solver.answer_from(one.question, held.results_by_query, run, alone=alone)
    return solution.answer.option == one.gold


def _ablation_rows(kept: _PlanOutcomes) -> tuple[SourceAblation, ...]:
    whole = kept.right[ALL]
    accuracy = sum(whole) / len(whole)
    rows = [SourceAblation(ALL, proportion(sum(whole), len(whole)), None, None)]
    for name, right in kept.right.items():
        if name != ALL:
            share = proportion(sum(right), len(right))
            change = widen_equal(difference(list(map(float, whole)), list(map(float, right))))
            rows.append(SourceAblation(name, share, relative_drop(share.value, accuracy), change))
    return tuple(rows)


def _mean_cost(cost: StageCost, n: int) -> StageCost:
    return StageCost(round(cost.calls / n), round(cost.tokens / n), cost.seconds / n)


# Settings of the strategy that concern the reader alone.
_READING = ("per_source", "order")


@dataclass(frozen=True)
class PlanShelf:
    """Stored plans of one planner over one knowledge base."""

    folder: Path
    planner: str
    snapshot: str
    sources: tuple[str, ...]

    def path_of(self, question: Question) -> Path:
        # The options belong to it: a planner sees them.
        return self.folder / f"{question_digest(' '.join((question.text, *question.options)))}.json"

    def store(
        self, question: Question, plan: SourcePlan, found: Mapping[Query, LookupResult]
    ) -> None:
        """Raises `BadRun` where it cannot be written."""
        saved = save_plan(
            plan,
            self.sources,
            found,
            question=question,
            planner=self.planner,
            snapshot=self.snapshot,
        )
        with translate_os_errors(f"{self.folder} cannot be written", BadRun):
            self.folder.mkdir(parents=True, exist_ok=True)
            with write_whole(self.path_of(question)) as draft:
                draft.write_text(saved.document, encoding="utf-8")


def open_shelf(folder: Path, settings: Settings, parts: Parts) -> PlanShelf:
    """The shelf of the planner that the settings name."""
    strategy = settings.strategy.model_dump(mode="json", exclude=set(_READING))
    retrieve = settings.retrieve.model_dump(mode="json")
    models = {str(role): name for role, name in parts.names.items() if role != "reader"}
    facts = (strategy, retrieve, models, parts.sources, parts.snapshot, settings.sampling.seed)
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
    planner = planner_name(settings, parts)
    place = folder / f"{make_slug(planner)[:60]}.{digest[:8]}"
    return PlanShelf(place, planner, parts.snapshot, parts.sources)


@dataclass(frozen=True)
class PlanOnce:
    """Omni-RAG that reads the stored plan of a question, or makes one and stores it."""

    omni: OmniRag
    shelf: PlanShelf

    async def solve(self, question: Question, run: Run) -> Solution:
        path = self.shelf.path_of(question)
        if path.is_file():
            given = replace(self.omni, planner=GivenPlan(read_saved_plan(path)))
            return await given.solve(question, run)
        noting = _NotingRetriever(self.omni.retriever.sources, self.omni.retriever.k)
        solution = await replace(self.omni, retriever=noting).solve(question, run)
        for plan, found in noting.searched:
            # A source that was down may be there for the next reader, so this is no result.
            if not any(result.failed for result in found.values()):
                self.shelf.store(question, plan, found)
        return solution


@dataclass(frozen=True)
class _NotingRetriever(PlannedRetriever):
    """Notes the plan that it searched, and what was found."""

    searched: list[tuple[SourcePlan, dict[Query, LookupResult]]] = field(default_factory=list)

    async def gather_results(
        self, plan: SourcePlan, run: Run, *, known: Mapping[Query, LookupResult] = {}
    ) -> dict[Query, LookupResult]:
        found = await super().gather_results(plan, run, known=known)
        self.searched[:] = [(plan, found)]
        return found


def plan_once(solver: Solver, settings: Settings, parts: Parts, folder: Path) -> Solver:
    """The solver; Omni-RAG's with its plans stored below the folder."""
    if isinstance(settings.strategy, OmniRagSettings) and isinstance(solver, OmniRag):
        return PlanOnce(solver, open_shelf(folder, settings, parts))
    return solver

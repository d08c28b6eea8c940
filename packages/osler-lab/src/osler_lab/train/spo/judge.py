"""Planning judging (Omni-RAG §4.2.2): verdicts on which queries support the gold answer.

The judge reads the better half of what a query found (§5.1.2), in units:

| Unit | Shown at once | A query is positive when |
|---|---|---|
| set | what a query found, as in the paper | its set supports the answer |
| list | up to ten documents, numbered | one of its documents does |

Whatever the unit, nothing is judged twice. By list those documents come first that decide most
queries, and a query that is positive needs no further one. Then the agreement of a judge with
another, or with people (App. A.2, Table 9), and other signals than a model's (App. D.3):

| Signal | A query is positive when |
|---|---|
| `GoldDocuments` | the better half of what it found holds a gold document; ours |
| `ReaderGain` | the reader answers better with it than without (Trainable Planning) |
| `RerankSignal` | what it found scores over a threshold against the question (RaFe Planning) |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from pathlib import Path
from typing import Literal, Protocol

from osler.errors import BadRun, OslerError
from osler.llm.core.ask import Speaker
from osler.llm.reading.verdicts import (
    numbers_grammar,
    read_numbers,
    read_verdict,
    verdict_grammar,
)
from osler.methods.omni.solver import Reader
from osler.prompts import RenderedPrompt, render_question_prompt
from osler.trace import Run
from osler.types import Answer, Hit, Passage, Relevance, Usage
from osler_lab.evaluate.datasets.base import csv_records, required_cells, yes_or_no
from osler_lab.evaluate.judges import ask_judge, unread_verdicts
from osler_lab.evaluate.metrics.choice import Agreement, agreement
from osler_lab.evaluate.metrics.overlap import rouge_l
from osler_lab.train.spo.explore import ExploredCase, SearchedQuery, TrainingCase

Unit = Literal["set", "list"]
LIST = 10
"""Documents of a list."""

Said = bool | None
"""Whether it supports the gold answer; `None` = it cannot be told."""
Decide = Callable[[tuple[str, ...]], Awaitable[Said]]
"""Decides on these passages together."""
DecideEach = Callable[[tuple[str, ...]], Awaitable[Sequence[Said]]]
"""Decides on each of these passages, in order."""


def better_half(found: Sequence[str]) -> tuple[str, ...]:
    """The better half, rounded up: the latter is left out while judging (§5.1.2)."""
    # §5.1.2 leaves out "the latter half"; of an odd number the middle one stays.
    return tuple(found[: (len(found) + 1) // 2])


async def by_set(queries: Sequence[SearchedQuery], decide: Decide) -> tuple[list[Said], int]:
    """Judges each query by all it found; also returns how often the judge was asked."""
    # By set, not by order: the verdict is about the documents together.
    known: dict[frozenset[str], Said] = {}
    for query in queries:
        read = better_half(query.found)
        if frozenset(read) not in known:
            known[frozenset(read)] = await decide(read) if read else False
    # An empty search is negative without a call.
    asked = len(known) - (frozenset() in known)
    return [known[frozenset(better_half(query.found))] for query in queries], asked


async def by_list(
    queries: Sequence[SearchedQuery], decide: DecideEach, size: int = LIST
) -> tuple[list[Said], int]:
    """Judges documents, `size` at a time, while they may still decide a query.

    A query is positive when one of its documents is, negative when none is, and undecided
    (`None`) when none is and one of them could not be read.
    """
    read = [better_half(query.found) for query in queries]
    known: dict[str, Said] = {}
    asked = 0
    while True:
        # A query with one supporting document is decided; its other documents need no call.
        undecided = [found for found in read if not any(known.get(id) for id in found)]
        shown = _most_telling(undecided, known, size)
        if not shown:
            return [_any_yes([known.get(id, False) for id in found]) for found in read], asked
        known.update(zip(shown, await decide(shown), strict=True))
        asked += 1


def _most_telling(
    read: Iterable[Sequence[str]], known: Mapping[str, Said], size: int
) -> tuple[str, ...]:
    """Documents that most undecided queries found; of equals those that stand highest."""
    lists = list(read)
    # Greedy set cover: each call decides as many queries as one list can.
    counts = Counter(id for found in lists for id in found if id not in known)
    place = {id: min(f.index(id) for f in lists if id in f) for id in counts}
    return tuple(sorted(counts, key=lambda id: (-counts[id], place[id], id))[:size])


def _any_yes(said: Sequence[Said]) -> Said:
    if any(said):
        return True
    return None if None in said else False


class GoldMissing(OslerError):
    """Raised for a case that lacks what this judge compares with."""


def require_gold(case: TrainingCase) -> str:
    """Returns the gold answer in words. Raises `GoldMissing` for a case without."""
    if not case.gold:
        raise GoldMissing(
            f"{case.key} has no gold answer", fix="judge by documents, or leave it out"
        )
    return case.gold


@dataclass(frozen=True, slots=True)
class QueryVerdict:
    """Verdict of a judge on one query."""

    source: str
    wire: str
    positive: bool | None
    """`None` where the judge could not be read: then the query stands in no plan."""


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """The verdicts of one judge on one case."""

    case: TrainingCase
    verdicts: tuple[QueryVerdict, ...]
    """Verdicts, one per query, in the order of the exploration."""
    usage: Usage = field(default_factory=Usage)
    asked: int = 0
    """Times that the judge was asked, whoever it is."""
    unread: tuple[str, ...] = ()
    """Of each verdict that could not be read what was expected, and the reply."""

    @property
    def key(self) -> str:
        return self.case.key


class JudgingSignal(Protocol):
    """Source of verdicts: a model, gold documents, a reader's gain, a reranker."""

    @property
    def name(self) -> str:
        """Method and model: verdicts of two names do not mix."""

    async def judge(self, explored: ExploredCase, run: Run) -> tuple[list[QueryVerdict], int]:
        """A verdict a query, in order, and how often it was asked.

        Raises `GoldMissing` for a case without what it compares with.
        """


async def judge_case(signal: JudgingSignal, explored: ExploredCase, seed: int = 0) -> JudgedCase:
    """The verdicts, with what they cost."""
    run = Run(f"judge.{explored.key}", seed)
    verdicts, asked = await signal.judge(explored, run)
    return JudgedCase(explored.case, tuple(verdicts), run.usage, asked, unread_verdicts(run))


@dataclass(frozen=True)
class LLMJudge:
    """A model with the prompt E.4; the paper's is Qwen2.5-72B-Instruct-AWQ, by set."""

    speaker: Speaker
    unit: Unit = "list"

    @property
    def name(self) -> str:
        return f"model {self.speaker.model.name} by {self.unit}"

    async def judge(self, explored: ExploredCase, run: Run) -> tuple[list[QueryVerdict], int]:
        if self.unit == "list":
            said, asked = await by_list(explored.queries, partial(self._judge_each, explored, run))
        else:
            said, asked = await by_set(
                explored.queries, partial(self._judge_together, explored, run)
            )
        return verdicts_of(explored.queries, said), asked

    async def _judge_together(
        self, explored: ExploredCase, run: Run, read: tuple[str, ...]
    ) -> Said:
        grammar = verdict_grammar(reason=self.speaker.reasoning)
        return await ask_judge(
            self.speaker,
            judging_prompt(explored, read),
            lambda reply: read_verdict(reply.text),
            run,
            grammar=grammar,
        )

    async def _judge_each(
        self, explored: ExploredCase, run: Run, read: tuple[str, ...]
    ) -> Sequence[Said]:
        said = await ask_judge(
            self.speaker,
            listing_prompt(explored, read),
            lambda reply: read_numbers(reply.text, len(read)),
            run,
            grammar=numbers_grammar(len(read), self.speaker.reasoning),
        )
        return [None] * len(read) if said is None else said


def verdicts_of(queries: Sequence[SearchedQuery], said: Sequence[Said]) -> list[QueryVerdict]:
    pairs = zip(queries, said, strict=True)
    return [QueryVerdict(query.source, query.wire, positive) for query, positive in pairs]


def judging_prompt(explored: ExploredCase, read: Sequence[str]) -> RenderedPrompt:
    """Renders prompt E.4 over these passages. Raises `GoldMissing`.

    The documents stand last but for one line, so all prompts of a case begin alike, and an
    engine with a prefix cache reads instruction, question and gold answer once.
    """
    return _render_judging("spo/judge", explored, read)


def listing_prompt(explored: ExploredCase, read: Sequence[str]) -> RenderedPrompt:
    """Renders the question which of the passages support the answer. Raises `GoldMissing`."""
    return _render_judging("spo/judge_list", explored, read)


def _render_judging(name: str, explored: ExploredCase, read: Sequence[str]) -> RenderedPrompt:
    gold, documents = require_gold(explored.case), [explored.passages[id] for id in read]
    return render_question_prompt(name, explored.case.question, gold=gold, documents=documents)


def most_calls(explored: ExploredCase, unit: Unit) -> int:
    """Calls of a judge by `unit` at most: no query is decided early."""
    read = [better_half(query.found) for query in explored.queries]
    if unit == "set":
        # Queries that found the same documents, in whatever order, are judged once.
        return len({frozenset(found) for found in read if found})
    return ceil(len({id for found in read for id in found}) / LIST)


Verdicts = dict[tuple[str, str, str], bool]
"""Case, source and query → positive."""


def read_verdicts(judged: Iterable[JudgedCase]) -> Verdicts:
    """Collects the verdicts that could be read."""
    return {
        (one.key, verdict.source, verdict.wire): verdict.positive
        for one in judged
        for verdict in one.verdicts
        if verdict.positive is not None
    }


def read_people(path: Path) -> Verdicts:
    """Reads a CSV with case, source, query and verdict. Raises `MalformedSource`."""
    verdicts: Verdicts = {}
    for row in csv_records(path):
        case, source, query, word = required_cells(path, row, "case", "source", "query", "verdict")
        verdicts[case, source, query] = yes_or_no(path, row, word)
    return verdicts


def compare_judges(judge: Verdicts, reference: Verdicts) -> Agreement:
    """Compares over what both judged. Raises `BadRun` where that is nothing."""
    # Sorted: agreement does not depend on the order, but its failures are easier to read.
    both = sorted(judge.keys() & reference.keys())
    if not both:
        raise BadRun("no query was judged by both", fix="they must judge the same exploration")
    return agreement([judge[key] for key in both], [reference[key] for key in both])


THRESHOLD = 2.3
"""RaFe's, on MedCPT's cross-encoder: "by trying on the development set" (App. D.3)."""


def document_of(passage: str) -> str:
    """The document of a passage's id ("source:document#chunk")."""
    return passage.partition(":")[2].rpartition("#")[0]


@dataclass(frozen=True)
class GoldDocuments:
    """Judges by the known ids of gold documents."""

    name: str = "gold documents"

    async def judge(self, explored: ExploredCase, run: Run) -> tuple[list[QueryVerdict], int]:
        gold = frozenset(explored.case.documents)
        if not gold:
            raise GoldMissing(
                f"{explored.key} names no gold documents", fix="judge with --judge model instead"
            )
        read = [map(document_of, better_half(query.found)) for query in explored.queries]
        said = [not gold.isdisjoint(documents) for documents in read]
        return verdicts_of(explored.queries, said), len(said)


@dataclass(frozen=True)
class ReaderGain:
    """Judges by a reader's gain from a query's documents: accuracy, or ROUGE-L if open-ended."""

    reader: Reader

    @property
    def name(self) -> str:
        return f"improvement of {self.reader.model.name}"

    async def judge(self, explored: ExploredCase, run: Run) -> tuple[list[QueryVerdict], int]:
        case = explored.case
        # App. D.3: the reader without documents is the baseline of every gain.
        alone = answer_quality(case, await self.reader.read(case.question, (), run, alone=True))
        known: dict[frozenset[str], float] = {}
        for query in explored.queries:
            read = better_half(query.found)
            if read and frozenset(read) not in known:
                hits = [_as_hit(explored, query, n, id) for n, id in enumerate(read, 1)]
                answer = await self.reader.read(case.question, hits, run)
                known[frozenset(read)] = answer_quality(case, answer) - alone
        gains = [known.get(frozenset(better_half(query.found)), 0.0) for query in explored.queries]
        return verdicts_of(explored.queries, [gain > 0 for gain in gains]), len(known) + 1


def answer_quality(case: TrainingCase, answer: Answer) -> float:
    """Quality from 0 to 1: whether the option is right, or ROUGE-L. Raises `GoldMissing`."""
    gold = case.sample.gold
    if gold.letters:
        return float(answer.option in gold.letters)
    require_gold(case)
    return rouge_l(answer.text, gold.texts).f1


def _as_hit(explored: ExploredCase, query: SearchedQuery, rank: int, id: str) -> Hit:
    """The passage as it was shown; its heading is a part of its text."""
    passage = Passage(id, explored.passages[id], query.source, document_of(id))
    return Hit(passage, 0.0, rank, query.wire, query.source)


@dataclass(frozen=True)
class RerankSignal:
    """The best rerank score of what a query found, against the question itself."""

    relevance: Relevance
    model: str
    """Its identity."""
    least: float = THRESHOLD
    """Threshold on the scale of the model's logits."""

    @property
    def name(self) -> str:
        return f"rerank {self.model} over {self.least:g}"

    async def judge(self, explored: ExploredCase, run: Run) -> tuple[list[QueryVerdict], int]:
        read = [better_half(query.found) for query in explored.queries]
        # Every document that is read, once.
        texts = {id: explored.passages[id] for found in read for id in found}
        asked = explored.case.question.with_options
        scores = await self.relevance.relevance(asked, list(texts.values()))
        scored = dict(zip(texts, scores, strict=True))
        said = [any(scored[id] > self.least for id in found) for found in read]
        return verdicts_of(explored.queries, said), len(scored)

"""Planning exploration (Omni-RAG §4.2.1): diverse queries a source, and what each finds.

A case is a question to train on with its gold answer and gold documents; a file of cases is a
question file (`osler.questions`). Six queries a source, the paper's number (App. A.1), are proposed
by an expert model with the prompt E.3.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from osler.errors import BadQuestion, MalformedOutput, SourceUnavailable
from osler.kb.store.passages import indexed_text
from osler.llm.core.ask import Speaker
from osler.methods.omni.plan import Query, SourcePlan, expect_source_plan, source_plan_grammar
from osler.methods.omni.planners import SourceDescription, source_variables
from osler.methods.omni.retriever import PlannedRetriever
from osler.prompts import render_question_prompt
from osler.questions import LabeledQuestion, read_labeled
from osler.retrieve import LookupResult
from osler.text import split_words
from osler.trace import Noted, Run
from osler.types import Question, Usage
from osler_lab.evaluate.record import Gold, Sample

Part = Literal["train", "held-out", "all"]
PARTS: tuple[Part, ...] = get_args(Part)
HELD_OUT = 0.2
"""Share of the questions that no training sees."""


@dataclass(frozen=True, slots=True)
class TrainingCase:
    """A sample, and where its answer stands."""

    sample: Sample
    documents: tuple[str, ...] = ()
    """Ids of the documents that hold the answer, as the knowledge base has them; empty = unknown.
    """

    @property
    def question(self) -> Question:
        return self.sample.question

    @property
    def key(self) -> str:
        """Key of the case among those of all tasks."""
        return f"{self.sample.task}/{self.sample.id}"

    @property
    def gold(self) -> str:
        """The gold answer in words, as a judge reads it; empty where it is not known."""
        question, gold = self.question, self.sample.gold
        # Letter and text: a judge is to find the option's words in the documents.
        named = [f"{letter}. {question.option_text(letter)}" for letter in gold.letters]
        return "\n".join(named or gold.texts[:1])


def part_of(question: Question, *, seed: int = 0, held_out: float = HELD_OUT) -> Part:
    """Assigns a question to a part by a hash of its words alone, whatever set it stands in.

    So the same words, in another case or with other marks, never stand in both parts.
    `held_out` is a share, 0 to 1.
    """
    words = " ".join(split_words(question.text))
    digest = hashlib.sha256(f"{seed}\n{words}".encode()).digest()
    # Eight bytes as a number in [0, 1): a larger share holds out all of a smaller one.
    return "held-out" if int.from_bytes(digest[:8]) / 2**64 < held_out else "train"


def of_part(
    cases: Iterable[TrainingCase], part: Part, *, seed: int = 0, held_out: float = HELD_OUT
) -> list[TrainingCase]:
    """Filters the cases of one part, in their order."""
    if part == "all":
        return list(cases)
    return [c for c in cases if part_of(c.question, seed=seed, held_out=held_out) == part]


def read_cases(path: Path) -> list[TrainingCase]:
    """The cases of a question file (`osler.questions`).

    Raises `BadQuestion` naming file and line, and for two cases with one id.
    """
    cases = [_make_case(one) for one in read_labeled(path)]
    seen: set[str] = set()
    for number, case in enumerate(cases, 1):
        if case.key in seen:
            raise BadQuestion(f"{path}: case {number} has the id of another: {case.key}")
        seen.add(case.key)
    return cases


def _make_case(one: LabeledQuestion) -> TrainingCase:
    known = (one.answer,) if one.answer else ()
    if one.question.options:
        if known:
            one.require_gold()
        sample = Sample(one.task, "choice", one.question, Gold(known))
    else:
        sample = Sample(one.task, "long", one.question, Gold((), known))
    return TrainingCase(sample, one.documents)


QUERIES = 6
"""Queries a source (§4.2.1, App. A.1)."""


@dataclass(frozen=True, slots=True)
class SearchedQuery:
    """A query, and what it found."""

    source: str
    wire: str
    """Query as it stands in a plan; for the graph "term , query"."""
    found: tuple[str, ...] = ()
    """Ids of passages, best first."""
    scores: tuple[float, ...] = ()
    """Scores of the search that found them; comparable within one query only."""

    @property
    def query(self) -> Query:
        return Query.read_wire(self.source, self.wire)


@dataclass(frozen=True, slots=True)
class ExploredCase:
    """Case with its queries and the passages that they found."""

    case: TrainingCase
    queries: tuple[SearchedQuery, ...]
    """Queries by source, in the order of the sources, without duplicates."""
    passages: dict[str, str]
    """Id to what a judge reads: headings and text."""
    usage: Usage = field(default_factory=Usage)
    """Usage of the explorer's model."""
    notes: tuple[str, ...] = ()
    searching_s: float = 0.0
    """Wall clock of the searches; the explorer's is in `usage`."""

    @property
    def key(self) -> str:
        return self.case.key


@dataclass(frozen=True)
class ExpertExplorer:
    """A model with the prompt E.3; the paper's is Qwen2.5-72B-Instruct-AWQ."""

    speaker: Speaker
    count: int = QUERIES

    @property
    def name(self) -> str:
        """Model and number of queries: explorations of two names do not mix."""
        return f"expert {self.speaker.model.name} x{self.count}"

    async def queries(
        self, question: Question, offers: tuple[SourceDescription, ...], run: Run
    ) -> list[Query]:
        """Proposes queries for each source. Raises `MalformedOutput` where nothing can be read."""
        prompt = render_question_prompt(
            "spo/explore",
            question,
            sources=source_variables(offers, question.language),
            queries=self.count,
        )
        names = tuple(offer.name for offer in offers)
        reading = await self.speaker.ask(
            prompt,
            lambda reply: expect_source_plan(reply.text, sources=names, at_most=self.count),
            run,
            grammar=source_plan_grammar(names, at_most=self.count),
        )
        # No error: a source without queries gets an empty line in the plan (§4.2.3).
        if reading.missing:
            run.emit(Noted(f"no queries for {', '.join(reading.missing)}"))
        return list(reading.plan.queries)


@dataclass(frozen=True)
class Exploration:
    """Proposes and searches."""

    explorer: ExpertExplorer
    offers: tuple[SourceDescription, ...]
    retriever: PlannedRetriever

    async def explore(self, case: TrainingCase, seed: int = 0) -> ExploredCase:
        """Raises `MalformedOutput` where the explorer says nothing that can be read, and
        `SourceUnavailable`: what a source that is down would have found is not known."""
        run = Run(f"explore.{case.key}", seed)
        proposed = await self.explorer.queries(case.question, self.offers, run)
        plan = SourcePlan.of(proposed)
        if not plan.queries:
            raise MalformedOutput("", expected="at least one query")
        # Timed apart from the explorer's model: §5.1.2 compares the cost of both.
        began = time.perf_counter()
        results = await self.retriever.gather_results(plan, run)
        seconds = time.perf_counter() - began
        # A case explored without one source would teach that this source has nothing to say.
        down = [result.failed for result in results.values() if result.failed]
        if down:
            raise SourceUnavailable(down[0])
        notes = tuple(event.text for event in run.events if isinstance(event, Noted))
        hits = [hit for result in results.values() for hit in result.hits]
        return ExploredCase(
            case,
            tuple(_pair_with_hits(query, result) for query, result in results.items()),
            {hit.passage.id: indexed_text(hit.passage) for hit in hits},
            run.usage,
            notes,
            round(seconds, 3),
        )


def _pair_with_hits(query: Query, result: LookupResult) -> SearchedQuery:
    ids = tuple(hit.passage.id for hit in result.hits)
    return SearchedQuery(query.source, query.wire, ids, tuple(hit.score for hit in result.hits))

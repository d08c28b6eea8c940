"""Planning exploration (Omni-RAG §4.2.1): diverse queries a source, and what each finds.

Six queries a source, the paper's number (App. A.1), by an expert model with the prompt E.3, or
without a model out of the question's own words (`wording`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

from osler.errors import MalformedOutput, SourceUnavailable
from osler.llm.core.speaker import Speaker
from osler.methods.omni.describe import SourceDescription, source_variables
from osler.methods.omni.plan import Query, SourcePlan, expect_source_plan, source_plan_grammar
from osler.methods.omni.retriever import PlannedRetriever
from osler.prompts import render_question_prompt
from osler.retrieve import LookupResult
from osler.retrieve.pooled import reranker_text
from osler.trace import Noted, Run
from osler.types import Question, Usage
from osler_lab.train.spo.case import TrainingCase

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


class Explorer(Protocol):
    """Proposer of queries."""

    @property
    def name(self) -> str:
        """Method, model and number of queries: explorations of two names do not mix."""

    async def queries(
        self, question: Question, offers: tuple[SourceDescription, ...], run: Run
    ) -> list[Query]:
        """Proposes queries for each source. Raises `MalformedOutput` where nothing can be read."""


@dataclass(frozen=True)
class ExpertExplorer:
    """A model with the prompt E.3; the paper's is Qwen2.5-72B-Instruct-AWQ."""

    speaker: Speaker
    count: int = QUERIES

    @property
    def name(self) -> str:
        return f"expert {self.speaker.model.name} x{self.count}"

    async def queries(
        self, question: Question, offers: tuple[SourceDescription, ...], run: Run
    ) -> list[Query]:
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

    explorer: Explorer
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
            {hit.passage.id: reranker_text(hit.passage) for hit in hits},
            run.usage,
            notes,
            round(seconds, 3),
        )


def _pair_with_hits(query: Query, result: LookupResult) -> SearchedQuery:
    ids = tuple(hit.passage.id for hit in result.hits)
    return SearchedQuery(query.source, query.wire, ids, tuple(hit.score for hit in result.hits))

"""Searches whose sources and words Omni-RAG's planner chooses, as tools of TC-RAG's machine."""

from __future__ import annotations

from dataclasses import dataclass

from osler.methods.kag.depth import BoundFormRetriever, FormRetriever
from osler.methods.kag.logical_forms import Retrieval
from osler.methods.kag.notation import render_form
from osler.methods.omni.planners.base import SourcePlanner
from osler.methods.omni.retriever import PlannedRetriever, interleave_hits, missing_sources
from osler.methods.omni.solver import request_plan
from osler.methods.tcrag.tools import (
    KG_FORM,
    PLANNED_RAG,
    Observation,
    ToolCall,
    number_passages,
    observe_failure,
)
from osler.retrieve.lookup import LookupResult, look_up
from osler.sources.catalogue import GRAPH
from osler.trace import Run
from osler.types import Hit, Language, Question, Relevance


@dataclass(frozen=True)
class PlannedSearch:
    """One plan for each text that is looked for (Omni-RAG §4.1); a `kag.depth.PassageFinder`."""

    planner: SourcePlanner
    retriever: PlannedRetriever
    per_source: int = 5
    """Passages of one source, at most."""
    coverage: Relevance | None = None
    """Of what is looked for by a passage; `None`: the first of each query in turn."""

    async def find_passages(
        self, words: str, language: Language, run: Run, *, k: int
    ) -> LookupResult:
        """At most `k` passages of all sources that were planned, best first.

        `observe_failure` tells why there are none where sources were down. Raises `BudgetExceeded`.
        """
        asked = Question("search", words, language=language)
        proposal = await request_plan(self.planner, asked, run)
        found = await self.retriever.gather_results(proposal.plan, run, known=proposal.found)
        hits = (await self._order_hits(words, interleave_hits(found, self.per_source)))[:k]
        return LookupResult(hits, "" if hits else "; ".join(missing_sources(found)))

    async def _order_hits(self, words: str, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        """Equal ones stay as the plan has them."""
        if self.coverage is None or not hits:
            return hits
        scores = await self.coverage.relevance(words, [hit.passage.text for hit in hits])
        best = sorted(range(len(hits)), key=lambda i: -scores[i])
        return tuple(hits[i] for i in best)


@dataclass(frozen=True)
class PlannedTool:
    """Each use of it asks the planner which sources, and which queries."""

    search: PlannedSearch
    k: int = 5
    """Passages that an observation shows."""
    name: str = PLANNED_RAG

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        language = call.question.language
        found = await self.search.find_passages(call.query, language, run, k=self.k)
        if found.failed:
            return observe_failure(found.failed, language)
        return Observation(number_passages(found.hits, call.known, language), found.hits)


@dataclass(frozen=True)
class FormTool:
    """The step that is being solved, looked up by its logical form (KAG-Thinker §3.4).

    What a model writes as its input does not matter: the form says what is wanted.
    """

    graph: FormRetriever
    k: int = 5
    form: Retrieval | None = None
    """Of the step; `None` between steps, when nothing can be asked."""
    name: str = KG_FORM

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        if self.form is None:
            return Observation(number_passages((), call.known, call.question.language))
        search, words = BoundFormRetriever(self.graph, self.form), render_form(self.form)
        found = await look_up(search, words, run, k=self.k, sources=(GRAPH,))
        if found.failed:
            return observe_failure(found.failed, call.question.language)
        return Observation(
            number_passages(found.hits, call.known, call.question.language), found.hits
        )

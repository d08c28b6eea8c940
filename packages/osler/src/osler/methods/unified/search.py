"""Searches whose sources and words Omni-RAG's planner chooses, as tools of TC-RAG's machine."""

from __future__ import annotations

from dataclasses import dataclass

from osler.methods.kag.depth import BoundFormRetriever, FormRetriever
from osler.methods.kag.logical_forms import Retrieval
from osler.methods.kag.notation import render_form
from osler.methods.omni.planners import SourcePlanner
from osler.methods.omni.retriever import PlannedRetriever, missing_sources, order_results
from osler.methods.omni.solver import request_plan
from osler.methods.tcrag.tools import (
    KG_FORM,
    PLANNED_RAG,
    Observation,
    ToolCall,
    number_passages,
    observe_failure,
)
from osler.retrieve import LookupResult, look_up, tell_order
from osler.retrieve.pooled import PooledOrder
from osler.sources.catalogue import GRAPH
from osler.trace import Run
from osler.types import Language, Question


@dataclass(frozen=True)
class PlannedSearch:
    """A `kag.depth.PassageFinder` that makes one source plan per query (Omni-RAG §4.1)."""

    planner: SourcePlanner
    retriever: PlannedRetriever
    order: PooledOrder | None = None
    """The single fused ranking of all results; `None`: the first of each query in turn."""
    per_source: int = 5
    """Passages that are read, for each source that found any."""

    async def find_passages(
        self, words: str, language: Language, run: Run, *, k: int
    ) -> LookupResult:
        """The best `k` passages of all planned sources.

        `failed` says why there are none when sources were down. Raises `BudgetExceeded`.
        """
        asked = Question("search", words, language=language)
        # Omni-RAG §4.1 plans each search anew: sub-questions differ in their best sources.
        proposal = await request_plan(self.planner, asked, run)
        results = await self.retriever.gather_results(proposal.plan, run, known=proposal.found)
        found = await order_results(words, results, self.per_source, self.order)
        hits = found[:k]
        return LookupResult(hits, "" if hits else "; ".join(missing_sources(results)))


@dataclass(frozen=True)
class PlannedTool:
    """A search tool whose sources and queries are planned anew for each call."""

    search: PlannedSearch
    k: int = 5
    """Passages shown in an observation."""
    name: str = PLANNED_RAG

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        k, language = call.wanted_hits(self.k), call.question.language
        result = await self.search.find_passages(call.query, language, run, k=k)
        if result.failed:
            return observe_failure(result.failed, language)
        hits = call.choose_hits(result.hits, self.k)
        tell_order(hits, run)
        return Observation(number_passages(hits, call.known, language), hits)


@dataclass(frozen=True)
class FormTool:
    """A tool that looks up the current step by its logical form (KAG-Thinker §3.4).

    The model's input is ignored: the form determines the lookup.
    """

    graph: FormRetriever
    k: int = 5
    form: Retrieval | None = None
    """Logical form of the current step; `None` between steps."""
    name: str = KG_FORM

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        if self.form is None:
            return Observation(number_passages((), call.known, call.question.language))
        search, words = BoundFormRetriever(self.graph, self.form), render_form(self.form)
        result = await look_up(search, words, run, k=self.k, sources=(GRAPH,))
        if result.failed:
            return observe_failure(result.failed, call.question.language)
        return Observation(
            number_passages(result.hits, call.known, call.question.language), result.hits
        )

"""The tools that TC-RAG is given: for the sources that are there, for the graph, as named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from osler.answer.gate import EvidenceGate
from osler.build import Parts, graphs
from osler.errors import BadConfig
from osler.graph.files import COMMUNITIES
from osler.llm.core.base import Sampling
from osler.methods.kag.graph_route import GRAPH_SETS
from osler.methods.tcrag.tools import (
    ALL_RAG,
    CARRIERS,
    DOC_RAG,
    FILTER,
    HYPOTHESIS_OUTPUT,
    KG_CHAINS,
    KG_COMMUNITIES,
    KNOWLEDGE_ORGANIZE,
    MEDICAL_NER,
    SOURCES_OF,
    EntitiesTool,
    FilterTool,
    HypothesisTool,
    LineWriter,
    OrganiseTool,
    ReadEntitiesTool,
    SearchTool,
    Tool,
    registered_tools,
)
from osler.settings import Settings, TcRagSettings
from osler.sources.catalogue import GRAPH
from osler.types import Retriever

if TYPE_CHECKING:
    from osler.graph.store import Graph

# What looks something up in the concept graph besides the source `graph`: names of its tools.
_OVER_GRAPH = (KG_CHAINS, KG_COMMUNITIES, MEDICAL_NER, GRAPH_SETS)


def graph_carriers(settings: Settings) -> tuple[str, ...]:
    """The names of those that can be had: none without a concept graph, communities where
    they have been found."""
    if not graphs.has_graph(settings):
        return ()
    found = (settings.kb.path / COMMUNITIES).exists()
    return tuple(name for name in _OVER_GRAPH if found or name != KG_COMMUNITIES)


def carrier_for(settings: Settings, name: str) -> Retriever | None:
    """The retriever of this name over the concept graph; `None` where it is another's."""
    graph = graphs.open_graph(settings) if name in _OVER_GRAPH else None
    return None if graph is None else _make_carrier(name, graph)


def _make_carrier(name: str, graph: Graph) -> Retriever:
    from osler.methods.kag.graph_route.answering import GraphSets
    from osler.retrieve.graph import ChainRetriever
    from osler.retrieve.graph_communities import CommunityRetriever
    from osler.retrieve.graph_mentions import MentionRetriever, open_recogniser

    if name == GRAPH_SETS:
        from osler.build.hub import read_tokens

        return GraphSets(graph, read_tokens)
    recogniser = open_recogniser(graph)
    if name == KG_CHAINS:
        return ChainRetriever(graph, recogniser=recogniser)
    if name == KG_COMMUNITIES:
        return CommunityRetriever(graph, recogniser=recogniser)
    return MentionRetriever(graph, recogniser=recogniser)


def make_tools(
    chosen: TcRagSettings, parts: Parts, gate: EvidenceGate, sampling: Sampling, *, longest: int
) -> tuple[Tool, ...]:
    """Builds the tools that the settings name, else a search a kind of source and the graph's.

    Raises `BadConfig` for a tool that is named and cannot be had.
    """
    there: dict[str, Tool] = {tool.name: tool for tool in _search_tools(chosen, parts)}
    if not chosen.tools:
        return tuple(there.values())
    # The search of `rag`, over all sources at once: as many passages as two tools give.
    search = parts.retriever("rag", parts.sources)
    there[ALL_RAG] = SearchTool(ALL_RAG, search, parts.sources, 2 * chosen.k)
    there |= {tool.name: tool for tool in _helper_tools(parts, gate, sampling, longest)}
    there |= registered_tools()
    if lacking := [name for name in chosen.tools if name not in there]:
        raise BadConfig(
            f"strategy.tools names {', '.join(lacking)}, for which there is no source",
            fix=f"choose from {', '.join(there)}, or add the source",
        )
    return tuple(there[name] for name in dict.fromkeys(chosen.tools))


def _search_tools(chosen: TcRagSettings, parts: Parts) -> Iterator[SearchTool]:
    """A tool for each kind of source that is there; sources of the user's own are documents."""
    named = {source for group in SOURCES_OF.values() for source in group}
    own = tuple(source for source in parts.sources if source not in named)
    for name, group in SOURCES_OF.items():
        sources = tuple(source for source in group if source in parts.sources)
        if name == DOC_RAG:
            sources += own
        if sources:
            yield SearchTool(name, parts.retriever(name, sources), sources, chosen.k)
    yield from graph_tools(chosen, parts)


def graph_tools(chosen: TcRagSettings, parts: Parts) -> Iterator[SearchTool]:
    """Yields the tools that look up the concept graph alone, where there is one."""
    for name in CARRIERS:
        if name in parts.carriers and GRAPH in parts.sources:
            yield SearchTool(name, parts.retriever(name, (GRAPH,)), (GRAPH,), chosen.k)


def _helper_tools(
    parts: Parts, gate: EvidenceGate, sampling: Sampling, longest: int
) -> Iterator[Tool]:
    planner, summariser = parts.models["planner"], parts.models["summariser"]
    thinks = LineWriter(planner.model, sampling, planner.constrains, longest)
    sums_up = LineWriter(
        summariser.model, sampling, summariser.constrains, longest, role="summariser"
    )
    yield HypothesisTool(thinks, HYPOTHESIS_OUTPUT)
    if MEDICAL_NER in parts.carriers:
        yield EntitiesTool(parts.retriever(MEDICAL_NER, (GRAPH,)))
    else:
        yield ReadEntitiesTool(thinks)
    yield OrganiseTool(sums_up, KNOWLEDGE_ORGANIZE)
    yield FilterTool(gate, FILTER)

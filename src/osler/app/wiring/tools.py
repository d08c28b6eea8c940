"""The tools that TC-RAG is given: for the sources that are there, for the graph, as named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from osler.answer.extractive import Gate
from osler.app.config import Settings, TcRag
from osler.app.wiring import graphs
from osler.app.wiring.parts import Parts
from osler.errors import BadConfig
from osler.llm.core.base import Sampling
from osler.methods.tcrag import helpers
from osler.methods.tcrag.tools import (
    CARRIERS,
    DOC_RAG,
    FILTER,
    HYPOTHESIS_OUTPUT,
    KG_CHAINS,
    KG_COMMUNITIES,
    KG_NEAR,
    KNOWLEDGE_ORGANIZE,
    MEDICAL_NER,
    SOURCES_OF,
    Search,
    Tool,
)
from osler.types import GRAPH, Retriever

if TYPE_CHECKING:
    from osler.graph.store import Graph


def _chains(graph: Graph) -> Retriever:
    from osler.retrieve.graph_chains import ChainRetriever

    return ChainRetriever(graph, recogniser=graphs.recogniser_of(graph))


def _communities(graph: Graph) -> Retriever:
    from osler.retrieve.graph_communities import CommunityRetriever

    return CommunityRetriever(graph, recogniser=graphs.recogniser_of(graph))


def _near(graph: Graph) -> Retriever:
    from osler.retrieve.graph_near import NearRetriever

    return NearRetriever(graph, recogniser=graphs.recogniser_of(graph))


def _mentions(graph: Graph) -> Retriever:
    from osler.retrieve.mentions import MentionRetriever

    return MentionRetriever(graph, recogniser=graphs.recogniser_of(graph))


_OVER_GRAPH: Mapping[str, Callable[[Graph], Retriever]] = {
    KG_CHAINS: _chains,
    KG_COMMUNITIES: _communities,
    KG_NEAR: _near,
    MEDICAL_NER: _mentions,
}
"""What looks something up in the concept graph besides the source `graph`; by name of its tool."""


def over_graph(settings: Settings) -> tuple[str, ...]:
    """The names of those that can be had: none without a concept graph, communities where
    they have been found."""
    from osler.graph.communities import FILE

    if not graphs.exists(settings):
        return ()
    found = (settings.kb.path / FILE).exists()
    return tuple(name for name in _OVER_GRAPH if found or name != KG_COMMUNITIES)


def carrier(settings: Settings, name: str) -> Retriever | None:
    """The retriever of this name over the concept graph; `None` where it is another's."""
    made = _OVER_GRAPH.get(name)
    graph = graphs.graph_of(settings) if made else None
    return made(graph) if made and graph else None


def tools(
    chosen: TcRag, parts: Parts, gate: Gate, sampling: Sampling, *, longest: int
) -> tuple[Tool, ...]:
    """Those that the settings name; else a search for each kind of source, and the graph's.

    Raises `BadConfig` for a tool that is named and cannot be had.
    """
    there: dict[str, Tool] = {tool.name: tool for tool in _searches(chosen, parts)}
    if not chosen.tools:
        return tuple(there.values())
    there |= {tool.name: tool for tool in _carried((KG_NEAR,), chosen, parts)}
    there |= {tool.name: tool for tool in _helpers(parts, gate, sampling, longest)}
    if lacking := [name for name in chosen.tools if name not in there]:
        raise BadConfig(
            f"strategy.tools names {', '.join(lacking)}, for which there is no source",
            fix=f"choose from {', '.join(there)}, or add the source",
        )
    return tuple(there[name] for name in dict.fromkeys(chosen.tools))


def _searches(chosen: TcRag, parts: Parts) -> Iterator[Search]:
    """A tool for each kind of source that is there; sources of the user's own are documents."""
    named = {source for group in SOURCES_OF.values() for source in group}
    own = tuple(source for source in parts.sources if source not in named)
    for name, group in SOURCES_OF.items():
        sources = tuple(source for source in group if source in parts.sources)
        if name == DOC_RAG:
            sources += own
        if sources:
            yield Search(name, parts.retriever(name, sources), sources, chosen.k)
    yield from carried(chosen, parts)


def carried(chosen: TcRag, parts: Parts) -> Iterator[Search]:
    """What looks something up in the concept graph alone, where there is one."""
    yield from _carried(CARRIERS, chosen, parts)


def _carried(names: Iterable[str], chosen: TcRag, parts: Parts) -> Iterator[Search]:
    for name in names:
        if name in parts.carriers and GRAPH in parts.sources:
            yield Search(name, parts.retriever(name, (GRAPH,)), (GRAPH,), chosen.k)


def _helpers(parts: Parts, gate: Gate, sampling: Sampling, longest: int) -> Iterator[Tool]:
    planner, summariser = parts.models["planner"], parts.models["summariser"]
    thinks = helpers.Scribe(planner.model, sampling, planner.constrains, longest)
    sums_up = helpers.Scribe(summariser.model, sampling, summariser.constrains, longest)
    yield helpers.Hypothesis(thinks, HYPOTHESIS_OUTPUT)
    if MEDICAL_NER in parts.carriers:
        yield helpers.Entities(parts.retriever(MEDICAL_NER, (GRAPH,)))
    else:
        yield helpers.ReadEntities(thinks)
    yield helpers.Organise(sums_up, KNOWLEDGE_ORGANIZE)
    yield helpers.Filter(gate, FILTER)

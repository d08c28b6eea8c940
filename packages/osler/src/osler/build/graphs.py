"""The concept graph beside the knowledge base, where `osler kb graph add` has made one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from osler.errors import UnknownPassage
from osler.retrieve.entity_names import EntityNames, GraphNames
from osler.settings import Settings
from osler.sources.catalogue import GRAPH
from osler.types import Passage, Relevance, Retriever

if TYPE_CHECKING:
    from osler.graph.store import Graph
    from osler.kb.encoders.base import Encoder


def has_graph(settings: Settings) -> bool:
    """Whether a graph lies in the folder of the knowledge base and may be asked: its facts have
    neither date nor kind, so that no filter by these lets them through."""
    from osler.graph.files import FILE

    return not settings.retrieve.is_filtered and (settings.kb.path / FILE).exists()


def open_graph(settings: Settings) -> Graph | None:
    """The graph in the folder of the knowledge base; `None` without one."""
    from osler.graph.store import Graph

    return Graph.open(settings.kb.path) if has_graph(settings) else None


def graph_names(settings: Settings) -> tuple[EntityNames, ...]:
    """The names of the graph as a finder of names, where there is a graph."""
    from osler.retrieve.graph_mentions import open_recogniser

    graph = open_graph(settings)
    return () if graph is None else (GraphNames(graph, open_recogniser(graph)),)


def graph_passage(settings: Settings, id: str) -> Passage | None:
    """Reads a passage of the graph by its id; `None` where the id is not the graph's."""
    from osler.graph.communities import find_passage

    graph = open_graph(settings) if id.startswith(f"{GRAPH}:") else None
    try:
        return find_passage(graph, id) if graph else None
    except UnknownPassage:
        return None


def formula_passage(_: Settings, id: str) -> Passage | None:
    """Reads the passage of a verified formula by its id; `None` where the id is no formula's."""
    if not id.startswith("formulas:"):  # nothing else need load them
        return None
    from osler.methods.kag.computed import find_formula_passage

    return find_formula_passage(id)


# Its name among the retrievers of a run, and so on its tape.
FORMS = "kag-thinker/forms"


def form_retriever(
    settings: Settings,
    search: Callable[[tuple[str, ...]], Retriever],
    sources: tuple[str, ...],
    likeness: Relevance | None = None,
    encoder: Encoder | None = None,
) -> Retriever:
    """Takes forms as they are written. `search` makes what searches some of `sources` by words;
    `likeness` compares relations, and `encoder` names that the graph lacks with its own."""
    from osler.graph.lookup import NameVectors
    from osler.methods.kag.hybrid import FormsAsQueries, FormsAsWords, HybridGraph

    graph = open_graph(settings)
    if graph is None:
        return FormsAsQueries(FormsAsWords(search((GRAPH,))))
    texts = tuple(source for source in sources if source != GRAPH)
    names = NameVectors(graph, encoder) if encoder else None
    return FormsAsQueries(HybridGraph(graph, search(texts) if texts else None, likeness, names))

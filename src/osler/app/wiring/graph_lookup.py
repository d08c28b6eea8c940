"""What looks logical forms up: the graph beside the knowledge base, or its graph source."""

from __future__ import annotations

from collections.abc import Callable

from osler.app.config import Settings
from osler.app.wiring import graphs
from osler.sources.catalogue import GRAPH
from osler.types import Retriever

FORMS = "kag-thinker/forms"
"""Its name among the retrievers of a run, and so on its tape."""


def form_retriever(
    settings: Settings, search: Callable[[tuple[str, ...]], Retriever], sources: tuple[str, ...]
) -> Retriever:
    """Takes forms as they are written. `search` makes what searches some of `sources` by words."""
    from osler.methods.kag.hybrid import FormsAsQueries, FormsAsWords, HybridGraph

    graph = graphs.open_graph(settings)
    if graph is None:
        return FormsAsQueries(FormsAsWords(search((GRAPH,))))
    texts = tuple(source for source in sources if source != GRAPH)
    return FormsAsQueries(HybridGraph(graph, search(texts) if texts else None))

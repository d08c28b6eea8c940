"""The concept graph beside the knowledge base, where `osler kb graph add` has made one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from osler.config import Settings
from osler.errors import UnknownPassage
from osler.types import GRAPH, Passage

if TYPE_CHECKING:
    from osler.kb.graph.store import Graph


def exists(settings: Settings) -> bool:
    """Whether a graph lies in the folder of the knowledge base."""
    from osler.kb.graph.files import FILE

    return (settings.kb.path / FILE).exists()


def graph_of(settings: Settings) -> Graph | None:
    """The graph in the folder of the knowledge base; `None` without one."""
    from osler.kb.graph.store import Graph

    return Graph.open(settings.kb.path) if exists(settings) else None


def stated(settings: Settings, id: str) -> Passage | None:
    """What the graph says under this id; `None` where it is not the graph's."""
    graph = graph_of(settings) if id.startswith(f"{GRAPH}:") else None
    try:
        return graph.passage(id) if graph else None
    except UnknownPassage:
        return None

"""The concept graph as a caller may see it, for every interface."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from osler.graph.store import Graph
from osler.sources.catalogue import GRAPH
from osler_serve import replies
from osler_serve.keys import Caller
from osler_serve.problems import RefusedRequest
from osler_serve.state import ServerState


async def caller_graph(site: ServerState, caller: Caller) -> Graph | None:
    """The concept graph; `None` if absent, or if the caller may not search it."""
    if not caller.scope.narrow_settings(site.settings).access.may_search(GRAPH):
        return None
    return await site.shelf.open_graph()


async def read_concept(
    site: ServerState, caller: Caller, id: str, limit: int, predicates: Sequence[str] = ()
) -> replies.ConceptView:
    """One concept, for every interface, with all its relations or those of some
    predicates. Raises `RefusedRequest` (404)."""
    graph = await caller_graph(site, caller)
    found = await asyncio.to_thread(_concept_view, graph, id, limit, predicates) if graph else None
    if found is None:
        fix = "" if graph else "osler kb graph add FILE"
        raise RefusedRequest(404, "unknown_concept", f"there is no concept {id[:64]!r}", fix=fix)
    return found


def _concept_view(
    graph: Graph, id: str, limit: int, predicates: Sequence[str]
) -> replies.ConceptView | None:
    known = graph.get_concept(id)
    if known is None:
        return None
    edges = graph.find_neighbours([known.id], predicates=predicates, limit=limit)
    return replies.ConceptView.from_value(known, relations=edges)

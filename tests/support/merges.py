"""The merges of a graph, as its table holds them."""

from __future__ import annotations

from dataclasses import dataclass

from osler.graph.store import Graph


@dataclass(frozen=True, slots=True)
class ConceptMerge:
    one: str
    other: str
    how: str
    """`mapping`, `name` or `synonym`."""
    why: str
    """The mapping's source, or the name."""


def list_merges(graph: Graph) -> list[ConceptMerge]:
    """Every merge in force, in order of identifiers."""
    query = (
        "SELECT one.id, other.id, how, why FROM merge JOIN concept AS one ON one.n = merge.one"
        " JOIN concept AS other ON other.n = merge.other ORDER BY 1, 2, 3"
    )
    with graph.open_reader() as db:
        return [ConceptMerge(*row) for row in db.execute(query)]

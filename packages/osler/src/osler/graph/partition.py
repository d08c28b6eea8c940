"""Hierarchical partition of the graph into communities (Leiden).

Traag, Waltman and van Eck (2019), as GraphRAG (Edge et al. 2024) uses it: the whole graph
first, then each community that is still large by itself, and so on. The result is a tree
whose every node is a slice of one array, `members`.
"""

from __future__ import annotations

import random
from itertools import pairwise
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from osler.errors import CapabilityMissing, require_extra
from osler.graph.files import Array, gather_slices

LARGEST = 60
"""Concepts of a community that is not split further: as many as a summary can speak of."""
_DEEPEST = 8
# Iterations of Leiden; more of them hardly raise the modularity.
_ROUNDS = 2

Nodes = NDArray[np.int32]


class _Part(NamedTuple):
    """A community, in the order of finding: a whole stands before its parts."""

    first: int
    last: int
    parent: int
    level: int


def partition_graph(arrays: dict[str, Array], *, largest: int = LARGEST) -> dict[str, Array]:
    """`members`, and of each community `first`, `last`, `parent` (-1 = none) and `level`.

    Concepts without a relation, and those that are fused into another, are in none. The
    same graph gives the same communities. Raises `CapabilityMissing` without the extra `graph`.
    """
    missing = "communities cannot be found: igraph is not installed"
    with require_extra("graph", missing, CapabilityMissing):
        import igraph
    found: list[_Part] = []
    members = np.flatnonzero(np.diff(arrays["start"])).astype(np.int32)
    # The generator is the library's own global: it is put back at the end.
    igraph.set_random_number_generator(random.Random(0))
    try:
        waiting = [(-1, _Part(0, len(members), -1, -1))]
        while waiting:
            number, whole = waiting.pop()
            ends = _order_nodes(igraph, arrays, members[whole.first : whole.last])
            if number >= 0 and len(ends) == 1:
                continue
            for first, last in pairwise([0, *ends]):
                place = whole.first + first, whole.first + last
                found.append(_Part(*place, number, whole.level + 1))
                if last - first > largest and whole.level + 1 < _DEEPEST:
                    waiting.append((len(found) - 1, found[-1]))
    finally:
        igraph.set_random_number_generator(random)
    columns = np.array(found, dtype=np.int64).reshape(-1, 4).T
    kinds = (np.int64, np.int64, np.int32, np.int32)
    return {
        "members": members,
        **{
            name: np.ascontiguousarray(column, kind)
            for name, column, kind in zip(_Part._fields, columns, kinds, strict=True)
        },
    }


def _order_nodes(library: ModuleType, arrays: dict[str, Array], nodes: Nodes) -> list[int]:
    """Orders `nodes` in place by community, and tells where each of these ends."""
    if not len(nodes):
        return []
    labels = _label_nodes(library, arrays, nodes)
    nodes[:] = nodes[np.lexsort((nodes, labels))]
    ends: list[int] = np.cumsum(np.bincount(labels)).tolist()
    return ends


def _label_nodes(library: ModuleType, arrays: dict[str, Array], nodes: Nodes) -> NDArray[np.int64]:
    """The community of each node, by modularity; an edge weighs its number of relations."""
    pairs, weights = pairs_within(arrays, nodes)
    graph = library.Graph(n=len(nodes), edges=pairs)
    clustering = graph.community_leiden(
        objective_function="modularity", weights=weights.tolist(), n_iterations=_ROUNDS
    )
    labels = np.array(clustering.membership, dtype=np.int64)
    # By their first node, so that the numbers do not depend on the library's own.
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def pairs_within(
    arrays: dict[str, Array], nodes: Nodes
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of places in `nodes` that are neighbours, each once, and the number of relations
    that join each."""
    start, to = arrays["start"], arrays["to"]
    row, index = gather_slices(start, nodes)
    other = to[index]
    order = np.argsort(nodes, kind="stable")
    at = np.minimum(np.searchsorted(nodes, other, sorter=order), len(nodes) - 1)
    place = order[at]
    kept = (nodes[place] == other) & (row < place)
    key = row[kept] * len(nodes) + place[kept]
    keys, weights = np.unique(key, return_counts=True)
    return np.column_stack([keys // len(nodes), keys % len(nodes)]), weights

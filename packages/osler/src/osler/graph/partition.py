"""Hierarchical partition of the graph into communities (Leiden).

Traag, Waltman and van Eck (2019), as GraphRAG (Edge et al. 2024) uses it: the whole graph
first, then each community that is still large by itself, and so on. The result is a tree
whose every node is a slice of one array, `members`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from types import ModuleType

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


@dataclass
class _Tree:
    """Communities in the order of finding, a parent before its parts, with their slices."""

    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    level: list[int] = field(default_factory=list)

    def add_community(self, first: int, last: int, parent: int, level: int) -> int:
        self.first.append(first)
        self.last.append(last)
        self.parent.append(parent)
        self.level.append(level)
        return len(self.first) - 1


def partition_graph(
    arrays: dict[str, Array], *, largest: int = LARGEST, seed: int = 0
) -> dict[str, Array]:
    """`members`, and of each community `first`, `last`, `parent` (-1 = none) and `level`.

    Concepts without a relation, and those that are fused into another, are in none. The
    same graph and seed give the same communities. Raises `CapabilityMissing` without the
    extra `graph`.
    """
    missing = "communities cannot be found: igraph is not installed"
    with require_extra("graph", missing, CapabilityMissing):
        import igraph
    tree = _Tree()
    degree = np.diff(arrays["start"])
    members = np.flatnonzero(degree).astype(np.int32)
    # The generator is the library's own global: it is put back at the end.
    igraph.set_random_number_generator(random.Random(seed))
    try:
        waiting = _split_nodes(igraph, arrays, members, 0, tree, parent=-1, level=0)
        while waiting:
            number = waiting.pop()
            if tree.last[number] - tree.first[number] > largest and tree.level[number] < _DEEPEST:
                slice_ = members[tree.first[number] : tree.last[number]]
                waiting += _split_nodes(
                    igraph,
                    arrays,
                    slice_,
                    tree.first[number],
                    tree,
                    parent=number,
                    level=tree.level[number] + 1,
                )
    finally:
        igraph.set_random_number_generator(random)
    return {
        "members": members,
        "first": np.array(tree.first, dtype=np.int64),
        "last": np.array(tree.last, dtype=np.int64),
        "parent": np.array(tree.parent, dtype=np.int32),
        "level": np.array(tree.level, dtype=np.int32),
    }


def _split_nodes(
    library: ModuleType,
    arrays: dict[str, Array],
    nodes: Nodes,
    begin: int,
    tree: _Tree,
    *,
    parent: int,
    level: int,
) -> list[int]:
    """Orders `nodes` in place by community and returns the numbers of the new communities."""
    if not len(nodes):
        return []
    labels = _label_nodes(library, arrays, nodes)
    if parent >= 0 and labels.max() == 0:
        return []
    order = np.lexsort((nodes, labels))
    nodes[:] = nodes[order]
    ends = np.cumsum(np.bincount(labels)).tolist()
    return [
        tree.add_community(begin + first, begin + last, parent, level)
        for first, last in zip([0, *ends], ends, strict=False)
    ]


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

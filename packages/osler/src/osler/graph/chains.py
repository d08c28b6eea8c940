"""Reasoning chains: paths between two concepts or outward from one (HyKGE, RAG with
hypotheses and knowledge graphs), and the concepts nearest to several at once.

A chain goes along relations in either direction; its score falls with its length and with
the number of neighbours of what it passes through, since "everything is a disease" connects
everything and says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise, product
from math import log2

import numpy as np
from numpy.typing import NDArray

from osler.graph.files import Array, find_relations, gather_slices
from osler.graph.items import ChainStep, ConceptChain
from osler.graph.store import Graph

MOST_HOPS = 4
# Half-paths that are held at once; beyond it those through the fewest-linked concepts stay.
_MOST_HALVES = 200_000
_RESTART = 0.15

Nodes = NDArray[np.int32]


# Paths


def find_chains_between(
    graph: Graph, one: str, other: str, *, hops: int = 3, k: int = 10
) -> list[ConceptChain]:
    """The `k` best simple paths of at most `hops` (1 to 4) relations; [] for unknown concepts."""
    ends = [graph.numbers_of([id]) for id in (one, other)]
    if not all(ends) or ends[0] == ends[1]:
        return []
    adjacency = _Adjacency(graph.load_arrays())
    paths: list[tuple[int, ...]] = []
    for length in range(1, min(hops, MOST_HOPS) + 1):
        paths += adjacency.find_paths(ends[0][0], ends[1][0], length)
    return _build_chains(graph, adjacency, paths, k)


def find_chains_from(
    graph: Graph, concept: str, *, hops: int = 2, k: int = 10
) -> list[ConceptChain]:
    """The `k` best simple paths of at most `hops` (1 to 4) relations that begin at a concept."""
    start = graph.numbers_of([concept])
    if not start:
        return []
    adjacency = _Adjacency(graph.load_arrays())
    halves = np.array([start], dtype=np.int32)
    paths: list[tuple[int, ...]] = []
    for _ in range(min(hops, MOST_HOPS)):
        halves = adjacency.extend_paths(halves)
        paths += [tuple(row) for row in halves.tolist()]
    return _build_chains(graph, adjacency, paths, k)


def _build_chains(
    graph: Graph, adjacency: _Adjacency, paths: Iterable[tuple[int, ...]], k: int
) -> list[ConceptChain]:
    scored = sorted((-adjacency.score_path(path), path) for path in paths)[:k]
    numbers = {number for _, path in scored for number in path}
    ids = graph.ids_of(numbers)
    names = {number: texts[0] for number, texts in graph.names_of(numbers).items()}
    words = graph.read_words()
    chains: list[ConceptChain] = []
    for minus, path in scored:
        kept = tuple(ids[n] for n in path), tuple(names[n] for n in path)
        ways = adjacency.expand_predicates(path, words)
        chains += [ConceptChain(*kept, steps, -minus) for steps in islice(ways, k - len(chains))]
    return chains


class _Adjacency:
    """The graph seen from both ends of every relation."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays, self.start, self.to = arrays, arrays["start"], arrays["to"]

    def count_neighbours(self, nodes: Nodes) -> NDArray[np.int64]:
        degrees: NDArray[np.int64] = self.start[nodes + 1] - self.start[nodes]
        return degrees

    def score_path(self, path: Sequence[int]) -> float:
        inner = self.count_neighbours(np.array(path[1:-1], dtype=np.int32)).tolist()
        score = 1 / (len(path) - 1)
        # Hubs connect everything and say nothing: each on the way lowers the score.
        for degree in inner:
            score /= log2(2 + degree) ** 0.5
        return score

    def expand_predicates(
        self, path: Sequence[int], words: dict[int, str]
    ) -> Iterator[tuple[ChainStep, ...]]:
        """Every combination of predicates along the path: neighbours may have several relations."""
        hops = []
        for one, two in pairwise(path):
            kinds = find_relations(self.arrays, one, two)
            steps = [ChainStep(words[abs(kind)], kind > 0) for kind in kinds]
            hops.append(sorted(steps, key=lambda step: (not step.forward, step.predicate)))
        return product(*hops)

    def extend_paths(self, paths: NDArray[np.int32]) -> NDArray[np.int32]:
        """Each path prolonged by each neighbour of its end that is not on it yet."""
        ends = paths[:, -1]
        degrees = self.count_neighbours(ends)
        if degrees.sum() > _MOST_HALVES:  # those that go through hubs are left out first
            order = np.argsort(degrees, kind="stable")
            kept = order[np.cumsum(degrees[order]) <= _MOST_HALVES]
            kept = kept if len(kept) else order[:1]
            paths, ends = paths[kept], ends[kept]
        row, index = gather_slices(self.start, ends)
        to = self.to[index]
        # Neighbours stand in order, so that those of several relations stand together.
        fresh = np.ones(len(to), dtype=bool)
        fresh[1:] = (to[1:] != to[:-1]) | (row[1:] != row[:-1])
        fresh &= (paths[row] != to[:, None]).all(axis=1)
        return np.column_stack([paths[row[fresh]], to[fresh]])

    def find_paths(self, one: int, other: int, length: int) -> list[tuple[int, ...]]:
        """All simple paths of this many relations, joined from halves that grow from both ends."""
        front = np.array([[one]], dtype=np.int32)
        back = np.array([[other]], dtype=np.int32)
        for _ in range(length):
            # The side with fewer neighbours grows.
            if (
                self.count_neighbours(front[:, -1]).sum()
                <= self.count_neighbours(back[:, -1]).sum()
            ):
                front = self.extend_paths(front)
            else:
                back = self.extend_paths(back)
        return _join_halves(front, back)


def _join_halves(front: NDArray[np.int32], back: NDArray[np.int32]) -> list[tuple[int, ...]]:
    if not len(front) or not len(back):
        return []
    back = back[np.argsort(back[:, -1], kind="stable")]
    first = np.searchsorted(back[:, -1], front[:, -1])
    count = np.searchsorted(back[:, -1], front[:, -1], side="right") - first
    meets = np.flatnonzero(count)
    joined: list[tuple[int, ...]] = []
    for row in meets.tolist():
        head, begin = tuple(front[row].tolist()), int(first[row])
        tails = back[begin : begin + int(count[row])].tolist()
        paths = ((*head, *tail[-2::-1]) for tail in tails)
        joined += [path for path in paths if len(set(path)) == len(path)]
    return joined


# Nearness


def rank_nearest(
    graph: Graph, seeds: Sequence[str], *, k: int = 20, precision: float = 1e-4
) -> list[tuple[str, float]]:
    """The `k` concepts with the highest personalised PageRank from the seeds, with their shares.

    Approximated by pushes (Andersen, Chung and Lang, 2006): the mass left unpushed is at most
    `precision` for each relation of a concept. Seeds are among the results; [] when no seed
    is known.
    """
    numbers = graph.numbers_of(seeds)
    if not numbers:
        return []
    shares = random_walk(graph.load_arrays(), numbers, restart=_RESTART, precision=precision)
    seen = np.flatnonzero(shares)
    best = seen[np.lexsort((seen, -shares[seen]))][:k]
    ids = graph.ids_of(best.tolist())
    return [(ids[n], float(shares[n])) for n in best.tolist()]


def random_walk(
    arrays: dict[str, Array],
    seeds: Sequence[int],
    *,
    restart: float,
    precision: float,
    weights: Sequence[float] = (),
) -> NDArray[np.float64]:
    """The share of the walk's time at each concept number, float64; they sum to at most 1.

    `weights`: how often a walk begins at each seed, relative to the others; equally without
    them. A seed that is given twice counts twice.
    """
    start, to = arrays["start"], arrays["to"]
    shares = np.zeros(len(start) - 1)
    residue = np.zeros(len(start) - 1)
    np.add.at(residue, np.array(seeds, dtype=np.int64), weights or 1.0)
    first = np.flatnonzero(residue)
    begins = residue[first] / residue[first].sum()
    residue[first] = begins
    front = first
    # Each round pushes the residue of every concept above the limit at once.
    while len(front):
        mass, degree = residue[front], start[front + 1] - start[front]
        residue[front] = 0.0
        shares[front] += restart * mass
        lost = float(((1 - restart) * mass)[degree == 0].sum())
        front, mass, degree = front[degree > 0], mass[degree > 0], degree[degree > 0]
        row, index = gather_slices(start, front)
        reached = to[index]
        np.add.at(residue, reached, ((1 - restart) * mass / degree)[row])
        residue[first] += lost * begins  # from a dead end a walk restarts
        touched = np.unique(np.concatenate([reached, first])).astype(np.int64)
        limit = precision * np.maximum(1, start[touched + 1] - start[touched])
        front = touched[residue[touched] > limit]
    return shares

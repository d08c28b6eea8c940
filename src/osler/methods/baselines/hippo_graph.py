"""HippoRAG 2's graph of phrases and passages, and the walk on it (§3.2, §3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from osler.text import split_words

Triple = tuple[str, str, str]
Node = int | str
"""A passage by its position, or a phrase."""
_SYNONYM = 0.8
_ROUNDS = 100


def verbalize_triple(triple: Triple) -> str:
    return " ".join(triple)


def normalize_phrase(text: str) -> str:
    """The normal form of a phrase: its lower-cased words."""
    return " ".join(split_words(text)) or text.casefold()


def seed_weights(
    triples: Sequence[tuple[Triple, float]], passages: Sequence[float], weight: float
) -> dict[Node, float]:
    """Restart weights of the walk: phrases by the mean score of their triples, passages by their
    scores scaled to [0, 1], times `weight`."""
    of: dict[str, list[float]] = {}
    for (subject, _, object_), score in triples:
        for name in dict.fromkeys((normalize_phrase(subject), normalize_phrase(object_))):
            of.setdefault(name, []).append(max(0.0, score))
    start: dict[Node, float] = {name: sum(all_) / len(all_) for name, all_ in of.items()}
    low, high = min(passages), max(passages)
    for n, score in enumerate(passages):
        start[n] = weight * ((score - low) / (high - low) if high > low else 1.0)
    return start


def weigh_edges(stated: Sequence[Sequence[Triple]]) -> dict[tuple[Node, Node], float]:
    """Edge weights: phrases of one triple, a passage and its phrases, synonyms; by frequency."""
    found: dict[tuple[Node, Node], float] = {}
    names: dict[str, None] = {}
    for n, triples in enumerate(stated):
        held = dict.fromkeys(normalize_phrase(end) for t in triples for end in (t[0], t[2]))
        names |= held
        found |= {(n, name): 1.0 for name in held}
        for subject, _, object_ in triples:
            pair = (normalize_phrase(subject), normalize_phrase(object_))
            if pair[0] != pair[1]:
                found[pair] = found.get(pair, 0.0) + 1.0
    for one, two in combinations(names, 2):
        if (likeness := _phrase_similarity(one, two)) >= _SYNONYM:
            found[one, two] = found.get((one, two), 0.0) + likeness
    return found


def pagerank(
    stated: Sequence[Sequence[Triple]], start: Mapping[Node, float], damping: float
) -> list[float]:
    """Personalised PageRank of each passage, restarting at `start`; edges are undirected."""
    links = weigh_edges(stated)
    nodes = list(dict.fromkeys([*range(len(stated)), *(n for link in links for n in link)]))
    place = {node: i for i, node in enumerate(nodes)}
    weights = np.zeros((len(nodes), len(nodes)))
    for (one, two), weight in links.items():
        weights[place[one], place[two]] += weight
        weights[place[two], place[one]] += weight
    again = np.array([start.get(node, 0.0) for node in nodes])
    again = again / again.sum() if again.sum() else np.full(len(nodes), 1 / max(1, len(nodes)))
    out = weights.sum(axis=1)
    share = again.copy()
    for _ in range(_ROUNDS):
        # What stands at a node without edges starts again.
        stuck = share[out == 0].sum()
        moved = weights.T @ np.divide(share, out, out=np.zeros_like(share), where=out > 0)
        share = (1 - damping) * again + damping * (moved + stuck * again)
    return [round(float(value), 9) for value in share[: len(stated)]]


def _phrase_similarity(one: str, two: str) -> float:
    first, second = set(one.split()), set(two.split())
    return len(first & second) / max(1, len(first | second))

"""Fuzzy look-up of names: by words, their corrections, a likeness of spelling, and vectors.

Vectors of names are how KAG's retrievers link them (KAG-Thinker §3.4). They are derived: they lie
beside the graph, with the version of the graph and of the encoder that they were made with.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from osler.errors import CapabilityMissing, require_extra
from osler.graph import files
from osler.graph.derive import normalize_name, spelling_variants, split_units, words_of
from osler.graph.files import Array
from osler.graph.items import Edge, NamedConcept
from osler.graph.store import Graph, Rows
from osler.kb.encoders.base import Encoder, encoder_for
from osler.text import language_of

# Concepts whose names are compared letter by letter.
_COMPARED = 100
# The least likeness, in [0, 1], of a name that counts as found.
_LEAST = 0.6
# The least share of a text's words, by rarity, that a name has to count as near.
_LEAST_SHARED = 1 / 3
# Concepts looked at for one word; a word that more concepts have is too frequent to help.
_MOST_HOLDERS = 300_000
_MISSPELT = "names that are misspelt cannot be looked up: rapidfuzz is not installed"

Concepts = NDArray[np.int32]


def has_rapidfuzz() -> bool:
    """Whether misspelt names can be looked up; asked without importing it."""
    return find_spec("rapidfuzz") is not None


class Lookup:
    """Concepts by name. Exact look-ups need nothing; fuzzy ones need the extra `graph`.

    Safe to use from several threads. The vocabulary is read once for each version of
    the graph, at the first fuzzy look-up.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._lock = threading.Lock()
        self._held: tuple[dict[str, Array], _Words] | None = None

    def find(self, text: str, *, k: int = 10, fuzzy: bool = True) -> list[NamedConcept]:
        """Concepts that have this very name; if there are none, the `k` with the closest names.

        Raises `CapabilityMissing` when the second step is needed without the extra.
        """
        exact = self.graph.find_exact(text)
        return exact[:k] if exact or not fuzzy else self.find_fuzzy(text, k=k)

    def find_fuzzy(self, text: str, *, k: int = 10) -> list[NamedConcept]:
        """The `k` concepts with the closest names, best first; equal ones by identifier. `score` is
        the likeness."""
        with require_extra("graph", _MISSPELT, CapabilityMissing):
            from rapidfuzz import fuzz
        norm = normalize_name(text)
        words = self._load_words()
        likely = _likely_concepts(words.find_holders(split_units(text)))
        best: dict[int, tuple[float, str]] = {}
        for number, names in self.graph.names_of(likely).items():
            head = int(words.arrays["heads"][number])
            for name in names:
                other = normalize_name(name)
                likeness = max(fuzz.ratio(norm, other), fuzz.token_sort_ratio(norm, other)) / 100
                if likeness >= _LEAST and likeness > best.get(head, (0.0, ""))[0]:
                    best[head] = likeness, name
        return self._rank_names(best)[:k]

    def find_by_words(self, text: str, *, k: int = 10) -> list[NamedConcept]:
        """The `k` concepts whose names share most of the words of `text`, rare ones before common
        ones; needs no extra. `score` is the share of both, at least a third of the text's."""
        units, words = split_units(text), self._load_words()
        holders = {
            unit: words.find_holders([unit], corrected=False) for unit in dict.fromkeys(units)
        }
        # A word that no name has is as rare as one can be.
        rarest = float(np.log(1 + words.total))
        weight = {unit: found[0][0] if found else rarest for unit, found in holders.items()}
        whole = sum(weight.values())
        likely = _likely_concepts(
            sorted(
                (each for found in holders.values() for each in found),
                key=lambda pair: (-pair[0], len(pair[1])),
            )
        )
        scored: dict[int, tuple[float, str]] = {}
        for number, names in self.graph.names_of(likely).items():
            for name in names:
                own = set(split_units(name))
                shared = sum(weight[unit] for unit in own & weight.keys()) / whole
                score = shared * (1 + len(own & weight.keys()) / max(1, len(own))) / 2
                if shared >= _LEAST_SHARED and score > scored.get(number, (0.0, ""))[0]:
                    scored[number] = score, name
        return self._rank_names(scored)[:k]

    def _rank_names(self, scored: dict[int, tuple[float, str]]) -> list[NamedConcept]:
        ids = self.graph.ids_of(scored)
        ranked = sorted(scored.items(), key=lambda pair: (-pair[1][0], ids[pair[0]]))
        return [NamedConcept(ids[n], name, "fuzzy", score) for n, (score, name) in ranked]

    def find_sharing(self, text: str) -> list[tuple[float, Concepts]]:
        """For each word of `text` that any name has: its inverse document frequency and the
        numbers of the concepts with it; the rarest first."""
        return self._load_words().find_holders(split_units(text), corrected=False)

    def find_related(self, id: str, query: str, *, most: int) -> list[Edge]:
        """At most `most` one-hop relations of a concept: those with which `query` shares most
        words, in the names of the other end and in the predicate; then the first stated."""
        units, words, own = split_units(query), self._load_words(), self.graph.numbers_of([id])
        predicates = {n: set(split_units(text)) for n, text in self.graph.read_words().items()}

        def choose_rows(rows: Rows) -> Iterable[int]:
            heads = words.arrays["heads"]
            others = np.where(heads[rows[:, 0]] == own[0], rows[:, 2], rows[:, 0])
            wanted = set(units)
            overlap = {n: len(wanted & predicates[n]) for n in np.unique(rows[:, 1]).tolist()}
            shared = np.array([overlap[n] for n in rows[:, 1].tolist()], dtype=np.float64)
            for _, holders in words.find_holders(units, corrected=False):
                at = np.minimum(np.searchsorted(holders, others), len(holders) - 1)
                shared += holders[at] == others
            order = np.argsort(-shared, kind="stable")[:most]
            places: list[int] = np.sort(order).tolist()
            return places

        return self.graph.choose_edges(id, choose_rows) if own else []

    def _load_words(self) -> _Words:
        arrays = self.graph.load_arrays()
        with self._lock:
            if self._held is None or self._held[0] is not arrays:
                self._held = arrays, _Words(arrays)
            return self._held[1]


class _Words:
    """The vocabulary in memory, with the concepts that have each word."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays = arrays
        self.vocabulary = words_of(arrays)
        self.order = sorted(range(len(self.vocabulary)), key=self.vocabulary.__getitem__)
        self.total = max(1, len(arrays["heads"]))

    def find_holders(
        self, units: Sequence[str], *, corrected: bool = True
    ) -> list[tuple[float, Concepts]]:
        """For each unit that the vocabulary has: its IDF and the concepts with it, rarest first."""
        weighted = []
        for unit in dict.fromkeys(units):
            numbers = self._near_words(unit) if corrected else self._same_words(unit)
            first = self.arrays["first"]
            lists = [self.arrays["holder"][first[n] : first[n + 1]] for n in numbers]
            if lists:
                holders = lists[0] if len(lists) == 1 else np.unique(np.concatenate(lists))
                weighted.append((float(np.log(1 + self.total / len(holders))), holders))
        return sorted(weighted, key=lambda pair: (-pair[0], len(pair[1])))

    def _near_words(self, unit: str) -> list[int]:
        """Numbers of the word itself and of those that are one edit away."""
        with require_extra("graph", _MISSPELT, CapabilityMissing):
            from rapidfuzz import distance
        near = {
            n
            for n in self._words_sharing(unit)
            if distance.OSA.distance(unit, self.vocabulary[n], score_cutoff=1) <= 1
        }
        return sorted(near.union(self._same_words(unit)))

    def _same_words(self, unit: str) -> list[int]:
        at = bisect_left(self.order, unit, key=self.vocabulary.__getitem__)
        there = self.order[at : at + 1]
        return [number for number in there if self.vocabulary[number] == unit]

    def _words_sharing(self, unit: str) -> set[int]:
        numbers: set[int] = set()
        for checksum in spelling_variants(unit):
            wanted = np.uint32(checksum)
            begin = np.searchsorted(self.arrays["variant"], wanted)
            end = np.searchsorted(self.arrays["variant"], wanted, side="right")
            numbers.update(self.arrays["variant_of"][begin:end].tolist())
        return numbers


def _likely_concepts(holders: Sequence[tuple[float, Concepts]]) -> list[int]:
    """The 100 best concepts by the weight of shared words, all with one of the two rarest."""
    if not holders:
        return []
    rare = [concepts for _, concepts in holders[:2] if len(concepts) <= _MOST_HOLDERS]
    candidates = np.unique(np.concatenate(rare or [holders[0][1][:_MOST_HOLDERS]]))
    weights = np.zeros(len(candidates))
    for weight, concepts in holders:
        at = np.minimum(np.searchsorted(concepts, candidates), len(concepts) - 1)
        weights += weight * (concepts[at] == candidates)
    if len(candidates) > _COMPARED:
        best = np.lexsort((candidates, -weights))[:_COMPARED]
        candidates = candidates[best]
    found: list[int] = candidates.tolist()
    return found


FILE = "names.vectors"
FUZZY = 0.8
"""Least cosine of a name that is near (KAG's fuzzy retriever of the graph)."""
SEED = 0.7
"""Least cosine of a name from which a walk begins (KAG's retriever of chunks by PageRank)."""
MOST_AT_ONCE = 500
"""Names that a search encodes by itself: a few seconds. Of larger graphs they are made before."""
_BATCH = 256
_PRODUCT = 50_000

Names = dict[str, Array]


class NameVectors:
    """Nearest names of a graph. Thread-safe; every method blocks."""

    def __init__(self, graph: Graph, encoder: Encoder, *, most: int = MOST_AT_ONCE) -> None:
        """Names of a graph of up to `most` are encoded when they are first looked for."""
        self._graph, self._most = graph, most
        # Vectors of two encoders do not compare, and by the one for Chinese any two names are
        # nearer than the bounds above.
        self._encoder = encoder_for(encoder, "en")
        self._lock = threading.Lock()
        self._held: tuple[str, Names | None] = "", None

    def find_near(self, text: str, *, k: int, least: float) -> list[NamedConcept]:
        """The `k` concepts with the nearest names, best first; equal ones by identifier.

        None in a language that the encoder does not know, and none of a large graph whose names
        have no vectors yet.
        """
        if language_of(text) not in self._encoder.languages or not (names := self._load_names()):
            return []
        asked = self._encoder.encode([text], kind="query")[0]
        scores = _multiply(names["vector"].reshape(-1, self._encoder.dimension), asked)
        best: dict[int, tuple[float, int]] = {}
        for row in np.flatnonzero(scores >= least).tolist():
            head = int(names["head"][row])
            best[head] = max(best.get(head, (-1.0, 0)), (float(scores[row]), -row))
        ids = self._graph.ids_of(best)
        ranked = sorted(best.items(), key=lambda pair: (-pair[1][0], ids[pair[0]]))[:k]
        return [
            NamedConcept(ids[head], self._name_of(names, -row), "near", min(score, 1.0))
            for head, (score, row) in ranked
        ]

    def build(self) -> int:
        """Makes the vectors of all names, however many; returns their number."""
        made = self._load_names(every=True)
        return len(made["head"]) if made else 0

    def _name_of(self, names: Names, row: int) -> str:
        number = int(names["concept"][row])
        return self._graph.names_of([number])[number][int(names["place"][row])]

    def _load_names(self, *, every: bool = False) -> Names | None:
        with self._lock:
            stamp = f"{self._graph.version} {self._encoder.identity}"
            if self._held[0] != stamp or self._held[1] is None:
                names = files.read_arrays(self._graph.folder, stamp, file=FILE)
                self._held = stamp, names or self._make_names(stamp, every=every)
            return self._held[1]

    def _make_names(self, stamp: str, *, every: bool) -> Names | None:
        if not every and self._graph.get_info().names > self._most:
            return None
        return files.keep_arrays(self._graph.folder, stamp, self._encode_names(), file=FILE)

    def _encode_names(self) -> Names:
        heads = self._graph.load_arrays()["heads"]
        rows = list(self._known_names(len(heads)))
        texts = [text for _, _, text in rows]
        parts = [
            self._encoder.encode(texts[at : at + _BATCH], kind="query").astype(np.float16)
            for at in range(0, len(texts), _BATCH)
        ]
        concepts = np.array([number for number, _, _ in rows], dtype=np.int32)
        return {
            "concept": concepts,
            "place": np.array([place for _, place, _ in rows], dtype=np.int32),
            "head": heads[concepts].astype(np.int32),
            "vector": np.concatenate([part.ravel() for part in parts] or [np.zeros(0, np.float16)]),
        }

    def _known_names(self, concepts: int) -> Iterator[tuple[int, int, str]]:
        """Each name in a language of the encoder, with its concept and its place among names."""
        for at in range(0, concepts, _PRODUCT):
            named = self._graph.names_of(range(at, min(at + _PRODUCT, concepts)))
            for number, texts in named.items():
                for place, text in enumerate(texts):
                    if language_of(text) in self._encoder.languages:
                        yield number, place, text


def _multiply(vectors: Array, asked: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cosines, by parts: half-precision numbers are widened only for the product."""
    parts = [
        vectors[at : at + _PRODUCT].astype(np.float32) @ asked
        for at in range(0, len(vectors), _PRODUCT)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)

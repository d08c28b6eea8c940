"""Names of concepts by their vectors, as KAG's retrievers link them (KAG-Thinker §3.4).

The vectors are derived: they lie beside the graph, with the version of the graph and of the
encoder that they were made with.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from osler.graph import files as stored
from osler.graph.items import NamedConcept
from osler.graph.store import Graph
from osler.kb.encoders.base import Encoder
from osler.kb.encoders.by_language import encoder_for
from osler.text import language_of

FILE = "names.vectors"
EXACT = 0.9
"""Least cosine of a name that means the same (KAG's exact retriever of the graph)."""
FUZZY = 0.8
"""Least cosine of a name that is near (KAG's fuzzy retriever of the graph)."""
SEED = 0.7
"""Least cosine of a name from which a walk begins (KAG's retriever of chunks by PageRank)."""
MOST_AT_ONCE = 500
"""Names that a search encodes by itself: a few seconds. Of larger graphs they are made before."""
_BATCH = 256
_PRODUCT = 50_000

Names = dict[str, stored.Array]


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
                names = stored.read_arrays(self._graph.folder, stamp, file=FILE)
                self._held = stamp, names or self._make_names(stamp, every=every)
            return self._held[1]

    def _make_names(self, stamp: str, *, every: bool) -> Names | None:
        if not every and self._graph.get_info().names > self._most:
            return None
        names = self._encode_names()
        try:
            stored.write_arrays(self._graph.folder, stamp, names, file=FILE)
        except OSError:  # a folder that may not be written to: they are held in memory
            return names
        return stored.read_arrays(self._graph.folder, stamp, file=FILE) or names

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


def _multiply(vectors: stored.Array, asked: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cosines, by parts: half-precision numbers are widened only for the product."""
    parts = [
        vectors[at : at + _PRODUCT].astype(np.float32) @ asked
        for at in range(0, len(vectors), _PRODUCT)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)

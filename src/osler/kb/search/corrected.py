"""An index beside the file, and the passages that were corrected since it was made.

The index is never changed: what it finds of a passage that was corrected is dropped, and the
corrected ones, which are few, are scored here by the same formulas.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from osler.kb.search import lexicon, sparse
from osler.kb.search.base import PassageFilter, Ranking, SearchBackend
from osler.kb.search.exact import allowed_by
from osler.kb.search.vectors import Floats
from osler.kb.store import access
from osler.kb.store.passages import (
    in_scope,
    indexed_text,
    read_by_number,
    read_corrections,
    read_stored_vectors,
)
from osler.types import Passage

_Scorer = Callable[[sqlite3.Connection, dict[int, Passage]], Ranking]


class EncodedBackend(SearchBackend, Protocol):
    """A `SearchBackend` that says whose vectors it searches."""

    def encoder_identity(self) -> str:
        """Returns the identity of the encoder whose vectors it searches."""


class CorrectedBackend:
    """An index and the corrections since it was made. `close` closes the index."""

    def __init__(self, index: EncodedBackend, readers: access.ReaderPool) -> None:
        self._index, self._readers = index, readers
        self._stems = sparse.StemHasher()

    def by_words(self, terms: Sequence[str], *, k: int, within: PassageFilter) -> Ranking:
        def find(n: int) -> list[Ranking]:
            return [self._index.by_words(terms, k=n, within=within)]

        return self._add_corrected(find, [self._score_words(terms)], k, within)[0]

    def by_vector(self, query: Floats, *, k: int, within: PassageFilter) -> Ranking:
        def find(n: int) -> list[Ranking]:
            return [self._index.by_vector(query, k=n, within=within)]

        return self._add_corrected(find, [_score_vectors(query)], k, within)[0]

    def by_both(
        self, terms: Sequence[str], query: Floats, *, k: int, within: PassageFilter
    ) -> tuple[Ranking, Ranking]:
        def find(n: int) -> list[Ranking]:
            return [*self._index.by_both(terms, query, k=n, within=within)]

        scorers = [_score_vectors(query), self._score_words(terms)]
        dense, words = self._add_corrected(find, scorers, k, within)
        return dense, words

    def encoder_identity(self) -> str:
        return self._index.encoder_identity()

    def close(self) -> None:
        self._index.close()
        self._stems.close()

    def _add_corrected(
        self,
        find: Callable[[int], list[Ranking]],
        scorers: Sequence[_Scorer],
        k: int,
        within: PassageFilter,
    ) -> list[Ranking]:
        """The best of index and corrected passages. `find` asks the index for its n best."""
        with self._readers.borrow() as db:
            corrections = read_corrections(db)
            if not corrections:
                return find(k)
            mentioned = {number for pair in corrections for number in pair}
            passages = {
                number: passage
                for number, passage in read_by_number(db, mentioned).items()
                if in_scope(passage.source, within.sources)
            }
            allowed = allowed_by(db, within)
            merged = []
            for ranking, score in zip(find(k + len(mentioned)), scorers, strict=True):
                kept = [pair for pair in ranking if pair[0] not in mentioned]
                own = allowed([pair for pair in score(db, passages) if pair[1] > 0])
                merged.append(sorted([*kept, *own], key=lambda pair: (-pair[1], pair[0]))[:k])
        return merged

    def _score_words(self, terms: Sequence[str]) -> _Scorer:
        """BM25 as the index computes it; a word's rarity is that in the whole knowledge base."""

        def score(db: sqlite3.Connection, passages: dict[int, Passage]) -> Ranking:
            rarity = lexicon.term_rarity(db, terms)
            (places,) = self._stems.word_places([list(terms)])
            of_place = {place: rarity[term] for place, term in zip(places, terms, strict=True)}
            texts = [indexed_text(passage) for passage in passages.values()]
            scores = [
                sum(weight * of_place.get(place, 0.0) for place, weight in zip(*words, strict=True))
                for words in sparse.passage_vectors(self._stems, texts)
            ]
            return list(zip(passages, scores, strict=True))

        return score


def _score_vectors(query: Floats) -> _Scorer:
    def score(db: sqlite3.Connection, passages: dict[int, Passage]) -> Ranking:
        return [
            (number, float(np.vecdot(np.frombuffer(value, np.float32), query)))
            for number, value in read_stored_vectors(db, passages).items()
        ]

    return score

"""Words as sparse vectors, so that a vector index ranks by BM25.

A passage's weights are the part of BM25 that depends on it alone; the engine multiplies
them with the inverse document frequency (Qdrant's `idf` modifier). A word's place is a
hash of its stem, so vectors made anywhere, at any time, fit together.
"""

from __future__ import annotations

import sqlite3
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence

from osler.kb.search.base import PassageFilter, Ranking
from osler.kb.search.vectors import Floats
from osler.text import is_cjk, split_words

VERSION = "1"
"""Raised with every change to the numbers below: an index of another version is made anew."""

K1, B = 1.2, 0.75
AVERAGE = 120.0
"""Words of an average passage with its heading. A constant, since a mean over the passages
would change all vectors with each that is added. Measured: 117 in guidelines, 118 in MedQuAD,
117 in textbooks, 105 in Wikipedia."""
AVERAGE_CHINESE = 700.0
"""Characters and pairs of an average Chinese passage: 714 in encyclopaedia articles."""

_HELD = 500_000
"""Stems kept in memory, about 60 MB; then it begins anew."""

Sparse = tuple[list[int], list[float]]
"""Places, each once, and weights."""


class StemHasher:
    """Hashes the stems of words to places. One object serves any number of threads.

    The stems are those of SQLite's full-text index, from the same tokenizer, so that
    both engines hold the same forms of a word for one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[str, int] = {}
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._db.executescript(
            "CREATE VIRTUAL TABLE one USING fts5(words, tokenize='porter unicode61');"
            "CREATE VIRTUAL TABLE token USING fts5vocab(one, 'instance');"
        )

    def close(self) -> None:
        self._db.close()

    def word_places(self, texts: Sequence[Sequence[str]]) -> list[list[int]]:
        """Returns the places of each text's words, in order."""
        with self._lock:
            if len(self._places) > _HELD:
                self._places = {}
            known = self._places
            # A difference of sets would walk through all that is held, 0.2 ms a query.
            if unseen := {word for text in texts for word in text if word not in known}:
                self._learn_words(sorted(unseen))
            return [[known[word] for word in text] for text in texts]

    def _learn_words(self, unseen: list[str]) -> None:
        latin = [word for word in unseen if not is_cjk(word[0])]
        stems = self._stem_latin(latin)
        for word in unseen:
            self._places[word] = zlib.crc32(stems.get(word, word).encode())

    def _stem_latin(self, latin: list[str]) -> dict[str, str]:
        """Stems the words that the tokenizer takes for one; "1.5" is two to it, and stays."""
        self._db.execute("BEGIN")
        self._db.executemany("INSERT INTO one(rowid, words) VALUES (?, ?)", enumerate(latin))
        tokens_of: dict[str, list[str]] = {}
        for token, row in self._db.execute("SELECT term, doc FROM token"):
            tokens_of.setdefault(latin[row], []).append(token)
        self._db.execute("ROLLBACK")
        return {word: tokens[0] for word, tokens in tokens_of.items() if len(tokens) == 1}


def passage_vectors(stems: StemHasher, texts: Sequence[str]) -> list[Sparse]:
    """Makes the vectors of passages, each given as it is indexed (heading before text)."""
    cut = [split_words(text) for text in texts]
    placed = stems.word_places(cut)
    return [
        _weigh_places(places, chinese=bool(text) and is_cjk(text[len(text) // 2][0]))
        for places, text in zip(placed, cut, strict=True)
    ]


def query_vector(stems: StemHasher, terms: Iterable[str]) -> Sparse:
    """Makes the vector of a query: each word counts once."""
    (places,) = stems.word_places([list(terms)])
    distinct = sorted(set(places))
    return distinct, [1.0] * len(distinct)


def _weigh_places(places: list[int], *, chinese: bool) -> Sparse:
    average = AVERAGE_CHINESE if chinese else AVERAGE
    norm = K1 * (1 - B + B * len(places) / average)
    counts = sorted(Counter(places).items())
    return [place for place, _ in counts], [n * (K1 + 1) / (n + norm) for _, n in counts]


class SparseDenseBackend:
    """A backend whose index answers words and vectors, as sparse and dense, in one request."""

    _stems: StemHasher

    def _search(
        self, k: int, within: PassageFilter, words: Sparse | None, dense: Floats | None
    ) -> list[Ranking]:
        """Returns one ranking for each of `dense` and `words` that is given, in this order."""
        raise NotImplementedError

    def by_words(self, terms: Sequence[str], *, k: int, within: PassageFilter) -> Ranking:
        return self._search(k, within, query_vector(self._stems, terms), None)[0] if terms else []

    def by_vector(self, query: Floats, *, k: int, within: PassageFilter) -> Ranking:
        (ranking,) = self._search(k, within, None, query)
        return _positive_only(ranking)

    def by_both(
        self, terms: Sequence[str], query: Floats, *, k: int, within: PassageFilter
    ) -> tuple[Ranking, Ranking]:
        if not terms:
            return self.by_vector(query, k=k, within=within), []
        dense, lexical = self._search(k, within, query_vector(self._stems, terms), query)
        return _positive_only(dense), lexical


def _positive_only(ranking: Ranking) -> Ranking:
    """Drops products of zero or less: they are no likeness."""
    return [pair for pair in ranking if pair[1] > 0]

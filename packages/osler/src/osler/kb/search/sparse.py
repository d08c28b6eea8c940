"""Search by words: the full-text index, and words as sparse vectors for a vector index.

The full-text index is BM25 (k1 = 1.2, b = 0.75) over stemmed English words and Chinese n-grams.

A passage's sparse weights are the part of BM25 that depends on it alone; the engine multiplies
them with the inverse document frequency (Qdrant's `idf` modifier). A word's place is a
hash of its stem, so vectors made anywhere, at any time, fit together.
"""

from __future__ import annotations

import sqlite3
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from math import log

from osler.kb.search.base import Floats, PassageFilter, Ranking
from osler.kb.store.passages import Scope, source_token
from osler.sources.catalogue import EMR
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

_TOKENIZER = (
    "CREATE VIRTUAL TABLE one USING fts5(words, tokenize='porter unicode61');"
    "CREATE VIRTUAL TABLE token USING fts5vocab(one, 'instance');"
)

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
        self._db.executescript(_TOKENIZER)

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


MOST_TERMS = 64
"""A query of more terms keeps its rarest.

FTS5 looks at every passage that holds any term, so that long questions cost the
most. On 11,000 passages of MedQuAD a clinical vignette (68 terms) took 15.5 ms
(median), with 64 terms 10 ms and with 32 terms 3 ms; but with 32 the right
answer stood in the ten best for 9 % of the questions instead of 15 %.
"""


MOST_NEAR = 4_000
"""Terms that a misspelt word is compared with."""


def search_words(
    db: sqlite3.Connection, terms: Sequence[str], *, k: int, scope: Scope
) -> list[tuple[int, float]]:
    """Ranks the `k` best passages with any of `terms`: numbers and BM25 (higher is better)."""
    kept = rarest_terms(db, terms) if len(terms) > MOST_TERMS else list(terms)
    if not kept or scope == ():
        return []
    # Weight 0 for the column `source`: its token selects passages and must not rank them.
    rows = db.execute(
        "SELECT rowid, bm25(lexical, 1.0, 0.0) AS score FROM lexical WHERE lexical MATCH ?"
        " ORDER BY score, rowid LIMIT ?",
        (match_expression(kept, scope), k),
    )
    return [(number, -score) for number, score in rows]


def match_expression(terms: Sequence[str], scope: Scope) -> str:
    """Writes the FTS5 condition on the columns `words` and `source`."""
    body = f"words : ({_any_of(terms)})"
    if scope is None:
        return f"({body}) NOT (source : {_quote_term(source_token(EMR))})"
    return f"({body}) AND (source : ({_any_of([source_token(source) for source in scope])}))"


def _any_of(terms: Sequence[str]) -> str:
    return " OR ".join(map(_quote_term, terms))


def _quote_term(term: str) -> str:
    doubled = term.replace('"', '""')
    return f'"{doubled}"'


def term_rarity(db: sqlite3.Connection, terms: Sequence[str]) -> dict[str, float]:
    """Computes the inverse document frequency of each term as BM25 does, at least 0.

    A term that no passage holds tells most.
    """
    count: int = db.execute("SELECT count(*) FROM passage").fetchone()[0]
    counts = _term_frequencies(db, terms)
    return {t: log(1 + (count - counts[t] + 0.5) / (counts[t] + 0.5)) for t in terms}


def near_terms(db: sqlite3.Connection, word: str) -> list[str]:
    """The index's terms that begin with a word's first two letters and are about as long, the
    commonest first: what a misspelt word may have meant."""
    start, length = word[:2].casefold(), len(word)
    rows = db.execute(
        "SELECT term FROM term WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ?"
        " ORDER BY doc DESC, term LIMIT ?",
        (start, start + "\uffff", length - 2, length + 2, MOST_NEAR),
    )
    return [term for (term,) in rows]


def _term_frequencies(db: sqlite3.Connection, terms: Sequence[str]) -> dict[str, int]:
    """Counts the passages that hold each term's stem."""
    stems = stem_terms(terms)
    counts = dict.fromkeys(stems.values(), 0)
    for stem in counts:
        row = db.execute("SELECT doc FROM term WHERE term = ?", (stem,)).fetchone()
        counts[stem] = row[0] if row else 0
    return {term: counts.get(stems.get(term, ""), 0) for term in terms}


def rarest_terms(db: sqlite3.Connection, terms: Sequence[str]) -> list[str]:
    """Selects the `MOST_TERMS` terms that the fewest passages hold, of those that any passage
    holds.
    """
    counts = _term_frequencies(db, terms)
    known = [term for term in terms if counts[term]]
    return sorted(known, key=lambda term: counts[term])[:MOST_TERMS]


_MOST_STEMS = 100_000
_stems: dict[str, str] = {}
"""Stems of terms seen before: a question's passages share most words with the last question's."""


def stem_terms(terms: Sequence[str]) -> dict[str, str]:
    """Stems each term with the index's own tokenizer.

    Of a term in several tokens ("1.5") it is the last.
    """
    found = {term: _stems.get(term) for term in terms}
    if new := [term for term, stem in found.items() if stem is None]:
        stems = {term: tokens[-1] for term, tokens in tokenize_terms(new).items() if tokens}
        found |= stems
        if len(_stems) + len(stems) > _MOST_STEMS:
            _stems.clear()
        _stems.update(stems)
    return {term: stem for term, stem in found.items() if stem is not None}


def tokenize_terms(terms: Sequence[str]) -> dict[str, list[str]]:
    """The tokens of the index for each term, in order."""
    tokens: dict[str, list[str]] = {term: [] for term in terms}
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(_TOKENIZER)
        db.executemany("INSERT INTO one(rowid, words) VALUES (?, ?)", enumerate(terms))
        for row, token in db.execute("SELECT doc, term FROM token ORDER BY doc, offset"):
            tokens[terms[row]].append(token)
    return tokens

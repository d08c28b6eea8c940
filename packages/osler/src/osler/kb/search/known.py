"""Search by words over what was known on a day, as if nothing had come after it.

A filter alone would not do: how rare a word is and how long a text usually is count in BM25, and
later documents change both. Here they are counted over the earlier ones, so that an answer as of
a day is the one that a knowledge base of that day gives. The counts are read from the full-text
index; those of a knowledge base of 100,000 passages take about half a second, once.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log

from osler.kb.search.base import Ranking
from osler.kb.search.sparse import K1, MOST_NEAR, MOST_TERMS, B, tokenize_terms
from osler.kb.store.passages import Scope, in_scope
from osler.kb.store.works import latest_day

_LEAST_RARITY = 1e-6
"""Of a word that most passages hold, as in SQLite's BM25."""
_HELD = 4
"""Days whose counts are kept."""
_INSTANCES = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.place USING fts5vocab(main, lexical, instance)"
)


@dataclass(frozen=True, slots=True)
class KnownTexts:
    """The passages of documents that are dated, and not later than a day."""

    lengths: dict[int, int]
    """Passage → words of it in the index."""
    sources: dict[int, str]
    """Passage → its source."""

    def rank_words(
        self, db: sqlite3.Connection, terms: Sequence[str], *, k: int, scope: Scope
    ) -> Ranking:
        """The `k` best by BM25 with any of `terms`, as `sparse.search_words` gives them."""
        if len(terms) > MOST_TERMS:
            rarity_of = self.term_rarity(db, terms)
            held = [
                term for term in terms if rarity_of[term] < log(1 + (len(self.lengths) + 0.5) / 0.5)
            ]
            terms = sorted(held, key=lambda term: -rarity_of[term])[:MOST_TERMS]
        found = {term: self._occurrences(db, term) for term in terms}
        total, average = len(self.lengths), sum(self.lengths.values()) / max(1, len(self.lengths))
        scores: dict[int, float] = defaultdict(float)
        for counts in found.values():
            rarity = log((total - len(counts) + 0.5) / (len(counts) + 0.5)) if counts else 0.0
            for number, times in counts.items():
                norm = K1 * (1 - B + B * self.lengths[number] / average)
                scores[number] += max(rarity, _LEAST_RARITY) * times * (K1 + 1) / (times + norm)
        # Rounded, so that equal scores are equal in whatever order they were summed.
        ranked = sorted(
            (-round(score, 9), number)
            for number, score in scores.items()
            if in_scope(self.sources[number], scope)
        )
        return [(number, -score) for score, number in ranked[:k]]

    def term_rarity(self, db: sqlite3.Connection, terms: Sequence[str]) -> dict[str, float]:
        """As `sparse.term_rarity`."""
        total = len(self.lengths)
        counts = {term: len(self._occurrences(db, term, last=True)) for term in terms}
        return {term: log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in counts.items()}

    def near_terms(self, db: sqlite3.Connection, word: str) -> list[str]:
        """As `sparse.near_terms`."""
        start, length = word[:2].casefold(), len(word)
        db.execute(_INSTANCES)
        rows = db.execute(
            "SELECT DISTINCT term, doc FROM temp.place WHERE term >= ? AND term < ?"
            " AND length(term) BETWEEN ? AND ?",
            (start, start + "\uffff", length - 2, length + 2),
        )
        held = Counter(term for term, number in rows if number in self.lengths)
        return sorted(held, key=lambda term: (-held[term], term))[:MOST_NEAR]

    def _occurrences(
        self, db: sqlite3.Connection, term: str, *, last: bool = False
    ) -> dict[int, int]:
        """Passage → how often it has the term's tokens, one behind the other; with `last` only the
        last of them counts, and headings of sources too."""
        db.execute(_INSTANCES)
        tokens = _tokenize(term)
        column = "" if last else " AND col = 'words'"
        select = f"SELECT doc, offset FROM temp.place WHERE term = ?{column}"  # noqa: S608
        starts: set[tuple[int, int]] | None = None
        for place, token in enumerate(tokens[-1:] if last else tokens):
            here = {(doc, at - place) for doc, at in db.execute(select, (token,))}
            starts = here if starts is None else starts & here
        return Counter(doc for doc, _ in starts or () if doc in self.lengths)


_held: dict[tuple[object, ...], KnownTexts] = {}


def known_until(db: sqlite3.Connection, day: int) -> KnownTexts:
    """The passages of documents up to this day, as 20240131; documents without a year are not among
    them, and one of which the month or the year alone is known counts as of its last day."""
    (_, _, path), *_ = db.execute("PRAGMA database_list")
    (passages,) = db.execute("SELECT count(*), total(number) FROM passage")
    (documents,) = db.execute("SELECT count(year), total(year) FROM document")
    key = (path, day, *passages, *documents)
    if key not in _held:
        rows = db.execute(
            "SELECT passage.number, passage.source, sz FROM document"  # noqa: S608 - constants
            " JOIN passage ON passage.document = document.number"
            " JOIN lexical_docsize ON lexical_docsize.id = passage.number"
            f" WHERE {latest_day(db)} <= ?",
            (day,),
        ).fetchall()
        while len(_held) >= _HELD:
            _held.pop(next(iter(_held)), None)
        _held[key] = KnownTexts(
            {number: _count_words(size) for number, _, size in rows},
            {number: source for number, source, _ in rows},
        )
    return _held[key]


def _count_words(size: bytes) -> int:
    """The tokens of both columns, which FTS5 keeps as numbers of seven bits a byte."""
    total = value = 0
    for byte in size:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            total, value = total + value, 0
    return total


@lru_cache(maxsize=10_000)
def _tokenize(term: str) -> tuple[str, ...]:
    """The tokens of the index for a term, in order."""
    return tuple(tokenize_terms([term])[term])

"""The engine of the core install: full-text index and exact vectors of the one SQLite file.

It needs nothing built beside the file and is the reference for the others. Beyond a few
hundred thousand passages it is slow: its time grows with the passages that share a word.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from osler.kb.search import lexicon, vectors
from osler.kb.search.base import Filter, Ranking, passing
from osler.kb.store import access
from osler.kb.store.passages import meta


@dataclass(frozen=True)
class _Held:
    """The vectors of one build."""

    build: str
    """Its number; the snapshot does not tell a passage from one taken out and added again."""
    encoder: str
    vectors: vectors.Vectors


@dataclass
class Exact:
    """An `Engine` over an open knowledge base. Its owner closes `readers`."""

    readers: access.Readers
    _held: _Held | None = None
    _loading: threading.Lock = field(default_factory=threading.Lock)

    def by_words(self, terms: Sequence[str], *, k: int, within: Filter) -> Ranking:
        with self.readers.borrow() as db:

            def fetch(n: int) -> Ranking:
                return lexicon.search(db, terms, k=n, scope=within.sources)

            return passing(fetch, allowed_by(db, within), k)

    def by_vector(self, query: vectors.Floats, *, k: int, within: Filter) -> Ranking:
        held = self._vectors()
        scores = held.scores(query, within.sources)
        with self.readers.borrow() as db:

            def fetch(n: int) -> Ranking:
                return held.best(scores, n)

            return passing(fetch, allowed_by(db, within), k)[:k]

    def by_both(
        self, terms: Sequence[str], query: vectors.Floats, *, k: int, within: Filter
    ) -> tuple[Ranking, Ranking]:
        dense = self.by_vector(query, k=k, within=within)
        return dense, self.by_words(terms, k=k, within=within)

    def encoder(self) -> str:
        """Identity of the encoder whose vectors are searched."""
        self._vectors()
        return self._held.encoder if self._held else ""

    def close(self) -> None:
        self._held = None

    def _vectors(self) -> vectors.Vectors:
        """Held in memory, and read again when a build has ended since."""
        with self._loading, self.readers.borrow() as db, access.still(db):
            build = meta(db, "builds") if meta(db, "built") == "yes" else ""
            if self._held is None or (build and self._held.build != build):
                dimension = int(meta(db, "dimension") or 0)
                self._held = _Held(build, meta(db, "encoder"), vectors.load(db, dimension))
            return self._held.vectors


_AMONG = (
    "SELECT passage.number FROM passage JOIN document ON document.number = passage.document"
    " WHERE passage.number IN (SELECT value FROM json_each(?))"
)


def allowed_by(db: sqlite3.Connection, within: Filter) -> Callable[[Ranking], Ranking]:
    """Keeps of a ranking what meets the conditions; sources are a matter of the indexes."""
    conditions, values = _conditions(within)
    if not conditions:
        return lambda found: found
    sql = " AND ".join((_AMONG, *conditions))

    def allowed(found: Ranking) -> Ranking:
        numbers = json.dumps([number for number, _ in found])
        passed = {number for (number,) in db.execute(sql, (numbers, *values))}
        return [pair for pair in found if pair[0] in passed]

    return allowed


def _conditions(within: Filter) -> tuple[list[str], list[object]]:
    """Of the documents' columns."""
    first, last = within.years
    given: list[tuple[str, object, bool]] = [
        ("document.year >= ?", first, first is not None),
        ("document.year <= ?", last, last is not None),
        ("document.trust >= ?", within.trust, within.trust > 1),
        (
            "passage.language IN (SELECT value FROM json_each(?))",
            json.dumps(within.languages),
            bool(within.languages),
        ),
        (
            # One type a line; SQLite folds the case of Latin letters only.
            "EXISTS (SELECT 1 FROM json_each(?) WHERE instr("
            "char(10) || lower(document.kinds) || char(10), char(10) || value || char(10)))",
            json.dumps(within.folded, ensure_ascii=False),
            bool(within.kinds),
        ),
    ]
    chosen = [(sql, value) for sql, value, wanted in given if wanted]
    conditions = [sql for sql, _ in chosen]
    if not within.retracted:
        conditions.append("NOT document.retracted")
    return conditions, [value for _, value in chosen]

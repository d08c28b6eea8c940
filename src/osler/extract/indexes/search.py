"""Searching the indexes: passages by their entries' vectors, and by their words."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from osler.errors import KnowledgeBaseMismatch, KnowledgeBaseUnbuilt
from osler.extract.indexes import store
from osler.extract.indexes.kinds import Kind
from osler.kb.search import lexicon, vectors
from osler.kb.search.base import Filter, Ranking, passing
from osler.kb.search.exact import allowed_by
from osler.kb.search.vectors import Floats, Vectors
from osler.kb.store import access
from osler.kb.store.passages import meta


@dataclass
class Entries:
    """The indexes of an open knowledge base, whose owner closes `readers`. Any number of threads
    may ask.

    A passage has the score of its best entry. Vectors are read at the first search, and
    again when the indexes have changed since.
    """

    readers: access.Readers
    _held: dict[Kind, tuple[str, Vectors]] = field(default_factory=dict)
    _loading: threading.Lock = field(default_factory=threading.Lock)

    def require(self, kinds: Iterable[Kind], encoder: str) -> None:
        """Raises `KnowledgeBaseUnbuilt` for an index that is not kept, `KnowledgeBaseMismatch`
        for one of another encoder."""
        with self.readers.borrow() as db:
            made = store.made(db)
        for kind in kinds:
            if kind not in made:
                raise KnowledgeBaseUnbuilt(
                    f"the index {kind} is not made", fix=f"run `osler kb index {kind}`"
                )
            if made[kind].encoder not in ("", encoder):
                raise KnowledgeBaseMismatch(
                    f"the index {kind} is of another encoder ({made[kind].encoder})",
                    fix=f"run `osler kb index {kind}`",
                )

    def by_vector(self, kind: Kind, query: Floats, *, k: int, within: Filter) -> Ranking:
        """Passage numbers by inner product, none at zero or below."""
        held = self._vectors(kind)
        if not len(held.numbers):
            return []
        scores = held.scores(query, within.sources)
        with self.readers.borrow() as db:

            def fetch(n: int) -> Ranking:
                return _distinct(held, scores, n)

            return passing(fetch, allowed_by(db, within), k)[:k]

    def by_words(self, kind: Kind, terms: Sequence[str], *, k: int, within: Filter) -> Ranking:
        """Passage numbers by BM25 of the entries with any of `terms`."""
        if within.sources == ():
            return []
        with self.readers.borrow() as db:
            if not store.exists(db):
                return []
            kept = lexicon.rarest(db, terms) if len(terms) > lexicon.MOST_TERMS else list(terms)
            if not kept:
                return []
            match = f'(kind : "{kind}") AND ({lexicon.match(kept, within.sources)})'

            def fetch(n: int) -> Ranking:
                return _matching(db, match, n)

            return passing(fetch, allowed_by(db, within), k)[:k]

    def _vectors(self, kind: Kind) -> Vectors:
        with self._loading, self.readers.borrow() as db:
            mark = meta(db, "indexed")
            if kind not in self._held or self._held[kind][0] != mark:
                self._held[kind] = mark, _load(db, kind)
            return self._held[kind][1]


def _distinct(held: Vectors, scores: Floats, n: int) -> Ranking:
    """The best entry of each of the `n` best passages."""
    wanted = n
    while True:
        rows = held.best(scores, wanted)
        best: dict[int, float] = {}
        for number, score in rows:
            best.setdefault(number, score)
        if len(best) >= n or len(rows) < wanted:
            return list(best.items())[:n]
        wanted *= 4


def _matching(db: sqlite3.Connection, match: str, n: int) -> Ranking:
    rows = db.execute(
        # MATERIALIZED: SQLite has bm25 only where no grouping is moved into the query.
        "WITH found AS MATERIALIZED (SELECT rowid AS n, bm25(index_words, 1.0, 0.0, 0.0) AS score"
        " FROM index_words WHERE index_words MATCH ?)"
        " SELECT passage, min(score) AS best FROM found JOIN index_entry USING (n)"
        " GROUP BY passage ORDER BY best, passage LIMIT ?",
        (match, n),
    )
    return [(number, -score) for number, score in rows]


def _load(db: sqlite3.Connection, kind: Kind) -> Vectors:
    """Raises `KnowledgeBaseMismatch` for vectors of several lengths."""
    held = store.made(db).get(kind)
    if held is None:
        return Vectors(np.zeros(0, np.int64), np.zeros((0, 0), np.float32), ())
    rows = db.execute(
        "SELECT e.passage, p.source, v.value FROM index_entry AS e JOIN index_vector AS v"
        " ON v.entry = e.n JOIN passage AS p ON p.number = e.passage WHERE e.kind = ?"
        " ORDER BY p.id, e.n",
        (kind,),
    ).fetchall()
    numbers = np.array([number for number, _, _ in rows], np.int64)
    matrix = np.zeros((len(rows), held.dimension), np.float32)
    for place, (_, _, value) in enumerate(rows):
        matrix[place] = np.frombuffer(value, np.float32)
    return Vectors(numbers, matrix, vectors.runs(source for _, source, _ in rows))

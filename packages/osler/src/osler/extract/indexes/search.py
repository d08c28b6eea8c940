"""Searches the indexes: passages by their entries' vectors and words."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from osler.errors import KnowledgeBaseMismatch, KnowledgeBaseUnbuilt
from osler.extract.indexes import Kind, store
from osler.kb.search import base, sparse
from osler.kb.search.base import Floats, PassageFilter, Ranking, VectorMatrix, fetch_allowed
from osler.kb.search.exact import allowed_by
from osler.kb.store import access
from osler.kb.store.passages import read_meta


@dataclass
class IndexEntries:
    """The indexes of an open knowledge base. Thread-safe; the owner of `readers` closes them.

    A passage has the score of its best entry. Vectors are loaded at the first search and again
    after the indexes have changed.
    """

    readers: access.ReaderPool
    _held: dict[Kind, tuple[str, VectorMatrix]] = field(default_factory=dict)
    _loading: threading.Lock = field(default_factory=threading.Lock)

    def require_kinds(self, kinds: Iterable[Kind], encoder: str) -> None:
        """Checks that the indexes can be searched with the encoder of this identity.

        Raises `KnowledgeBaseUnbuilt` for a missing index, `KnowledgeBaseMismatch` for one of
        another encoder.
        """
        with self.readers.borrow() as db:
            made = store.made_indexes(db)
        for kind in kinds:
            if kind not in made:
                raise KnowledgeBaseUnbuilt(
                    f"the index {kind} does not exist", fix=f"run `osler kb index {kind}`"
                )
            if made[kind].encoder not in ("", encoder):
                raise KnowledgeBaseMismatch(
                    f"the index {kind} was made with another encoder ({made[kind].encoder})",
                    fix=f"run `osler kb index {kind}`",
                )

    def by_vector(self, kind: Kind, query: Floats, *, k: int, within: PassageFilter) -> Ranking:
        """Passage numbers by inner product; only positive scores."""
        held = self._kind_vectors(kind)
        if not len(held.numbers):
            return []
        scores = held.score_rows(query, within.sources)
        with self.readers.borrow() as db:
            return fetch_allowed(
                lambda n: _best_by_passage(held, scores, n), allowed_by(db, within), k
            )[:k]

    def by_words(
        self, kind: Kind, terms: Sequence[str], *, k: int, within: PassageFilter
    ) -> Ranking:
        """Passage numbers by BM25 of entries that have any of `terms`."""
        if within.sources == ():
            return []
        with self.readers.borrow() as db:
            if not store.has_indexes(db):
                return []
            kept = sparse.rarest_terms(db, terms) if len(terms) > sparse.MOST_TERMS else list(terms)
            if not kept:
                return []
            match = f'(kind : "{kind}") AND ({sparse.match_expression(kept, within.sources)})'
            return fetch_allowed(
                lambda n: _matching_passages(db, match, n), allowed_by(db, within), k
            )[:k]

    def texts_of(self, kind: Kind, passages: Iterable[int]) -> dict[int, list[str]]:
        """The entries of passages in an index, by passage number, in the order of their making."""
        with self.readers.borrow() as db:
            if not store.has_indexes(db):
                return {}
            rows = db.execute(
                "SELECT passage, text FROM index_entry WHERE kind = ?"
                " AND passage IN (SELECT value FROM json_each(?)) ORDER BY n",
                (kind, json.dumps(list(passages))),
            )
            found: dict[int, list[str]] = {}
            for number, text in rows:
                found.setdefault(number, []).append(text)
            return found

    def _kind_vectors(self, kind: Kind) -> VectorMatrix:
        with self._loading, self.readers.borrow() as db:
            mark = read_meta(db, "indexed")
            if kind not in self._held or self._held[kind][0] != mark:
                self._held[kind] = mark, _load_vectors(db, kind)
            return self._held[kind][1]


def _best_by_passage(held: VectorMatrix, scores: Floats, n: int) -> Ranking:
    """The scores of the best `n` passages, each by its best entry."""
    wanted = n
    while True:
        rows = held.best_rows(scores, wanted)
        best: dict[int, float] = {}
        for number, score in rows:
            best.setdefault(number, score)
        if len(best) >= n or len(rows) < wanted:
            return list(best.items())[:n]
        # Several entries of one passage may fill the list: widen until enough passages are seen.
        wanted *= 4


def _matching_passages(db: sqlite3.Connection, match: str, n: int) -> Ranking:
    rows = db.execute(
        # MATERIALIZED: SQLite has bm25 only where no grouping is moved into the query.
        "WITH found AS MATERIALIZED (SELECT rowid AS n, bm25(index_words, 1.0, 0.0, 0.0) AS score"
        " FROM index_words WHERE index_words MATCH ?)"
        " SELECT passage, min(score) AS best FROM found JOIN index_entry USING (n)"
        " GROUP BY passage ORDER BY best, passage LIMIT ?",
        (match, n),
    )
    return [(number, -score) for number, score in rows]


def _load_vectors(db: sqlite3.Connection, kind: Kind) -> VectorMatrix:
    """Loads the vectors of one index. Raises `KnowledgeBaseMismatch` for mixed dimensions."""
    held = store.made_indexes(db).get(kind)
    if held is None:
        return VectorMatrix(np.zeros(0, np.int64), np.zeros((0, 0), np.float32), ())
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
    return VectorMatrix(numbers, matrix, base.source_runs(source for _, source, _ in rows))

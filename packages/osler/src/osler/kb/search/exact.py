"""The backend of the core install: full-text index and exact vectors of the SQLite file.

It needs nothing built beside the file and is the reference for the others. Beyond a few
hundred thousand passages it is slow: its time grows with the passages that share a word.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from osler.kb.search import sparse
from osler.kb.search.base import (
    Floats,
    PassageFilter,
    Ranking,
    VectorMatrix,
    fetch_allowed,
    fold_kind,
    load_vectors,
    read_vectors,
)
from osler.kb.search.known import known_until
from osler.kb.store import access
from osler.kb.store.passages import read_corrections, read_meta
from osler.kb.store.works import latest_day


@dataclass(frozen=True)
class _LoadedVectors:
    """The vectors of one build, in memory."""

    build: str
    """Its number; the snapshot does not tell a passage from one taken out and added again."""
    encoder: str
    vectors: VectorMatrix
    corrections: list[tuple[int, int]]
    """Those that are in them."""


@dataclass
class ExactBackend:
    """A `SearchBackend` over an open knowledge base. Its owner closes `readers`."""

    readers: access.ReaderPool
    _held: _LoadedVectors | None = None
    _loading: threading.Lock = field(default_factory=threading.Lock)

    def by_words(self, terms: Sequence[str], *, k: int, within: PassageFilter) -> Ranking:
        with self.readers.borrow() as db:
            known = None if within.as_of is None else known_until(db, within.as_of)
            rank = known.rank_words if known else sparse.search_words

            def fetch_best(n: int) -> Ranking:
                return rank(db, terms, k=n, scope=within.sources)

            return fetch_allowed(fetch_best, allowed_by(db, within), k)

    def by_vector(self, query: Floats, *, k: int, within: PassageFilter) -> Ranking:
        loaded = self._load_vectors()
        scores = loaded.score_rows(query, within.sources)
        with self.readers.borrow() as db:
            fetch = partial(loaded.best_rows, scores)
            return fetch_allowed(fetch, allowed_by(db, within), k)[:k]

    def by_both(
        self, terms: Sequence[str], query: Floats, *, k: int, within: PassageFilter
    ) -> tuple[Ranking, Ranking]:
        dense = self.by_vector(query, k=k, within=within)
        return dense, self.by_words(terms, k=k, within=within)

    def encoder_identity(self) -> str:
        """Identity of the encoder whose vectors are searched."""
        self._load_vectors()
        return self._held.encoder if self._held else ""

    def close(self) -> None:
        self._held = None

    def _load_vectors(self) -> VectorMatrix:
        """Returns the vectors, held in memory and read again when a build has ended since; of
        passages corrected since, theirs alone are read."""
        with self._loading, self.readers.borrow() as db, access.read_transaction(db):
            build = read_meta(db, "builds") if read_meta(db, "built") == "yes" else ""
            corrections = read_corrections(db)
            held = self._held
            if held is None or (build and held.build != build):
                held = _read_all(db, build, corrections)
            elif corrections != held.corrections:
                held = _follow_corrections(db, held, corrections)
            self._held = held
            return held.vectors


def _read_all(
    db: sqlite3.Connection, build: str, corrections: list[tuple[int, int]]
) -> _LoadedVectors:
    loaded = load_vectors(db, int(read_meta(db, "dimension") or 0))
    return _LoadedVectors(build, read_meta(db, "encoder"), loaded, corrections)


def _follow_corrections(
    db: sqlite3.Connection, held: _LoadedVectors, corrections: list[tuple[int, int]]
) -> _LoadedVectors:
    known = len(held.corrections)
    later = corrections[known:]
    new = read_vectors(db, (after for _, after in later))
    matrix = held.vectors.replace_rows(later, new)
    if matrix is None or corrections[:known] != held.corrections:
        return _read_all(db, held.build, corrections)
    return replace(held, vectors=matrix, corrections=corrections)


_JOINED = "SELECT passage.number FROM passage JOIN document ON document.number = passage.document"
_AMONG = f"{_JOINED} WHERE passage.number IN (SELECT value FROM json_each(?))"  # noqa: S608


def allowed_by(db: sqlite3.Connection, within: PassageFilter) -> Callable[[Ranking], Ranking]:
    """Makes a filter for rankings by the conditions; sources are handled by the indexes."""
    conditions, values = _filter_conditions(db, within)
    if not conditions:
        return lambda ranking: ranking
    sql = " AND ".join((_AMONG, *conditions))

    def keep_allowed(ranking: Ranking) -> Ranking:
        numbers = json.dumps([number for number, _ in ranking])
        passed = {number for (number,) in db.execute(sql, (numbers, *values))}
        return [pair for pair in ranking if pair[0] in passed]

    return keep_allowed


def list_kinds(db: sqlite3.Connection, may_open: Callable[[str, str, str], bool]) -> list[str]:
    """The publication types of the documents that may be opened (`AccessSettings.may_open`),
    folded, the commonest first."""
    counts = Counter[str]()
    for source, id, kinds in db.execute("SELECT source, id, kinds FROM document WHERE kinds != ''"):
        if all(may_open(source, f"{source}:{id}", kind) for kind in kinds.split("\n")):
            counts.update(map(fold_kind, kinds.split("\n")))
    return [kind for kind, _ in counts.most_common()]


@lru_cache(4096)
def _fold_kinds(kinds: str) -> str:
    return "\n".join(map(fold_kind, kinds.split("\n")))


def has_allowed(db: sqlite3.Connection, within: PassageFilter) -> bool:
    """Whether any passage of the sources meets the conditions."""
    conditions, values = _filter_conditions(db, within)
    sources = within.sources
    if sources is not None:
        conditions.append("passage.source IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(sources))
    sql = f"{_JOINED} WHERE {' AND '.join(conditions) or '1'} LIMIT 1"
    return db.execute(sql, values).fetchone() is not None


def _filter_conditions(
    db: sqlite3.Connection, within: PassageFilter
) -> tuple[list[str], list[object]]:
    """Returns SQL conditions on the documents' columns, and their values."""
    first, last = within.years
    day = latest_day(db)
    db.create_function("fold_kinds", 1, _fold_kinds, deterministic=True)
    candidates: list[tuple[str, object, bool]] = [
        ("document.year >= ?", first, first is not None),
        ("document.year <= ?", last, last is not None),
        (f"{day} >= ?", within.days[0], within.days[0] is not None),
        (f"{day} <= ?", within.days[1], within.days[1] is not None),
        ("document.trust >= ?", within.trust, within.trust > 1),
        (
            "passage.language IN (SELECT value FROM json_each(?))",
            json.dumps(within.languages),
            bool(within.languages),
        ),
        (
            # One type a line; SQLite itself folds the case of ASCII letters only.
            "EXISTS (SELECT 1 FROM json_each(?) WHERE instr("
            "char(10) || fold_kinds(document.kinds) || char(10), char(10) || value || char(10)))",
            json.dumps(within.folded_kinds, ensure_ascii=False),
            bool(within.kinds),
        ),
    ]
    chosen = [(sql, value) for sql, value, is_set in candidates if is_set]
    conditions = [sql for sql, _ in chosen]
    if not within.retracted:
        conditions.append("NOT document.retracted")
    return conditions, [value for _, value in chosen]

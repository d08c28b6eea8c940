"""Contents, provenance and integrity checks of a knowledge base."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from osler.errors import KnowledgeBaseError
from osler.kb import index
from osler.kb.index import leases, sums
from osler.kb.ingest import prepare
from osler.kb.search.base import unit_problem
from osler.kb.store.passages import is_sealed, read_meta
from osler.sources.catalogue import EMR, PATIENT, SYNTHETIC
from osler.sources.patients import read_secret
from osler.types import Language


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """One source, counted."""

    source: str
    files: int
    documents: int
    passages: int
    words: dict[Language, float]
    """Mean length of a passage: English words, Chinese characters."""
    licences: tuple[str, ...]
    illustrative: int
    """Passages written as samples."""
    drops: dict[str, int]
    """Records that became no document, by reason, most frequent first."""
    waiting: int = 0
    """Files that are known and not yet read: `add` or `update` was interrupted."""
    stored: int = 0
    """Documents with a passage that wants a vector, or that came after the last build."""
    indexed: int = 0
    """The other documents."""
    failed: int = 0
    """Dead letters: files and records that could not be read."""
    trust: dict[int, int] = field(default_factory=dict)
    """Documents by trust, the highest first."""
    retracted: int = 0
    origins: int = 0
    """Paths that were added."""
    languages: dict[Language, int] = field(default_factory=dict)
    """Passages by language."""
    latest: int = 0
    """Time of the youngest document: seconds since 1970, UTC."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Origin, terms and state of one document."""

    document: str
    origin: str
    """Path or address of the file that it was read from first."""
    checksum: str
    """SHA-256 of that file, in hexadecimal; empty where it is not known."""
    format: str
    added: int
    """Time of its arrival: seconds since 1970, UTC."""
    trust: int
    """1 (least) to 5."""
    kinds: tuple[str, ...]
    """Publication types."""
    retracted: bool
    version: int
    state: State


State = Literal["stored", "indexed"]
"""The state of a document. A waiting file is "queued", an unreadable one "failed"."""


@dataclass(frozen=True, slots=True)
class KnowledgeBaseInfo:
    """Counts and sizes of a knowledge base, as `osler kb info` shows them."""

    path: Path
    sources: tuple[SourceInfo, ...]
    encoder: str
    """Empty for words alone, or before the first build."""
    dimension: int
    snapshot: str
    """Identity of the last build's contents."""
    built: bool
    pending: int
    """Passages that still want a vector."""
    size: int = 0
    """Bytes of all files of the knowledge base, without its snapshots."""
    snapshots: int = 0
    """Named copies."""
    languages: tuple[str, ...] = ()
    """Languages of the encoder; of others no passage has a vector."""

    @property
    def by_words(self) -> dict[Language, int]:
        """Passages by language that the encoder does not know: they have no vector, and are found
        by words alone. Empty before the first build, and where all are searched so."""
        if not self.languages:
            return {}
        counts: Counter[Language] = Counter()
        for source in self.sources:
            counts.update(source.languages)
        return {one: count for one, count in counts.items() if one not in self.languages}

    @property
    def documents(self) -> int:
        return sum(source.documents for source in self.sources)

    @property
    def passages(self) -> int:
        return sum(source.passages for source in self.sources)


def read_info(db: sqlite3.Connection, path: Path) -> KnowledgeBaseInfo:
    """Counts everything that `osler kb info` shows."""
    return KnowledgeBaseInfo(
        path=path,
        sources=tuple(_read_sources(db)),
        encoder=read_meta(db, "encoder"),
        dimension=int(read_meta(db, "dimension") or 0),
        snapshot=read_meta(db, "snapshot"),
        built=index.is_built(db),
        pending=index.count_waiting(db),
        size=sum(file.stat().st_size for file in path.glob("*") if file.is_file()),
        snapshots=len(list((path / "snapshots").glob("*.sqlite"))),
        languages=tuple(read_meta(db, "languages").split()),
    )


# A record that names its origin counts for more than the file it was read from, which may
# be an export of another knowledge base.
_PROVENANCE = """
SELECT document.id, iif(origin = '', path, origin),
  iif(origin = '', file.checksum, document.checksum), format, added, trust, kinds, retracted,
  version, EXISTS (SELECT 1 FROM passage WHERE document = document.number
    AND language IN (SELECT value FROM json_each(?1))
    AND number NOT IN (SELECT passage FROM vector))
FROM document JOIN file ON file.id = document.file
WHERE document.number = (SELECT document FROM passage WHERE id = ?2)
"""


def read_provenance(db: sqlite3.Connection, id: str) -> Provenance:
    """Reads the provenance of the document that the existing passage `id` belongs to."""
    row = db.execute(_PROVENANCE, (leases.encoder_languages(db), id)).fetchone()
    document, origin, checksum, format, added, trust, kinds, retracted, version, waits = row
    types = tuple(kinds.split("\n")) if kinds else ()
    state: State = "indexed" if index.is_begun(db) and not waits else "stored"
    about = (types, bool(retracted), version, state)
    return Provenance(document, origin, checksum, format, added, trust, *about)


def _read_sources(db: sqlite3.Connection) -> Iterator[SourceInfo]:
    names = db.execute(
        "SELECT source FROM file UNION SELECT source FROM dropped ORDER BY source"
    ).fetchall()
    files: dict[str, int] = dict(
        db.execute("SELECT source, count(*) FROM file WHERE read > 0 OR complete GROUP BY source")
    )
    documents: dict[str, int] = dict(
        db.execute("SELECT source, count(*) FROM document GROUP BY source")
    )
    # One reading of the passages, which are most of the file.
    passages = db.execute(
        "SELECT source, language, licence, count(*), sum(size), sum(illustrative)"
        " FROM passage GROUP BY source, language, licence ORDER BY source, language, licence"
    ).fetchall()
    stored = _count_stored(db, documents)
    failed = Counter(letter.source for letter in prepare.list_dead_letters(db, None))
    for (name,) in names:
        groups = [group for group in passages if group[0] == name]
        counts, sizes = Counter[Language](), Counter[Language]()
        for _, language, _, count, size, _ in groups:
            counts[language] += count
            sizes[language] += size
        yield SourceInfo(
            source=name,
            files=files.get(name, 0),
            documents=documents.get(name, 0),
            passages=counts.total(),
            words={language: sizes[language] / count for language, count in counts.items()},
            languages=dict(counts),
            licences=tuple(sorted({group[2] for group in groups} - {""})),
            illustrative=sum(group[5] for group in groups),
            drops=_count_drops(db, name),
            stored=stored.get(name, 0),
            indexed=documents.get(name, 0) - stored.get(name, 0),
            failed=failed[name],
            **_provenance_of(db, name),
        )


def _count_stored(db: sqlite3.Connection, documents: dict[str, int]) -> dict[str, int]:
    """Counts, by source, the documents that no build has finished."""
    if not index.is_begun(db):
        return documents
    rows = db.execute(
        "SELECT source, count(DISTINCT document) FROM passage"  # noqa: S608 - a constant
        f" WHERE {leases.PENDING} GROUP BY source",
        (leases.encoder_languages(db),),
    )
    return dict(rows.fetchall())


def _provenance_of(db: sqlite3.Connection, source: str) -> dict[str, Any]:
    tiers = db.execute(
        "SELECT trust, count(*) FROM document WHERE source = ? GROUP BY trust ORDER BY trust DESC",
        (source,),
    )
    counts = db.execute(
        "SELECT coalesce(sum(retracted), 0), coalesce(max(added), 0),"
        " (SELECT count(*) FROM root WHERE source = ?1),"
        " (SELECT count(*) FROM file WHERE source = ?1 AND NOT complete AND read = 0)"
        " FROM document WHERE source = ?1",
        (source,),
    ).fetchone()
    names = ("retracted", "latest", "origins", "waiting")
    return {"trust": dict(tiers.fetchall()), **dict(zip(names, counts, strict=True))}


def _count_drops(db: sqlite3.Connection, source: str) -> dict[str, int]:
    rows = db.execute(
        "SELECT reason, count(*) FROM dropped WHERE source = ?"
        " GROUP BY reason ORDER BY count(*) DESC, reason",
        (source,),
    )
    return dict(rows.fetchall())


def find_problems(db: sqlite3.Connection) -> Iterator[str]:
    """Yields every problem as a sentence; nothing when the knowledge base is whole.

    Damage does not end it: what else can still be read is looked at too.
    """
    for look in (
        _find_damage,
        _find_orphans,
        _find_unlike_seals,
        _find_misplaced,
        _find_bad_lexical,
        _find_bad_vectors,
        _find_bad_build,
    ):
        try:
            yield from look(db)
        except sqlite3.DatabaseError as error:
            yield f"the file is damaged: {error}"


def _find_damage(db: sqlite3.Connection) -> Iterator[str]:
    for (line,) in db.execute("PRAGMA integrity_check(20)"):
        if line != "ok":
            yield f"the file is damaged: {line}"


def _find_orphans(db: sqlite3.Connection) -> Iterator[str]:
    for table, row, parent, _ in db.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} belongs to no {parent}"
    empty = "SELECT source, id FROM document WHERE number NOT IN (SELECT document FROM passage)"
    for source, id in db.execute(empty):
        yield f"document {id} of {source} has no passage"


def _find_unlike_seals(db: sqlite3.Connection) -> Iterator[str]:
    for row in db.execute("SELECT * FROM passage ORDER BY number"):
        if not is_sealed(row):
            yield f"{row[1]!r} is not as it was stored"


def find_bad_secret(path: Path) -> list[str]:
    try:
        read_secret(path)
    except KnowledgeBaseError as error:
        return [error.message]
    return []


def _find_misplaced(db: sqlite3.Connection) -> Iterator[str]:
    """Records that were taken under any source before there was a rule."""
    wanted = "SELECT DISTINCT source, document FROM passage WHERE source != ? AND kind IN (?, ?)"
    count = f"SELECT source, count(*) FROM ({wanted}) GROUP BY source"  # noqa: S608 - a constant
    for source, records in db.execute(count, (EMR, PATIENT, SYNTHETIC)):
        yield f"{records:,} records of patients lie in {source}: remove them, and add them to {EMR}"


def _find_bad_lexical(db: sqlite3.Connection) -> Iterator[str]:
    if differing := index.lexical_differs(db):
        yield f"{differing:,} passages are not in both store and full-text index"


def _find_bad_vectors(db: sqlite3.Connection) -> Iterator[str]:
    width = 4 * int(read_meta(db, "dimension") or 0)
    languages = set(read_meta(db, "languages").split())
    # Row by row: all vectors of a large knowledge base would not fit into memory.
    rows = db.execute(
        "SELECT passage.id, language, value FROM vector"
        " JOIN passage ON passage.number = vector.passage ORDER BY passage.id"
    )
    for id, language, value in rows:
        if language not in languages:
            yield f"{id} has a vector, but its encoder does not know the language {language}"
        elif len(value) != width:
            yield f"{id} has a vector of {len(value)} bytes instead of {width}"
        else:
            vector = np.frombuffer(value, np.float32)[None]
            if problem := unit_problem(vector, vector.shape):
                yield f"{id} has a vector {problem}"


def _find_bad_build(db: sqlite3.Connection) -> Iterator[str]:
    missing = index.count_waiting(db)
    if not index.is_built(db):
        yield f"it is not built: {missing:,} of {index.count_passages(db):,} passages want a vector"
        return
    if missing:
        yield f"{missing:,} passages have no vector"
    kept = db.execute("SELECT count(*) FROM meta WHERE key IN ('contents', 'beside')").fetchone()
    if kept == (1,):
        yield "a sum of its contents is lost"
    if not read_meta(db, "contents"):  # built before snapshots were sums, and not comparable
        return
    if (now := sums.snapshot_of(db)) != (then := read_meta(db, "snapshot")):
        yield f"its passages changed since it was built: snapshot {now} instead of {then}"
        return
    beside, *around = read_meta(db, "beside").split(" ")
    if beside and sums.sum_beside(db) != beside:
        yield "titles, marks or vectors of its passages changed since it was built"
    elif around and [sums.sum_around(db)] != around:
        yield "its documents or its full-text index changed since it was built"

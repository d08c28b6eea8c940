"""Files into the store: each wholly or not at all, each record counted or dropped with a reason."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from osler.kb import filed
from osler.kb.access import transaction
from osler.kb.chunk import passages
from osler.kb.discover import Found, discover, fingerprint, read
from osler.kb.records import Deleted, Document, Drop, Record
from osler.kb.store import Progress, insert_document, set_meta

_REPORT_EVERY = 100


@dataclass(frozen=True, slots=True)
class How:
    """Under which name and terms files are added."""

    source: str
    fmt: str | None = None
    licence: str = ""
    illustrative: bool = False


@dataclass(frozen=True, slots=True)
class Added:
    """What `add` did."""

    files: int
    """Read now, to their end; each member of an archive is one."""
    unchanged: int
    """Skipped: their content is there already."""
    documents: int
    passages: int
    drops: dict[str, int]
    """Files and records that became no document, by reason, most frequent first."""
    unknown: tuple[str, ...]
    """Files that no parser knows; nothing of them was read."""
    failed: tuple[str, ...]
    """Files that could not be read to their end, each with why. What they held before stays."""


@dataclass
class _Tally:
    """Counts of one file, or of all."""

    files: int = 0
    unchanged: int = 0
    documents: int = 0
    passages: int = 0
    drops: Counter[str] = field(default_factory=Counter)
    unknown: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def drop(self, drop: Drop) -> None:
        self.drops[drop.reason] += 1
        if drop.reason == filed.UNKNOWN:
            self.unknown.append(drop.where)
        if drop.reason in filed.BROKEN:
            self.failed.append(f"{drop.where}: {drop.reason}")

    def take(self, file: _Tally) -> None:
        self.files += 1
        self.documents += file.documents
        self.passages += file.passages
        self.drops += file.drops


class _Broken(Exception):
    """A file broke off: what was read of it must not stay."""

    def __init__(self, drop: Drop) -> None:
        super().__init__(drop.reason)
        self.drop = drop


def add(db: sqlite3.Connection, paths: Sequence[Path], how: How, progress: Progress) -> Added:
    """See `KnowledgeBase.add`."""
    tally = _Tally()
    content = lru_cache(maxsize=1)(fingerprint)  # an archive is hashed once for all its members
    for number, item in enumerate(discover(paths, fmt=how.fmt)):
        progress("files", number, None)
        if isinstance(item, Drop):
            filed.note_passed_over(db, how.source, item)
            tally.drop(item)
            continue
        entry = _entry(item, how, content(item.file.path))
        if filed.is_known(db, entry):
            tally.unchanged += 1
            continue
        try:
            tally.take(_add_file(db, item, entry, how, progress))
        except _Broken as broken:
            filed.note_broken(db, entry, broken.drop)
            tally.drop(broken.drop)
    return Added(
        files=tally.files,
        unchanged=tally.unchanged,
        documents=tally.documents,
        passages=tally.passages,
        drops=dict(tally.drops.most_common()),
        unknown=tuple(tally.unknown),
        failed=tuple(tally.failed),
    )


def _entry(item: Found, how: How, content: str) -> filed.Entry:
    file, name = item.file, item.parser.name
    terms = "\n".join((content, file.member, name, how.licence, str(how.illustrative)))
    path = f"{file.path}!{file.member}" if file.member else str(file.path)
    return filed.Entry(how.source, path, hashlib.sha256(terms.encode()).hexdigest(), name)


def _add_file(
    db: sqlite3.Connection, item: Found, entry: filed.Entry, how: How, progress: Progress
) -> _Tally:
    """Reads one file in one transaction; it takes the place of what the path held before."""
    tally = _Tally()
    with transaction(db):
        gone = filed.forget(db, entry, item.name)
        file = filed.insert(db, entry, complete=True)
        for record in read(item):
            outcome = _take(db, file, record, how)
            if isinstance(outcome, Drop):
                if outcome.reason in filed.BROKEN:
                    raise _Broken(outcome)
                filed.insert_drop(db, how.source, file, outcome)
                tally.drop(outcome)
                continue
            tally.documents += 1
            tally.passages += outcome
            if tally.documents % _REPORT_EVERY == 0:
                progress("documents", tally.documents, None)
        if gone or tally.documents:
            set_meta(db, built="")
    return tally


def _take(db: sqlite3.Connection, file: int, record: Record, how: How) -> int | Drop:
    """How many passages a record gave, or why it gave none."""
    match record:
        case Document():
            return _add_document(db, file, record, how)
        case Deleted():
            return Drop(record.where or record.document, filed.WITHDRAWN)
        case Drop():
            return record


def _add_document(db: sqlite3.Connection, file: int, document: Document, how: How) -> int | Drop:
    """How many passages it gave, or why it is left out."""
    if how.illustrative:
        # Identifiers of sample texts are invented: an address made of one leads nowhere.
        document = replace(document, illustrative=True, url="")
    held = "SELECT 1 FROM document WHERE source = ? AND id = ?"
    if db.execute(held, (how.source, document.id)).fetchone():
        return Drop(document.id, filed.DUPLICATE)
    texts = list(passages(document, how.source, how.licence))
    if not texts:
        return Drop(document.id, filed.EMPTY)
    insert_document(db, file, document, texts)
    return len(texts)

"""Files into the store: each wholly or not at all, each record counted or dropped with a reason.

What was added is remembered with its terms. Adding it again, or `update_roots`, reads what
changed, keeps the documents that stayed as they were, and finds what is gone.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path

from osler.errors import KnowledgeBaseError
from osler.kb.ingest import file_table, reader_process, rejects
from osler.kb.ingest.chunk import OMNI
from osler.kb.ingest.document_upsert import DocumentUpsert
from osler.kb.ingest.prepare import IngestOptions, Outcome, PreparedDocument
from osler.kb.store.access import write_transaction
from osler.kb.store.passages import Progress, set_meta
from osler.sources.discover import (
    Found,
    FoundFile,
    check_paths,
    hash_tree,
    list_path,
    open_listing,
)
from osler.sources.patients.patient import pseudonymize_place
from osler.sources.records import Drop

READER = "2"
"""Raised when parsers read what they could not read before: dead letters are then tried again."""

_REPORT_EVERY = 100


@dataclass(frozen=True, slots=True)
class IngestResult:
    """Counts of one `add` or `update`, and the files that failed."""

    files: int
    """Read now, to their end; each member of an archive is one."""
    unchanged: int
    """Skipped: their content is there already."""
    documents: int
    """New, or with other passages than before."""
    passages: int
    drops: dict[str, int]
    """Files and records that became no document, by reason, most frequent first."""
    unknown: tuple[str, ...]
    """Files that no parser knows; nothing of them was read."""
    failed: tuple[str, ...]
    """Files that could not be read to their end, each with why. What they held before stays."""
    kept: int = 0
    """Documents of changed files that stayed as they were, with their vectors."""
    gone: int = 0
    """Documents that were taken out: withdrawn, replaced by a newer version, no longer there."""
    vanished: tuple[str, ...] = ()
    """Files that are no longer where they were; their documents stay unless they are pruned."""


@dataclass
class _IngestTally:
    """Running counts of one file, or of all."""

    files: int = 0
    unchanged: int = 0
    documents: int = 0
    passages: int = 0
    kept: int = 0
    gone: int = 0
    drops: Counter[str] = field(default_factory=Counter)
    unknown: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)

    def count_drop(self, drop: Drop) -> None:
        self.drops[drop.reason] += 1
        if drop.reason == rejects.UNKNOWN:
            self.unknown.append(drop.where)
        if drop.reason in rejects.BROKEN:
            self.failed.append(f"{drop.where}: {drop.reason}")

    def add_counts(self, file: _IngestTally) -> None:
        self.files += 1
        self.documents += file.documents
        self.passages += file.passages
        self.kept += file.kept
        self.gone += file.gone
        self.drops += file.drops

    def to_result(self) -> IngestResult:
        return IngestResult(
            files=self.files,
            unchanged=self.unchanged,
            documents=self.documents,
            passages=self.passages,
            drops=dict(self.drops.most_common()),
            unknown=tuple(self.unknown),
            failed=tuple(self.failed),
            kept=self.kept,
            gone=self.gone,
            vanished=tuple(self.vanished),
        )


def sum_results(parts: Sequence[IngestResult]) -> IngestResult:
    """Adds up several results."""
    total = _IngestTally()
    for part in parts:
        total.files += part.files
        total.unchanged += part.unchanged
        total.documents += part.documents
        total.passages += part.passages
        total.kept += part.kept
        total.gone += part.gone
        total.drops.update(part.drops)
        total.unknown += part.unknown
        total.failed += part.failed
        total.vanished += part.vanished
    return total.to_result()


class _BrokenFile(Exception):
    """Raised when a file broke off: what was read of it must not stay."""

    def __init__(self, drop: Drop) -> None:
        super().__init__(drop.reason)
        self.drop = drop


Outcomes = Callable[[Found, IngestOptions], Iterator[list[Outcome]]]


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """Options of one reading: how closely to compare, and what to do with files that are gone."""

    checksum: bool = False
    """Compare contents, even where size and time are those of the last reading."""
    retry: bool = False
    """Read files with dead letters again, also those that this version has read."""
    prune: bool = False
    """Take out the documents of files that are gone."""
    by_hand: bool = False
    """The user names the files: documents that were taken out by hand come back."""
    outcomes: Outcomes = reader_process.read_outcomes
    """Function that reads and prepares a file."""


def add_paths(
    db: sqlite3.Connection,
    paths: Sequence[Path],
    how: IngestOptions,
    progress: Progress,
    outcomes: Outcomes = reader_process.read_outcomes,
) -> IngestResult:
    """Implements `KnowledgeBase.add`."""
    check_paths(paths, fmt=how.fmt)  # before anything is written
    tally = _IngestTally()
    for path in paths:
        root, other_terms = file_table.note_root(db, _absolute_path(path), how)
        file_table.requeue_removed(db, root)
        care = UpdateOptions(checksum=other_terms, by_hand=True, outcomes=outcomes)
        _read_root(db, root, care, tally, progress)
    return tally.to_result()


def update_roots(
    db: sqlite3.Connection, source: str | None, care: UpdateOptions, progress: Progress
) -> IngestResult:
    """Implements `KnowledgeBase.update`."""
    roots, tally = file_table.list_roots(db, source), _IngestTally()
    if not roots:
        raise KnowledgeBaseError(
            f"nothing was added to {source}" if source else "nothing was added yet",
            fix="run `osler kb add PATH --source SOURCE`",
        )
    file_table.retry_dead_letters(db, source, READER, all=care.retry)
    for root in roots:
        if root.path.exists():
            _read_root(db, root, care, tally, progress)
        else:
            _note_vanished(db, root, set(), care, tally)
    _read_reconsidered(db, roots, care, tally, progress)
    return tally.to_result()


def _absolute_path(path: Path) -> Path:
    path = Path(os.path.abspath(path))
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise KnowledgeBaseError(
            f"the file name {str(path)!r} is not valid UTF-8", fix="rename it, then add it"
        ) from error
    return path


def _read_reconsidered(
    db: sqlite3.Connection,
    roots: Sequence[file_table.IngestRoot],
    care: UpdateOptions,
    tally: _IngestTally,
    progress: Progress,
) -> None:
    """Reads files with documents that had given way to one that went now; the rest waits."""
    waiting = (
        "SELECT 1 FROM file WHERE root = ? AND NOT complete AND id NOT IN"
        " (SELECT file FROM dropped WHERE reason IN (SELECT value FROM json_each(?)))"
    )
    broken = "[" + ",".join(f'"{reason}"' for reason in sorted(rejects.BROKEN)) + "]"
    for root in roots:
        if root.path.exists() and db.execute(waiting, (root.id, broken)).fetchone():
            again = _IngestTally()
            _read_root(db, root, replace(care, checksum=False), again, progress)
            tally.files += again.files
            tally.documents += again.documents
            tally.passages += again.passages


def _read_root(
    db: sqlite3.Connection,
    root: file_table.IngestRoot,
    care: UpdateOptions,
    tally: _IngestTally,
    progress: Progress,
) -> None:
    """Reads everything below one path that was added."""
    listing = list_path(root.path, fmt=root.how.fmt)
    seen = _queue_files(db, root, listing.paths, care)
    content = _checksum_reader(db, root.how.source, care)

    def skip_settled(path: Path) -> bool:
        if care.checksum or not file_table.is_settled(db, root, path):
            return False
        tally.unchanged += 1
        return True

    for number, item in enumerate(open_listing(listing, settled=skip_settled)):
        progress("files", number, None)
        if isinstance(item, Drop):
            rejects.note_passed_over(db, root.how.source, item)
            tally.count_drop(item)
            continue
        entry = _make_entry(item, root, content)
        if file_table.is_known(db, entry):
            tally.unchanged += 1
            continue
        try:
            tally.add_counts(_read_file(db, item, entry, root.how, care, progress))
        except _BrokenFile as broken:
            file_table.note_broken(db, entry, broken.drop)
            tally.count_drop(broken.drop)
    with write_transaction(db):
        file_table.clear_queue(db, root)
    _note_vanished(db, root, seen, care, tally)


def _queue_files(
    db: sqlite3.Connection, root: file_table.IngestRoot, paths: Iterable[Path], care: UpdateOptions
) -> set[str]:
    """Queues every file, so that an interrupted reading is known; returns the names of all."""
    seen: set[str] = set()
    with write_transaction(db):
        for path in paths:
            seen.add(pseudonymize_place(root.how.source, str(path)))
            if care.checksum or not file_table.is_settled(db, root, path):
                file_table.queue_file(db, root, path)
    return seen


def _checksum_reader(
    db: sqlite3.Connection, source: str, care: UpdateOptions
) -> Callable[[Path, file_table.FileStamp], str]:
    @lru_cache(maxsize=1)  # an archive is hashed once for all its members
    def read_checksum(path: Path, stamp: file_table.FileStamp) -> str:
        known = "" if care.checksum else file_table.known_checksum(db, source, path, stamp)
        return known or hash_tree(path)

    return read_checksum


def _make_entry(
    item: Found, root: file_table.IngestRoot, content: Callable[[Path, file_table.FileStamp], str]
) -> file_table.FileEntry:
    file, name, how = item.file, item.parser.name, root.how
    stamp = file_table.stamp_of(file.path)
    checksum = content(file.path, stamp)
    terms = [checksum, file.member, name, how.licence, str(how.illustrative)]
    disk, member = (
        pseudonymize_place(how.source, str(file.path)),
        pseudonymize_place(how.source, file.member),
    )
    # What the first version did not know is left out where it says nothing: it knew files so.
    terms += [] if how.trust is None else [str(how.trust)]
    terms += ["only"] if how.only else []
    terms += [] if how.chunk == OMNI.name else [how.chunk]
    terms += [item.beside] if isinstance(item, FoundFile) and item.beside else []
    return file_table.FileEntry(
        root=root.id,
        source=how.source,
        path=f"{disk}!{member}" if member else disk,
        member=member,
        fingerprint=hashlib.sha256("\n".join(terms).encode()).hexdigest(),
        format=name,
        checksum=checksum,
        stamp=stamp,
    )


def _read_file(
    db: sqlite3.Connection,
    item: Found,
    entry: file_table.FileEntry,
    how: IngestOptions,
    care: UpdateOptions,
    progress: Progress,
) -> _IngestTally:
    """Reads one file in one transaction; it takes the place of what the path held before."""
    tally = _IngestTally()
    with write_transaction(db):
        incoming = DocumentUpsert(db, entry, item.name, READER, by_hand=care.by_hand)
        for record, outcome in enumerate(chain.from_iterable(care.outcomes(item, how)), 1):
            result = incoming.take_outcome(outcome, record)
            if isinstance(result, Drop):
                if result.reason in rejects.BROKEN:
                    raise _BrokenFile(result)
                tally.count_drop(result)
            elif isinstance(outcome, PreparedDocument):
                _count_document(tally, result, progress)
        tally.gone = incoming.finish_file()
        if tally.documents or tally.gone or incoming.changed:
            set_meta(db, built="")
    return tally


def _count_document(tally: _IngestTally, passages: int, progress: Progress) -> None:
    if not passages:
        tally.kept += 1
        return
    tally.documents += 1
    tally.passages += passages
    if tally.documents % _REPORT_EVERY == 0:
        progress("documents", tally.documents, None)


def _note_vanished(
    db: sqlite3.Connection,
    root: file_table.IngestRoot,
    seen: set[str],
    care: UpdateOptions,
    tally: _IngestTally,
) -> None:
    rows = db.execute("SELECT id, path, member FROM file WHERE root = ?", (root.id,)).fetchall()
    gone = [
        (id, path)
        for id, path, member in rows
        if (disk := path.removesuffix(f"!{member}") if member else path) not in seen
        and not Path(disk).exists()
    ]
    if gone and care.prune:
        with write_transaction(db):
            tally.gone += file_table.prune_files(db, [id for id, _ in gone])
            set_meta(db, built="")
    else:
        tally.vanished += [path for _, path in gone]

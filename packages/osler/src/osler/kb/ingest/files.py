"""Reads files into the store: each wholly or not at all, each record counted or dropped.

What was added is remembered with its terms. Adding it again, or updating, reads what
changed, keeps the documents that stayed as they were, and finds what is gone.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path

from osler.errors import KnowledgeBaseError
from osler.kb.ingest import file_table, prepare, reader_process
from osler.kb.ingest.chunk import OMNI
from osler.kb.ingest.document_upsert import DocumentUpsert
from osler.kb.ingest.file_table import FileEntry, FileStamp, IngestRoot
from osler.kb.ingest.prepare import (
    IngestOptions,
    Outcome,
    PreparedDocument,
    document_key,
    prepare_passages,
)
from osler.kb.store.access import write_transaction
from osler.kb.store.passages import Progress, set_meta
from osler.sources.discover import Found, check_paths, hash_tree, list_path, open_listing
from osler.sources.patients import pseudonymize_place
from osler.sources.records import Drop
from osler.types import Passage

READER = "2"
"""Raised when parsers read what they could not read before: dead letters are then tried again."""

_REPORT_EVERY = 100
_TOGETHER = 1.0
"""Seconds for which small files are written in one transaction: 4,000 members of an archive in
transactions of their own write twice as much to the disk."""


@dataclass
class IngestResult:
    """Counts of one `add` or `update`, and the files that failed."""

    files: int = 0
    """Read now, to their end; each member of an archive is one."""
    unchanged: int = 0
    """Skipped: their content is there already."""
    documents: int = 0
    """New, or with other passages than before."""
    passages: int = 0
    drops: dict[str, int] = field(default_factory=dict)
    """Files and records that became no document, by reason, most frequent first."""
    unknown: list[str] = field(default_factory=list)
    """Files that no parser knows; nothing of them was read."""
    failed: list[str] = field(default_factory=list)
    """Files that could not be read to their end, each with why. What they held before stays."""
    kept: int = 0
    """Documents of changed files that stayed as they were, with their vectors."""
    gone: int = 0
    """Documents that were taken out: withdrawn, replaced by a newer version, no longer there."""
    vanished: list[str] = field(default_factory=list)
    """Files that are no longer where they were; their documents stay unless they are pruned."""

    def count_drop(self, drop: Drop) -> None:
        self.drops[drop.reason] = self.drops.get(drop.reason, 0) + 1
        if drop.reason == prepare.UNKNOWN:
            self.unknown.append(drop.where)
        if drop.reason in prepare.BROKEN:
            self.failed.append(f"{drop.where}: {drop.reason}")

    def count_document(self, passages: int) -> None:
        """Counts a document by its new passages; one without any is unchanged."""
        self.kept += not passages
        self.documents += passages > 0
        self.passages += passages

    def add_counts(self, other: IngestResult) -> None:
        drops = Counter(self.drops) + Counter(other.drops)
        for name, value in vars(self).items():
            if name != "drops":
                setattr(self, name, value + getattr(other, name))
        self.drops = dict(drops.most_common())


def sum_results(parts: Sequence[IngestResult]) -> IngestResult:
    """Adds up several results."""
    total = IngestResult()
    for part in parts:
        total.add_counts(part)
    return total


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
    prune: bool | Path = False
    """Take out the documents of files that are gone; all, or those added below this folder."""
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
    job = _IngestJob(db, UpdateOptions(by_hand=True, outcomes=outcomes), progress)
    for path in paths:
        root, other_terms = file_table.note_root(db, _absolute_path(path), how)
        file_table.requeue_removed(db, root)
        # With other terms equal files give other documents, so that stamps say nothing.
        job.care = replace(job.care, checksum=other_terms)
        job.read_root(root)
    return sum_results([job.tally])


def update_roots(
    db: sqlite3.Connection, source: str | None, care: UpdateOptions, progress: Progress
) -> IngestResult:
    """Implements `KnowledgeBase.update`."""
    roots, job = file_table.list_roots(db, source), _IngestJob(db, care, progress)
    if not roots:
        raise KnowledgeBaseError(
            f"nothing was added to {source}" if source else "nothing was added yet",
            fix="run `osler kb add PATH --source SOURCE`",
        )
    file_table.retry_dead_letters(db, source, READER, all=care.retry)
    for root in roots:
        if root.path.exists():
            job.read_root(root)
        else:
            job.note_vanished(root, set())
    # Documents that had given way to one that went just now come in; the others wait.
    again = _IngestJob(db, replace(care, checksum=False), progress)
    for root in roots:
        if root.path.exists() and file_table.has_waiting(db, root):
            again.read_root(root)
    job.tally.files += again.tally.files
    job.tally.documents += again.tally.documents
    job.tally.passages += again.tally.passages
    return sum_results([job.tally])


def put_passages(
    db: sqlite3.Connection, passages: Iterable[Passage], progress: Progress
) -> IngestResult:
    """Implements `KnowledgeBase.put`."""
    of_document: dict[str, list[Passage]] = {}
    for one in passages:
        of_document.setdefault(document_key(one), []).append(one)
    prepared = [prepare_passages(group) for group in of_document.values()]  # before any is written
    tally = IngestResult()
    with write_transaction(db):
        for number, document in enumerate(prepared):
            progress("documents", number, len(prepared))
            # A file of its own, so that the document alone is replaced when it is put again.
            entry = _make_put_entry(document)
            upsert = DocumentUpsert(db, entry, entry.path, READER, by_hand=True)
            result = upsert.take_outcome(document, 1)
            if isinstance(result, Drop):
                tally.count_drop(result)
            else:
                tally.count_document(result)
            tally.gone += upsert.finish_file()
        if tally.documents or tally.gone:
            set_meta(db, built="")
    return tally


def _make_put_entry(prepared: PreparedDocument) -> FileEntry:
    source = prepared.rows[0].passage.source
    path = pseudonymize_place(source, f"put:{prepared.document.id}")
    nowhere, mark = FileStamp(-1, -1), prepared.digest.hex()
    return FileEntry(None, source, path, "", mark, "passages", "", nowhere)


def _absolute_path(path: Path) -> Path:
    path = Path(os.path.abspath(path))
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise KnowledgeBaseError(
            f"the file name {str(path)!r} is not valid UTF-8", fix="rename it, then add it"
        ) from error
    return path


class _IngestJob:
    """One `add` or `update`: reads roots, and counts what comes of it."""

    def __init__(self, db: sqlite3.Connection, care: UpdateOptions, progress: Progress) -> None:
        self.care = care
        self.tally = IngestResult()
        self._db = db
        self._progress = progress

    def read_root(self, root: IngestRoot) -> None:
        """Reads everything below one path that was added."""
        listing = list_path(root.path, fmt=root.how.fmt)
        inner = file_table.paths_within(self._db, root)
        seen = self._queue_files(root, listing.paths, inner)
        read_checksum = lru_cache(maxsize=1)(self._read_checksum)  # once for all members

        def skip_settled(path: Path) -> bool:
            if _is_within(path, inner):
                self.tally.count_drop(Drop(str(path), prepare.APART))
                return True
            settled = self._is_settled(root, path)
            self.tally.unchanged += settled
            return settled

        with self._commit_between() as commit_in_time:
            for number, item in enumerate(open_listing(listing, settled=skip_settled)):
                if not self._db.in_transaction:  # what is said to be read outlives a kill
                    self._progress("files", number, None)
                self._read_item(item, root, read_checksum)
                commit_in_time()
        with write_transaction(self._db):
            file_table.clear_queue(self._db, root)
        self.note_vanished(root, seen)

    def _read_item(
        self,
        item: Found | Drop,
        root: IngestRoot,
        read_checksum: Callable[[str, Path, FileStamp], str],
    ) -> None:
        if isinstance(item, Drop):
            prepare.note_passed_over(self._db, root.how.source, item)
            self.tally.count_drop(item)
            return
        stamp = file_table.stamp_of(item.file.path)
        checksum = read_checksum(root.how.source, item.file.path, stamp)
        entry = _make_entry(item, root, stamp, checksum)
        if file_table.is_known(self._db, entry):
            self.tally.unchanged += 1
            return
        try:
            self.tally.add_counts(self._read_file(item, entry, root.how))
        except _BrokenFile as broken:
            file_table.note_broken(self._db, entry, broken.drop)
            self.tally.count_drop(broken.drop)

    @contextmanager
    def _commit_between(self) -> Iterator[Callable[[], None]]:
        """Gives what commits, from time to time, what small files brought; the rest is committed at
        the end."""
        began = time.monotonic()

        def commit_in_time() -> None:
            nonlocal began
            if time.monotonic() - began >= _TOGETHER:
                self._db.commit()
                began = time.monotonic()

        try:
            yield commit_in_time
        finally:
            self._db.commit()

    def note_vanished(self, root: IngestRoot, seen: set[str]) -> None:
        gone = file_table.vanished_files(self._db, root, seen)
        if gone and self._may_prune(root.path):
            with write_transaction(self._db):
                self.tally.gone += file_table.prune_files(self._db, [id for id, _ in gone])
                set_meta(self._db, built="")
        else:
            self.tally.vanished += [path for _, path in gone]

    def _may_prune(self, added: Path) -> bool:
        below = self.care.prune
        if isinstance(below, bool) or added == below:
            return bool(below)
        # A share that is not mounted is an empty folder.
        is_empty = added.is_dir() and not any(added.iterdir())
        return added.is_relative_to(below) and not is_empty

    def _is_settled(self, root: IngestRoot, path: Path) -> bool:
        return not self.care.checksum and file_table.is_settled(self._db, root, path)

    def _queue_files(
        self, root: IngestRoot, paths: Iterable[Path], inner: frozenset[Path]
    ) -> set[str]:
        """Queues every file, so that an interrupted reading is known; returns all names."""
        seen: set[str] = set()
        with write_transaction(self._db):
            for path in paths:
                seen.add(pseudonymize_place(root.how.source, str(path)))
                if not (_is_within(path, inner) or self._is_settled(root, path)):
                    file_table.queue_file(self._db, root, path)
        return seen

    def _read_checksum(self, source: str, path: Path, stamp: FileStamp) -> str:
        if self.care.checksum:
            return hash_tree(path)
        return file_table.known_checksum(self._db, source, path, stamp) or hash_tree(path)

    def _read_file(self, item: Found, entry: FileEntry, how: IngestOptions) -> IngestResult:
        """Reads one file in one transaction, a small whole one in that of those before it; it takes
        the place of what the path held before."""
        tally = IngestResult(files=1)
        batches = self.care.outcomes(item, how)
        head = list(islice(batches, 2))
        if len(head) > 1 or any(map(_is_broken, chain.from_iterable(head))):
            self._db.commit()
        elif not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
        outcomes = chain.from_iterable(chain(head, batches))
        with write_transaction(self._db):
            upsert = DocumentUpsert(self._db, entry, item.name, READER, by_hand=self.care.by_hand)
            for record, outcome in enumerate(outcomes, 1):
                result = upsert.take_outcome(outcome, record)
                if isinstance(result, Drop):
                    if _is_broken(result):
                        raise _BrokenFile(result)
                    tally.count_drop(result)
                elif isinstance(outcome, PreparedDocument):
                    tally.count_document(result)
                    if result and tally.documents % _REPORT_EVERY == 0:
                        self._progress("documents", tally.documents, None)
            tally.gone = upsert.finish_file()
            if tally.documents or tally.gone or upsert.changed:
                set_meta(self._db, built="")
        return tally


def _is_within(path: Path, folders: frozenset[Path]) -> bool:
    return not folders.isdisjoint((path, *path.parents))


def _is_broken(outcome: Outcome) -> bool:
    return isinstance(outcome, Drop) and outcome.reason in prepare.BROKEN


def _make_entry(item: Found, root: IngestRoot, stamp: FileStamp, checksum: str) -> FileEntry:
    file, name, how = item.file, item.parser.name, root.how
    terms = [checksum, file.member, name, how.licence, str(how.illustrative)]
    # Terms that came later are left out where they say nothing: older fingerprints stay valid.
    terms += [] if how.trust is None else [str(how.trust)]
    terms += ["only"] if how.only else []
    terms += [] if how.chunk == OMNI.name else [how.chunk]
    terms += [item.beside] if item.beside else []
    disk = pseudonymize_place(how.source, str(file.path))
    member = pseudonymize_place(how.source, file.member)
    return FileEntry(
        root=root.id,
        source=how.source,
        path=f"{disk}!{member}" if member else disk,
        member=member,
        fingerprint=hashlib.sha256("\n".join(terms).encode()).hexdigest(),
        format=name,
        checksum=checksum,
        stamp=stamp,
    )

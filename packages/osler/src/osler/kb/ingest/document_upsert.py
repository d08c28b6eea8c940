"""Upserts one file's documents: each is new, unchanged, newer, older or a double.

A publisher that counts versions (PubMed) may bring one document in several files. The
greater version stays, whichever file is read first; of equal versions, that of the file
whose name sorts later, as a publisher's update files are numbered.

`correct_passage` gives one passage another text.
"""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from osler.errors import KnowledgeBaseError, UnknownPassage
from osler.kb.index import Correction, leases
from osler.kb.ingest import file_table, prepare
from osler.kb.ingest.prepare import Outcome, PreparedDocument
from osler.kb.store.passages import (
    columns_of,
    delete_documents,
    delete_words,
    index_words,
    insert_passages,
    read_meta,
    read_numbered,
    size_of,
    source_token,
)
from osler.kb.store.works import insert_work
from osler.sources.formats.reading import id_of
from osler.sources.patients import import_clinic, is_deidentified
from osler.sources.records import Deleted, Drop
from osler.text import language_of

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder

_FLUSH = 512
_BY_ID = (
    "SELECT number, file, version, digest, mark, path, member, document.name FROM document"
    " JOIN file ON file.id = document.file WHERE document.source = ? AND document.id = ?"
)
_BY_MARK = "SELECT number, id, file FROM document WHERE mark = ? AND source = ?"


class _StoredDocument(NamedTuple):
    """A stored document with the id of an incoming one."""

    number: int
    file: int
    version: int
    digest: bytes
    mark: bytes
    path: str
    member: str
    name: str


class DocumentUpsert:
    """Takes the outcomes of one file, within the caller's transaction.

    What the file held before and does not bring again goes at the `end`.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        entry: file_table.FileEntry,
        name: str,
        reader: str,
        *,
        by_hand: bool,
    ) -> None:
        self.changed = False
        """Set when anything but the file's own new documents came or went."""
        self._db = db
        self._source = entry.source
        self._token = source_token(entry.source)
        self._name, self._place = name, id_of(name)
        self._order = _issue_order(entry.path, entry.member)
        self._removed = set() if by_hand else file_table.removed_by_hand(db, entry)
        self._withdrawn = file_table.withdrawn_by(db, entry)
        self._file = file_table.begin_file(db, entry, name, reader)
        self._now = int(time.time())
        # Numbers are given out here, so that passages and index are filled by executemany.
        sequence = "SELECT seq FROM sqlite_sequence WHERE name = 'passage'"
        self._passage: int = (db.execute(sequence).fetchone() or (0,))[0]
        self._rows: list[tuple[object, ...]] = []
        self._tokens: list[tuple[int, str, str]] = []
        self._gone: list[str] = []
        self._altered: list[str] = []
        any_document = "SELECT 1 FROM document WHERE file = ? LIMIT 1"
        self._had_some = db.execute(any_document, (self._file,)).fetchone() is not None
        self._some_deleted = any(
            db.execute("SELECT 1 FROM deleted WHERE source = ? LIMIT 1", (entry.source,))
        )
        # On disk, not in memory: a file may hold any number of documents.
        db.execute("CREATE TEMP TABLE IF NOT EXISTS kept(number INTEGER PRIMARY KEY)")
        db.execute("DELETE FROM temp.kept")

    def take_outcome(self, outcome: Outcome, record: int) -> int | Drop:
        """Returns how many passages came in (0: they are there already), or why none did."""
        match outcome:
            case PreparedDocument():
                return self._take_document(outcome, record)
            case Deleted():
                return self._withdraw_document(outcome)
            case Drop():
                prepare.insert_drop(self._db, self._source, self._file, outcome, record=record)
                return outcome

    def finish_file(self) -> int:
        """Removes what the file no longer brings; returns how many documents went in all."""
        self._flush_rows()
        if self._had_some:
            stale = self._db.execute(
                "SELECT number, id FROM document WHERE file = ?"
                " AND number NOT IN (SELECT number FROM temp.kept)",
                (self._file,),
            ).fetchall()
            delete_documents(self._db, [number for number, _ in stale])
            self._gone += [id for _, id in stale]
        back = self._withdrawn - file_table.withdrawn_documents(self._db, self._file)
        file_table.reconsider_files(self._db, self._source, {*self._gone, *self._altered, *back})
        return len(self._gone)

    # Documents

    def _take_document(self, new: PreparedDocument, record: int) -> int | Drop:
        if new.document.id in self._removed:
            return self._drop_document(new, prepare.REMOVED, "", record)
        stored, named, count = self._find_stored(new), new, 1
        while stored is not None and self._is_namesake(stored, new):
            count += 1
            new = prepare.rename_document(named, count)
            stored = self._find_stored(new)
        if stored is not None and not self._is_superseded(stored, new):
            same = prepare.DOUBLE if stored.mark == new.mark else prepare.DUPLICATE
            reason = prepare.OLDER if new.document.version else same
            return self._drop_document(new, reason, new.document.id, record)
        if self._some_deleted and self._is_withdrawn(new.document.id):
            return self._drop_document(new, prepare.WITHDRAWN, new.document.id, record)
        if first := self._find_double(new):
            return self._drop_document(new, prepare.DOUBLE, first, record)
        return self._insert_document(new) if stored is None else self._replace_document(new, stored)

    def _is_stale(self, file: int, number: int) -> bool:
        """Returns whether a row is of an earlier content of this file, and not met again so far."""
        if file != self._file or not self._had_some:
            return False
        kept = "SELECT 1 FROM temp.kept WHERE number = ?"
        return self._db.execute(kept, (number,)).fetchone() is None

    def _is_superseded(self, stored: _StoredDocument, new: PreparedDocument) -> bool:
        if self._is_stale(stored.file, stored.number):
            return True
        theirs = (stored.version, _issue_order(stored.path, stored.member))
        return new.document.version > 0 and (new.document.version, self._order) >= theirs

    def _find_stored(self, new: PreparedDocument) -> _StoredDocument | None:
        row = self._db.execute(_BY_ID, (self._source, new.document.id)).fetchone()
        return None if row is None else _StoredDocument(*row)

    def _is_namesake(self, stored: _StoredDocument, new: PreparedDocument) -> bool:
        """Returns whether the two have one id though they are two: identifiers that differ in a
        sign, or other words and the place of a file, where "a.txt" lies beside "a.md"."""
        if stored.name and new.document.name:
            return stored.name != new.document.name
        is_other = stored.file != self._file and stored.mark != new.mark
        return is_other and not new.document.version and new.document.id.startswith(self._place)

    def _is_withdrawn(self, id: str) -> bool:
        rows = self._db.execute(
            "SELECT path, member FROM deleted JOIN file ON file.id = deleted.file"
            " WHERE deleted.source = ? AND document = ?",
            (self._source, id),
        )
        return any(_issue_order(path, member) > self._order for path, member in rows)

    def _find_double(self, new: PreparedDocument) -> str:
        """Finds the id of another document with the same words; empty for none."""
        for number, id, file in self._db.execute(_BY_MARK, (new.mark, self._source)):
            if id != new.document.id and not self._is_stale(file, number):
                return str(id)
        return ""

    def _drop_document(self, new: PreparedDocument, reason: str, first: str, record: int) -> Drop:
        return self._insert_drop(self._file, new.document.id, reason, first, record)

    def _insert_drop(
        self, file: int, id: str, reason: str, first: str, record: int | None = None
    ) -> Drop:
        drop = Drop(id, reason)
        prepare.insert_drop(
            self._db, self._source, file, drop, document=id, first=first, record=record
        )
        return drop

    # Rows

    def _insert_document(self, new: PreparedDocument) -> int:
        document = new.document
        number = self._db.execute(
            "INSERT INTO document(source, id, title, file, year, lang, kinds, retracted, trust,"
            " version, origin, checksum, added, mark, digest, date, name)"
            " VALUES (?,?,?,?, ?,?,?,?,?, ?,?,?,?,?,?,?,?)",
            (
                *(self._source, document.id, document.title, self._file),
                *(document.year, document.language, new.kinds, document.retracted, new.trust),
                *(document.version, document.origin, document.checksum, self._now),
                *(new.mark, new.digest, document.date, document.name),
            ),
        ).lastrowid
        insert_work(self._db, number or 0, document)
        self._mark_kept(number or 0)
        for n, row in enumerate(new.rows):
            self._passage += 1
            self._rows.append((self._passage, *columns_of(row.passage), number, n, row.size))
            self._tokens.append((self._passage, row.tokens, self._token))
        if len(self._rows) >= _FLUSH:
            self._flush_rows()
        return len(new.rows)

    def _replace_document(self, new: PreparedDocument, stored: _StoredDocument) -> int:
        """Replaces a document; passages that are the same stay, with their vectors."""
        if stored.file != self._file:
            self.changed = True
            self._insert_drop(stored.file, new.document.id, prepare.OLDER, new.document.id)
        if stored.digest != new.digest:
            # The old document may be of this very file, its passages not yet written.
            self._flush_rows()
            delete_documents(self._db, [stored.number])
            self._altered.append(new.document.id)
            return self._insert_document(new)
        document = new.document
        columns = (
            *(self._file, document.title, document.year, document.language, new.kinds),
            *(document.retracted, new.trust, document.version, document.origin),
            *(document.checksum, new.mark, document.date, document.name),
        )
        done = self._db.execute(
            "UPDATE document SET file = ?1, title = ?2, year = ?3, lang = ?4, kinds = ?5,"
            " retracted = ?6, trust = ?7, version = ?8, origin = ?9, checksum = ?10, mark = ?11,"
            " date = ?12, name = ?13 WHERE number = ?14 AND (file, title, year, lang, kinds,"
            " retracted, trust, version, origin, checksum, mark, date, name)"
            " IS NOT (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
            (*columns, stored.number),
        )
        insert_work(self._db, stored.number, document)
        self.changed |= done.rowcount > 0
        self._mark_kept(stored.number)
        return 0

    def _mark_kept(self, number: int) -> None:
        if self._had_some:
            self._db.execute("INSERT OR IGNORE INTO temp.kept VALUES (?)", (number,))

    def _flush_rows(self) -> None:
        insert_passages(self._db, self._rows)
        self._db.executemany(
            "INSERT INTO lexical(rowid, words, source) VALUES (?, ?, ?)", self._tokens
        )
        self._rows.clear()
        self._tokens.clear()

    # Withdrawals

    def _withdraw_document(self, deleted: Deleted) -> int:
        """Takes the document out, whichever file brought it, unless that one sorts later."""
        self._some_deleted = True
        self._db.execute(
            "INSERT OR IGNORE INTO deleted VALUES (?, ?, ?)",
            (self._source, deleted.document, self._file),
        )
        row = self._db.execute(_BY_ID, (self._source, deleted.document)).fetchone()
        if row is None:
            return 0
        stored = _StoredDocument(*row)
        if _issue_order(stored.path, stored.member) > self._order:
            return 0
        self._flush_rows()
        delete_documents(self._db, [stored.number])
        self._gone.append(deleted.document)
        self._insert_drop(stored.file, deleted.document, prepare.WITHDRAWN, deleted.document)
        return 0


def _issue_order(path: str, member: str) -> str:
    """Returns the sort key of a publisher's update files, which are numbered in order of issue."""
    return PurePath(member or path).name


def replace_text(db: sqlite3.Connection, id: str, text: str, encoder: Encoder | None) -> Correction:
    """Replaces the text of a passage, within the caller's transaction.

    The passage keeps its id and gets a new row number, since a reader may hold the old one's
    vector; an equal text changes nothing. Raises `UnknownPassage`, and `KnowledgeBaseError` for
    a text of blanks.
    """
    rows = list(read_numbered(db, "SELECT * FROM passage WHERE id = ?", (id,)))
    if not rows:
        raise UnknownPassage(f"there is no passage {id!r}", fix="`osler kb search` lists their ids")
    ((number, old),) = rows
    if not text.strip():
        raise KnowledgeBaseError("the text is empty", fix="`osler kb rm` takes a document out")
    if is_deidentified(old.source):
        text = import_clinic("identifiers.removal").remove_identifiers(text)
    if text == old.text:
        return Correction(old, old, (number, number), has_vector=True)
    new = replace(old, text=text, language=language_of(text))
    place = db.execute("SELECT document, n FROM passage WHERE number = ?", (number,)).fetchone()
    delete_words(db, rows)
    db.execute("DELETE FROM passage WHERE number = ?", (number,))
    row = (None, *columns_of(new), *place, size_of(text, new.language))
    insert_passages(db, [row])
    (added,) = db.execute("SELECT last_insert_rowid()").fetchone()
    batch = [(added, new)]
    index_words(db, batch)
    known = {*encoder.languages} & {*read_meta(db, "languages").split()} if encoder else set()
    is_encoded = new.language in known
    if encoder is not None and is_encoded:
        leases.insert_vectors(db, batch, leases.encode_batch(encoder, [new]))
    return Correction(old, new, (number, added), is_encoded)

"""Prepares documents for the store: pure work on values, for any process or machine.

`prepare_batch` is what a distributed job maps over its batches: it needs no knowledge
base, and equal documents give equal rows with equal ids, however often and wherever it runs.

Records that became no document are rows of one table: deliberate drops, and dead letters, which
were to be read and could not be.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import NamedTuple
from unicodedata import normalize

from osler.errors import KnowledgeBaseError
from osler.kb.ingest.chunk import OMNI, document_passages, parse_chunking
from osler.kb.store.access import write_transaction
from osler.kb.store.passages import check_source, columns_of, index_tokens, size_of
from osler.sources.catalogue import EMR, GUIDELINE, is_patients, trust_of
from osler.sources.patients import (
    holds_resources,
    import_clinic,
    is_deidentified,
    pseudonymize_place,
)
from osler.sources.records import Deleted, Document, Drop, Record, Section
from osler.text import make_slug
from osler.types import Passage

EMPTY = "no text"
MISPLACED = "a patient's record outside the source emr"
"""The index keeps patients on a shelf of their own by their source; elsewhere every search would
find them."""
RETRACTED, _GUIDELINE = "Retracted Publication", "guideline"
"""As PubMed names the type."""
_NUMBER = re.compile("0|[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Source name, terms and chunking under which files are added."""

    source: str
    fmt: str | None = None
    licence: str = ""
    illustrative: bool = False
    trust: int | None = None
    """1 (least) to 5; `None` = that of the source."""
    only: bool = False
    """Takes only the documents of this source out of an export."""
    chunk: str = OMNI.name
    """Name of the chunking, see `osler.kb.ingest.chunk.parse_chunking`."""


class PassageRow(NamedTuple):
    """A passage, and what its indexes need."""

    passage: Passage
    size: int
    tokens: str

    @classmethod
    def of(cls, passage: Passage) -> PassageRow:
        return cls(passage, size_of(passage.text, passage.language), index_tokens(passage))


class PreparedDocument(NamedTuple):
    """A document and its passages, ready to be written."""

    document: Document
    """Without its sections, which are in the passages."""
    kinds: str
    trust: int
    mark: bytes
    """Equal for documents with the same title and words."""
    digest: bytes
    """Equal for documents whose passages are equal in everything."""
    rows: tuple[PassageRow, ...]


Outcome = PreparedDocument | Deleted | Drop


def prepare_batch(records: Iterable[Record], how: IngestOptions) -> list[Outcome]:
    """Prepares records for the store, in order. Pure: no file, no clock, no randomness."""
    return [
        prepare_record(record, how)
        for record in records
        if not (how.only and isinstance(record, Document) and record.source != how.source)
    ]


def chunk(
    document: Document, chunking: str = OMNI.name, *, source: str = "documents"
) -> tuple[Passage, ...]:
    """Cuts a document into passages, as `kb add` would into `source`; none of one without text.

    `chunking` is "omni" (at most 1,000 characters), "kag", "tc-rag" (128 tokens, overlapping) or
    numbers of one's own: "800", "800+100", "256t+64". Raises `BadConfig` for another one, and
    `KnowledgeBaseError` for a bad source name and for a patient's record outside `emr`.

        >>> import osler
        >>> section = osler.Section("Oral iron treats anaemia. It is taken once a day.")
        >>> document = osler.Document("anaemia", "Anaemia", (section,))
        >>> [passage.id for passage in osler.chunk(document)]
        ['documents:anaemia#0']
        >>> [passage.text for passage in osler.chunk(document, "30", source="guideline")]
        ['Oral iron treats anaemia.', 'It is taken once a day.']
    """
    check_source(source)
    prepared = prepare_record(document, IngestOptions(source, chunk=parse_chunking(chunking).name))
    if isinstance(prepared, PreparedDocument):
        return tuple(row.passage for row in prepared.rows)
    if prepared == Drop(document.id, MISPLACED):
        raise KnowledgeBaseError(f"{document.id} is {MISPLACED}", fix='give source="emr"')
    return ()


def prepare_passages(passages: Sequence[Passage]) -> PreparedDocument:
    """Makes the rows of one document of its ready-made passages, which stay as they are.

    Raises `KnowledgeBaseError` for an id that is not `source:document#n` or is there twice, for a
    text of blanks, a patient's record outside `emr`, and a source that loses identifiers: whether
    they are all in the text, and where, is known of files alone.
    """
    first = passages[0]
    name = document_key(first).removeprefix(f"{first.source}:")
    check_source(first.source)
    for one in passages:
        key, _, number = one.id.rpartition("#")
        if key != f"{one.source}:{make_slug(name)}" or not _NUMBER.fullmatch(number):
            raise KnowledgeBaseError(
                f"{one.id!r} is no id of a passage", fix=f"write {one.source}:DOCUMENT#0, #1, …"
            )
        if not one.text.strip():
            raise KnowledgeBaseError(f"{one.id} has no text", fix="leave it out")
    if len({one.id for one in passages}) < len(passages):
        raise KnowledgeBaseError(f"{document_key(first)} has two passages of one id")
    place = first.locator
    if _is_misplaced(first.source, place.kind, passages):
        raise KnowledgeBaseError(f"{name} is {MISPLACED}", fix="put it into emr")
    if is_deidentified(first.source):
        raise KnowledgeBaseError(
            f"texts of {first.source} lose their identifiers", fix="add them as files"
        )
    document = Document(
        *(name, first.title, (), first.language, place.year, place.url, place.code, place.kind),
        licence=first.licence,
        illustrative=first.illustrative,
        retracted=place.is_retracted or "retracted" in place.kind.casefold(),
        authors=place.authors,
        journal=place.journal,
        notice=place.notice,
        key=place.key,
        date=place.date,
    )
    rows = tuple(map(PassageRow.of, passages))
    return _make_prepared(document, IngestOptions(first.source), rows)


def document_key(passage: Passage) -> str:
    """Names the document of a passage, with its source: "book:anaemia"."""
    return passage.id.rpartition("#")[0]


# Characters of a title or heading. Each passage bears both, so that a file of one endless title
# would be stored a thousand times over.
_LONGEST_NAME = 1000


def _shorten_names(document: Document) -> Document:
    names = [document.title, *(name for one in document.sections for name in one.path)]
    if max(map(len, names)) <= _LONGEST_NAME:
        return document
    sections = tuple(
        replace(one, path=tuple(name[:_LONGEST_NAME] for name in one.path))
        for one in document.sections
    )
    return replace(document, title=document.title[:_LONGEST_NAME], sections=sections)


def _is_misplaced(source: str, kind: str, texts: Iterable[Section | Passage]) -> bool:
    """Whether it is a patient's record outside `emr`, by its mark or by what it says."""
    if source == EMR:
        return False
    return is_patients(source, kind) or holds_resources("\n".join(one.text for one in texts))


def prepare_record(record: Record, how: IngestOptions) -> Outcome:
    """Makes a document's rows, or a drop for one without text; other records stay as they are."""
    if not isinstance(record, Document):
        return record
    if _is_misplaced(how.source, record.kind, record.sections):
        return Drop(record.id, MISPLACED)
    record = _shorten_names(record)
    # A patient's record is made without identifiers; its numbers are no telephones.
    if is_deidentified(how.source) and not record.kind.endswith("atient"):
        record = _without_identifiers(record)
    if how.illustrative:
        # Identifiers of sample texts are invented: an address made of one leads nowhere.
        record = replace(record, illustrative=True, url="")
    if record.retracted and "retracted" not in record.kind.casefold():
        # A passage says what it is by its kind; the types that its publisher gave stay in `kinds`.
        kinds = record.kinds or tuple(filter(None, [record.kind]))
        record = replace(record, kind=RETRACTED, kinds=kinds)
    passages = document_passages(record, how.source, how.licence, parse_chunking(how.chunk))
    rows = tuple(map(PassageRow.of, passages))
    return _make_prepared(record, how, rows) if rows else Drop(record.id, EMPTY)


def _without_identifiers(document: Document) -> Document:
    cleaned: Document = import_clinic("identifiers.removal").remove_from_document(document)
    return cleaned


def _make_prepared(
    document: Document, how: IngestOptions, rows: tuple[PassageRow, ...]
) -> PreparedDocument:
    trust = how.trust if document.trust is None else document.trust
    kinds = list(document.kinds or filter(None, [document.kind]))
    if how.source == GUIDELINE and _GUIDELINE not in map(str.casefold, kinds):
        kinds.append(_GUIDELINE)  # so that a search for guidelines finds those without a type
    return PreparedDocument(
        replace(document, sections=()),
        kinds="\n".join(kinds),
        trust=trust_of(how.source) if trust is None else trust,
        mark=mark_of(document.title, [row.passage.text for row in rows]),
        digest=_digest_rows(rows),
        rows=rows,
    )


def rename_document(prepared: PreparedDocument, number: int) -> PreparedDocument:
    """The document under another id: "af.2" for "af" and 2; by its publisher's name, whose numbers
    may be those of others, where it has one."""
    id, name = prepared.document.id, prepared.document.name
    if name:
        id = make_slug(f"{id}-{blake2b(name.encode(), digest_size=4).hexdigest()}")
    id = id if name and number == 2 else f"{id}.{number}"
    rows = tuple(
        row._replace(passage=replace(row.passage, id=f"{row.passage.source}:{id}#{n}"))
        for row in prepared.rows
        for n in [row.passage.id.rpartition("#")[2]]  # those of an export have gaps
    )
    document = replace(prepared.document, id=id)
    return prepared._replace(document=document, digest=_digest_rows(rows), rows=rows)


def _digest_rows(rows: Iterable[PassageRow]) -> bytes:
    """Hashes all columns but the words, which follow from the others."""
    whole = "\x1e".join("\x1f".join(map(str, (*columns_of(row.passage), row.size))) for row in rows)
    return blake2b(whole.encode(errors="surrogatepass"), digest_size=16).digest()


def mark_of(title: str, texts: Sequence[str]) -> bytes:
    """Hashes title and words, equal whatever their case and white space."""
    whole = "\n".join((title, *texts))
    if whole.isascii():
        folded = "".join(whole.split()).lower()
    else:
        folded = "".join(normalize("NFKC", whole).split()).casefold()
    return blake2b(folded.encode(errors="surrogatepass"), digest_size=16).digest()


# The reasons are stored in the table and compared with what is there: their wording is part of
# the schema.
DUPLICATE, UNKNOWN = "duplicate document id", "unknown format"
APART = "in a path that was added apart"
DOUBLE = "same title and text as another document"
REMOVED = "taken out by hand"
OLDER, WITHDRAWN = "a newer version is there", "withdrawn by its publisher"
BROKEN = frozenset(
    {
        *("malformed file", "truncated or damaged", "decompression bomb", "not readable"),
        "too large for one document",
        *("encrypted", "needs osler[pdf]", "needs osler[parquet]", "needs osler[xlsx]"),
        "needs osler[references]",
        "needs osler[serve]",
        *("needs osler[zim]", "pictures of pages: make their text with ocrmypdf first"),
    }
)
"""Reasons for which a whole file, and not one record of it, is dropped."""
BROKEN_JSON = json.dumps(sorted(BROKEN))
_UNREADABLE = BROKEN | {
    *("unknown format", "unknown compression", "unsafe path in an archive"),
    *("archive in an archive", "name is not text", "line too long", "no record", "no id"),
    *("not GB18030", "neither UTF-8 nor GB18030", "unreadable page", "page without text"),
    *("no PMID", "no citation", "malformed row", "not JSON", "not UTF-8", "not a JSON object"),
    DUPLICATE,
    "formulas without values",
}


def is_dead(reason: str) -> bool:
    """Returns whether it was to be read and could not be, rather than left out on purpose."""
    return reason in _UNREADABLE or reason.startswith("malformed")


def dead_reasons(db: sqlite3.Connection) -> str:
    """The reasons of the dead letters that are stored, as a JSON list."""
    reasons = (reason for (reason,) in db.execute("SELECT DISTINCT reason FROM dropped"))
    return json.dumps([*filter(is_dead, reasons)])


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A file or a record of it that was to be read and could not be."""

    source: str
    path: str
    """Path of the file on disk; the place of a drop that belongs to no file."""
    member: str
    """In an archive; empty for a plain file."""
    place: str
    record: int | None
    """Number of the record in the file, from 1; `None` = the file as a whole."""
    line: int | None
    reason: str
    at: int
    """Seconds since 1970, UTC."""


def list_dead_letters(db: sqlite3.Connection, source: str | None) -> Iterator[DeadLetter]:
    """Yields dead letters, the latest first."""
    rows = db.execute(
        "SELECT dropped.source, coalesce(path, place), coalesce(member, ''), place, record, line,"
        " reason, at FROM dropped LEFT JOIN file ON file.id = dropped.file"
        " WHERE (?1 IS NULL OR dropped.source = ?1)"
        " AND reason IN (SELECT value FROM json_each(?2)) ORDER BY at DESC, dropped.rowid",
        (source, dead_reasons(db)),
    )
    for where, path, member, *rest in rows:
        yield DeadLetter(where, path.removesuffix(f"!{member}") if member else path, member, *rest)


def insert_drop(
    db: sqlite3.Connection,
    source: str,
    file: int | None,
    drop: Drop,
    *,
    document: str = "",
    first: str = "",
    record: int | None = None,
) -> None:
    """Stores a drop; `first` is the id of the document that stands where `document` does not."""
    now = int(time.time())
    db.execute(
        "INSERT INTO dropped(source, file, place, reason, document, first, record, line, at)"
        " VALUES (?,?,?,?, ?,?,?,?,?)",
        (source, file, drop.where, drop.reason, document, first, record, drop.line, now),
    )


def note_passed_over(db: sqlite3.Connection, source: str, drop: Drop) -> None:
    """Records a file of which nothing was read; once, however often it is met."""
    known = "SELECT 1 FROM dropped WHERE file IS NULL AND source = ? AND place = ? AND reason = ?"
    stored = replace(drop, where=pseudonymize_place(source, drop.where))
    if db.execute(known, (source, stored.where, drop.reason)).fetchone():
        return
    with write_transaction(db):
        forget_place(db, source, drop.where)
        insert_drop(db, source, None, stored)


def forget_place(db: sqlite3.Connection, source: str, name: str) -> None:
    db.execute(
        "DELETE FROM dropped WHERE file IS NULL AND source = ? AND place = ?",
        (source, pseudonymize_place(source, name)),
    )

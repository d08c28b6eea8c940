"""A Zotero data folder, read only: its references with their notes, PDFs, tags and collections.

The database is opened as it lies there (immutable): nothing is locked or written, also while
Zotero runs. What is in the trash is left out.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from osler.errors import MalformedSource, OslerError
from osler.sources.formats.pdf import Pdf
from osler.sources.formats.reading import author_name, plain_markup
from osler.sources.formats.references import Reference, label_pmid, tags_of
from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean_text

DATABASE = "zotero.sqlite"
_ITEMS = """
SELECT itemID, key, typeName, itemID IN (SELECT itemID FROM retractedItems)
FROM items JOIN itemTypes USING (itemTypeID)
WHERE typeName NOT IN ('attachment', 'note', 'annotation')
  AND itemID NOT IN (SELECT itemID FROM deletedItems) ORDER BY itemID
"""
_FIELDS = """
SELECT fieldName, value FROM itemData JOIN fieldsCombined USING (fieldID)
JOIN itemDataValues USING (valueID) WHERE itemID = ?
"""
_CREATORS = """
SELECT lastName, firstName FROM itemCreators JOIN creators USING (creatorID)
JOIN creatorTypes USING (creatorTypeID) WHERE itemID = ? AND creatorType = 'author'
ORDER BY orderIndex
"""
_TAGS = "SELECT name FROM itemTags JOIN tags USING (tagID) WHERE itemID = ? ORDER BY name"
_COLLECTIONS = """
SELECT collectionName FROM collectionItems JOIN collections USING (collectionID)
WHERE itemID = ? ORDER BY collectionName
"""
_NOTES = """
SELECT note FROM itemNotes WHERE parentItemID = ?
  AND itemID NOT IN (SELECT itemID FROM deletedItems) ORDER BY itemID
"""
_FILES = """
SELECT key, path FROM itemAttachments JOIN items USING (itemID) WHERE parentItemID = ?
  AND contentType = 'application/pdf' AND path LIKE 'storage:%'
  AND itemID NOT IN (SELECT itemID FROM deletedItems) ORDER BY itemID
"""
_KEY = re.compile(r"^Citation Key:\s*(\S+)", re.IGNORECASE | re.MULTILINE)


class Zotero:
    name = "zotero"

    def matches_folder(self, folder: Path) -> bool:
        return (folder / DATABASE).is_file()

    def parse_folder(self, folder: Path) -> Iterator[Record]:
        """References in the order in which they were collected; one is in memory."""
        uri = f"{(folder / DATABASE).resolve().as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(uri, uri=True)) as db:
                for item, key, kind, is_retracted in db.execute(_ITEMS):
                    full = [*_read_files(db, folder, item)]
                    yield from (one for one in full if isinstance(one, Drop))
                    more = (*_read_notes(db, item), *(x for x in full if isinstance(x, Section)))
                    told = _read_item(db, item, key, kind)
                    told = replace(told, more=more, retracted=bool(is_retracted))
                    yield told.make_document(f"{folder.name}: {key}")
        except sqlite3.Error as error:
            raise MalformedSource(
                f"{folder / DATABASE} is not a library of Zotero's: {error}",
                fix="open it in Zotero",
            ) from error


def _read_item(db: sqlite3.Connection, item: int, key: str, kind: str) -> Reference:
    fields = {name: str(value) for name, value in db.execute(_FIELDS, (item,))}
    extra = fields.get("extra", "")
    own = _KEY.search(extra)
    collections = (f"collection: {name}" for (name,) in db.execute(_COLLECTIONS, (item,)))
    return Reference(
        plain_markup(fields.get("title", "")),
        plain_markup(fields.get("abstractNote", "")),
        [author_name(family, given or "") for family, given in db.execute(_CREATORS, (item,))],
        fields.get("date", ""),
        fields.get("publicationTitle") or fields.get("bookTitle", ""),
        kind,
        fields.get("DOI", ""),
        label_pmid(fields.get("PMID", ""), extra),
        fields.get("url", ""),
        fields.get("citationKey") or (own[1] if own else key),
        [*tags_of(name for (name,) in db.execute(_TAGS, (item,))), *collections],
    )


def _read_notes(db: sqlite3.Connection, item: int) -> Iterator[Section]:
    for (note,) in db.execute(_NOTES, (item,)):
        if text := clean_text(plain_markup(note or "")):
            yield Section(text, ("Note",))


def _read_files(db: sqlite3.Connection, folder: Path, item: int) -> Iterator[Section | Drop]:
    """The text of the item's PDFs; one that cannot be read is a drop, and the item stays."""
    for key, path in db.execute(_FILES, (item,)):
        # The last part alone: a path in a library of somebody else's leads nowhere.
        file = folder / "storage" / key / Path(path.removeprefix("storage:")).name
        where = f"{folder.name}: {key}/{file.name}"
        try:
            with file.open("rb") as stream:
                for record in Pdf().parse(stream, file.name):
                    if isinstance(record, Document):
                        yield from record.sections
                    elif isinstance(record, Drop):
                        yield Drop(record.where, f"attachment: {record.reason}")
        except (OslerError, OSError) as error:
            yield Drop(f"{where}: {error}", "attachment not read")

"""What is known of a document as a published work: its authors, journal and identifiers, and the
notices that were published against it (`work`, `notice`).

These tables are made by the first writer: a knowledge base from before them is read without.
"""

from __future__ import annotations

import re
import sqlite3

from osler.sources.citable import FINDERS, normalise_id
from osler.sources.notices import RETRACTION, Notice, choose_notice
from osler.sources.records import Document

# `stated` and `own` are what the document's own file says: whether it was retracted, and how;
# `notice` is what is shown.
_TABLES = """
CREATE TABLE IF NOT EXISTS work(
  document INTEGER PRIMARY KEY REFERENCES document(number) ON DELETE CASCADE,
  pmid TEXT NOT NULL, doi TEXT NOT NULL, authors TEXT NOT NULL DEFAULT '',
  journal TEXT NOT NULL DEFAULT '', key TEXT NOT NULL DEFAULT '',
  stated INTEGER NOT NULL, own TEXT NOT NULL DEFAULT '', notice TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS work_pmid ON work(pmid) WHERE pmid != '';
CREATE INDEX IF NOT EXISTS work_doi ON work(doi) WHERE doi != '';
CREATE INDEX IF NOT EXISTS work_notice ON work(document) WHERE notice != '';
CREATE TABLE IF NOT EXISTS notice(
  pmid TEXT NOT NULL, doi TEXT NOT NULL, nature TEXT NOT NULL, date TEXT NOT NULL,
  reason TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS notice_pmid ON notice(pmid) WHERE pmid != '';
CREATE INDEX IF NOT EXISTS notice_doi ON notice(doi) WHERE doi != '';
"""
_PMID = re.compile(r"\bPMID:(\d+)")


def add_work_tables(db: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";\n"):
        db.execute(statement)
    known = {column[1] for column in db.execute("PRAGMA table_info(document)")}
    for column in ("date", "name"):
        if column not in known:
            db.execute(f"ALTER TABLE document ADD COLUMN {column} TEXT NOT NULL DEFAULT ''")


def has_dates(db: sqlite3.Connection) -> bool:
    """Whether days of documents are kept; not in a knowledge base from before they were."""
    return any(column[1] == "date" for column in db.execute("PRAGMA table_info(document)"))


def latest_day(db: sqlite3.Connection) -> str:
    """SQL for the last day that a document may be of, as 20240131; null without a year."""
    of_year = "document.year * 10000 + 1231"
    if not has_dates(db):
        return of_year
    return (
        f"CASE length(document.date) WHEN 0 THEN {of_year}"
        " WHEN 7 THEN replace(document.date, '-', '') * 100 + 31"
        " ELSE replace(document.date, '-', '') + 0 END"
    )


def identify_work(document: Document) -> tuple[str, str]:
    """PMID and DOI, "" for none. Those of sample texts are invented, and name no work."""
    if document.illustrative:
        return "", ""
    pmid = _PMID.search(document.code)
    found = FINDERS["doi"].search(f"{document.doi} {document.code} {document.url}")
    return pmid[1] if pmid else "", normalise_id("doi", found[1]) if found else ""


def insert_work(db: sqlite3.Connection, number: int, document: Document) -> None:
    """Notes what document `number` says of itself, and marks it by the notices known."""
    pmid, doi = identify_work(document)
    own = document.notice or (RETRACTION if document.retracted else "")
    told = ("\n".join(document.authors), document.journal, document.key)
    if not any((pmid, doi, own, *told)):
        db.execute("DELETE FROM work WHERE document = ?", (number,))
        return
    db.execute(
        "INSERT OR REPLACE INTO work VALUES (?,?,?, ?,?,?, ?,?,?)",
        (number, pmid, doi, *told, document.retracted, own, own),
    )
    if pmid or doi:
        mark_work(db, number, pmid, doi)


def mark_work(db: sqlite3.Connection, number: int, pmid: str, doi: str) -> bool:
    """Marks the work by the notices about it; returns whether it is, or is no more, retracted."""
    rows = db.execute(
        "SELECT nature, date, reason FROM notice WHERE pmid != '' AND pmid = ?"
        " UNION SELECT nature, date, reason FROM notice WHERE doi != '' AND doi = ?",
        (pmid, doi),
    )
    chosen = choose_notice(Notice(*row) for row in rows)
    (stated,) = db.execute("SELECT stated FROM work WHERE document = ?", (number,)).fetchone()
    retracts = chosen is not None and chosen.nature.startswith(RETRACTION)
    # Nothing less takes back the retraction that the document itself states.
    told = str(chosen) if chosen and (retracts or not stated) else None
    db.execute("UPDATE work SET notice = coalesce(?, own) WHERE document = ?", (told, number))
    done = db.execute(
        "UPDATE document SET retracted = ?1 WHERE number = ?2 AND retracted != ?1",
        (bool(stated or retracts), number),
    )
    return done.rowcount > 0


Told = tuple[tuple[str, ...], str, str, str, str]


class WorkReader:
    """Reads what citations say of works: the last five fields of a `Locator`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._last: tuple[int, Told] = (0, ((), "", "", "", ""))
        dates = "document.date" if has_dates(db) else "''"
        self._select = (
            f"SELECT authors, journal, notice, key, {dates} FROM document"  # noqa: S608 - constants
            " LEFT JOIN work ON work.document = document.number WHERE document.number = ?"
        )

    def read_work(self, document: int) -> Told:
        """Of the document of this number; nothing in a knowledge base from before these tables."""
        if document != self._last[0]:
            self._last = document, self._read(document)
        return self._last[1]

    def _read(self, document: int) -> Told:
        try:
            row = self._db.execute(self._select, (document,)).fetchone()
        except sqlite3.OperationalError as error:
            if not str(error).startswith("no such table"):
                raise
            row = None
        authors, journal, notice, key, date = (str(one or "") for one in row or [""] * 5)
        return (tuple(authors.split("\n")) if authors else ()), journal, notice, key, date

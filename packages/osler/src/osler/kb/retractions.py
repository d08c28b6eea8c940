"""Marks the works of a knowledge base by a list of notices, which `update` asks anew.

The list is kept in the knowledge base: a document that comes in later is marked as it is written
(`osler.kb.store.works.insert_work`).
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from osler.kb.store.access import write_transaction
from osler.kb.store.passages import read_meta, set_meta
from osler.kb.store.works import mark_work
from osler.sources.notices import Notice, read_notices

_NAMED = """
SELECT work.document, work.pmid, work.doi FROM work WHERE notice != ''
  OR (pmid != '' AND pmid IN (SELECT pmid FROM notice))
  OR (doi != '' AND doi IN (SELECT doi FROM notice))
"""
_COUNT = """
SELECT iif(instr(mark, ':'), substr(mark, 1, instr(mark, ':') - 1), mark) AS nature, count(*)
FROM (SELECT replace(notice, ',', ':') AS mark FROM work WHERE notice != '')
GROUP BY nature ORDER BY count(*) DESC
"""


@dataclass
class MarkedWorks:
    """What a list of notices came to."""

    notices: int = 0
    drops: dict[str, int] = field(default_factory=dict)
    """Rows that name no work, and days that cannot be read, by reason."""
    marked: dict[str, int] = field(default_factory=dict)
    """Documents of the knowledge base under a notice, by its nature."""
    changed: int = 0
    """Documents that count as retracted now, or no more."""


def mark_works(db: sqlite3.Connection, path: Path) -> MarkedWorks:
    """Implements `KnowledgeBase.mark_retractions`: all of it in one transaction, or nothing."""
    path = path.absolute()
    notices, drops = list[Notice](), Counter[str]()
    for row in read_notices(path):
        if isinstance(row, Notice):
            notices.append(row)
        else:
            drops[row.reason] += 1
    with write_transaction(db):
        db.execute("DELETE FROM notice")
        rows = ((one.pmid, one.doi, one.nature, one.date, one.reason) for one in notices)
        db.executemany("INSERT INTO notice VALUES (?,?,?,?,?)", rows)
        named = db.execute(_NAMED).fetchall()
        changed = sum(mark_work(db, *one) for one in named)
        set_meta(db, retractions=json.dumps([str(path), _stamp_of(path)]))
        if changed:
            set_meta(db, built="")  # what is retracted lies on a shelf of the index of its own
        return MarkedWorks(len(notices), dict(drops), dict(db.execute(_COUNT)), changed)


def mark_again(db: sqlite3.Connection) -> None:
    """Marks by the same list where its file is another since; one that is gone still holds."""
    stored = read_meta(db, "retractions")
    if not stored:
        return
    path, stamp = json.loads(stored)
    if Path(path).is_file() and _stamp_of(Path(path)) != stamp:
        mark_works(db, Path(path))


def list_retracted(db: sqlite3.Connection) -> frozenset[str]:
    """The retracted documents, each as "source:id"."""
    rows = db.execute("SELECT source || ':' || id FROM document WHERE retracted")
    return frozenset(name for (name,) in rows)


def _stamp_of(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]

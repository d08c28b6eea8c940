"""Exports every passage with its provenance, as JSON Lines.

Read as a stream and written beside the target, which then is replaced at once. JSON Lines
can be added to a knowledge base again (`formats/osler_jsonl.py`): the ids stay the same.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from osler.errors import BadConfig, KnowledgeBaseError, translate_os_errors
from osler.kb.store.passages import Progress, read_meta
from osler.kb.store.works import WorkReader
from osler.llm.core.cache import write_whole
from osler.sources.formats.json_lines import HEADER, VERSION

Line = dict[str, Any]

_ROWS = 4096
"""Passages between two reports of progress."""

_SELECT = """
SELECT passage.id, passage.source, document.id, n, document.title, passage.text, section, page,
  passage.year, passage.url, passage.code, passage.kind, passage.licence, passage.language,
  passage.illustrative, kinds, document.retracted, document.trust, document.version,
  iif(document.origin = '', file.path, document.origin),
  iif(document.origin = '', file.checksum, document.checksum), file.format, document.added,
  document.number
FROM document JOIN passage ON passage.document = document.number
JOIN file ON file.id = document.file
WHERE (?1 IS NULL OR document.source = ?1) AND document.added >= ?2
ORDER BY document.source, document.id, n
"""


@dataclass(frozen=True, slots=True)
class ExportResult:
    """Path and counts of an export."""

    path: Path
    documents: int
    passages: int


def write_export(
    db: sqlite3.Connection,
    path: Path,
    *,
    source: str | None,
    since: int,
    progress: Progress,
) -> ExportResult:
    """Implements `KnowledgeBase.export`."""
    if path.is_dir():
        raise KnowledgeBaseError(f"{path} is a folder", fix="name a file")
    if path.suffix.lower() not in {".jsonl", ".ndjson"}:
        raise BadConfig(f"the format of {path.name} is unknown", fix="end it in .jsonl")
    documents = passages = 0
    problem, fix = f"{path} cannot be written", "choose another place, or free some disk space"
    # Whoever reads the target meanwhile sees the old file or the whole new one.
    with (
        translate_os_errors(problem, KnowledgeBaseError, fix),
        write_whole(path) as draft,
        draft.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.write(json.dumps(_make_header(db, source), ensure_ascii=False) + "\n")
        for line in _read_lines(db, source, since):
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            passages += 1
            documents += line["n"] == 0
            if passages % _ROWS == 0:
                progress("passages", passages, None)
        file.flush()
        os.fsync(file.fileno())
    return ExportResult(path, documents, passages)


def _make_header(db: sqlite3.Connection, source: str | None) -> Line:
    rows = db.execute("SELECT DISTINCT source FROM document ORDER BY source").fetchall()
    return {
        HEADER: VERSION,
        "sources": [name for (name,) in rows if source in (None, name)],
        "snapshot": read_meta(db, "snapshot") if read_meta(db, "built") else "",
        "encoder": read_meta(db, "encoder"),
    }


_OF_WORK = ("authors", "journal", "notice", "key", "date")
_NAMES = (
    *("id", "source", "document", "n", "title", "text", "section", "page", "year", "url"),
    *("code", "kind", "licence", "language", "illustrative", "kinds", "retracted", "trust"),
    *("version", "origin", "checksum", "format", "added", *_OF_WORK),
)


def _read_lines(db: sqlite3.Connection, source: str | None, since: int) -> Iterator[Line]:
    works = WorkReader(db)
    for *row, number in db.execute(_SELECT, (source, since)):
        line = dict(zip(_NAMES, (*row, *works.read_work(number)), strict=True))
        line["illustrative"] = bool(line["illustrative"])
        line["retracted"] = bool(line["retracted"])
        line["kinds"] = line["kinds"].split("\n") if line["kinds"] else []
        line["added"] = datetime.fromtimestamp(line["added"], UTC).isoformat()
        yield line

"""Takes a text, a document or a patient out of everything in home, and says what is left.

Deleted rows are overwritten (`secure_delete`) and every database is written anew (VACUUM), so
that nothing stands in free pages. What Osler cannot reach is named: the audit log, which must
not change, files that are not its own, and copies elsewhere.
"""

from __future__ import annotations

import json
import mmap
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from osler.app.config import Settings
from osler.app.wiring.knowledge import open_knowledge_base
from osler.app.wiring.models import load_encoder
from osler.errors import BadConfig, KnowledgeBaseMissing, StorageFailed
from osler.kb.base import KnowledgeBase
from osler.kb.search import generation
from osler.kb.store import snapshots
from osler.kb.store.passages import delete_documents, set_meta
from osler.sources.catalogue import EMR
from osler.sources.patients.patient import hash_pseudonym
from osler.sources.patients.secret import use_secret

_SHORTEST = 4
_SQLITE = b"SQLite format 3\0"
_QUOTE = 60
"""Characters of a passage by which its copies are known."""
_COMPRESSED = {".gz", ".zst", ".zip", ".bz2", ".xz"}
_ELSEWHERE = (
    "backups and exports that were made before",
    "the files that the texts were added from, outside home",
    "model servers, online services and a Qdrant server that were sent it",
)


@dataclass
class ForgetReport:
    """What was taken out, and what is left."""

    documents: list[str] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)
    """Named copies that held it, and hold it no more."""
    runs: list[str] = field(default_factory=list)
    rows: int = 0
    """Of caches and of the server's record."""
    files: list[str] = field(default_factory=list)
    """Cached and drafted files that were deleted."""
    left: list[str] = field(default_factory=list)
    """Files in home that still hold it, each with the reason."""
    unsearched: int = 0
    """Compressed files in home, which were not looked into."""
    elsewhere: tuple[str, ...] = _ELSEWHERE


def forget(settings: Settings, what: str) -> ForgetReport:
    """`what` is the id of a document (source:id), a patient's number, or a text. Blocks.

    Raises `BadConfig` for a text that is too short, and `KnowledgeBaseError` while another
    process writes.
    """
    if len(what.strip()) < _SHORTEST:
        raise BadConfig(
            "that is too little to be found", fix=f"give {_SHORTEST} characters or more"
        )
    report = ForgetReport()
    marks = _forget_documents(settings, what, report)
    needles = tuple(dict.fromkeys(form for mark in marks for form in _written_forms(mark)))
    _forget_runs(settings, needles, report)
    _forget_rows(settings, marks, report)
    for path in _databases(settings):
        _rewrite(path)
    _look_for_rest(settings, needles, report)
    return report


def _written_forms(mark: str) -> tuple[bytes, ...]:
    """The mark as files hold it: plain, and as JSON writes it."""
    escaped = (json.dumps(mark, ensure_ascii=plain)[1:-1] for plain in (True, False))
    return tuple(dict.fromkeys(form.encode() for form in (mark, *escaped)))


def _forget_documents(settings: Settings, what: str, report: ForgetReport) -> list[str]:
    """Takes the documents out of the base, its index and its copies. What else to look for."""
    try:
        kb = open_knowledge_base(settings)
    except KnowledgeBaseMissing:
        return [what]
    marks = [what]
    with kb:
        documents = _matching_documents(kb, what)
        for source, document in documents:
            marks += _marks_of(kb, f"{source}:{document}")
            kb.remove(source=source, document=document)
            report.documents.append(f"{source}:{document}")
        for copy in snapshots.list_snapshots(kb.path):
            path = kb.path / snapshots.FOLDER / f"{copy.name}.sqlite"
            if _forget_in_copy(path, what, documents):
                report.snapshots.append(copy.name)
        indexed = kb.path / generation.FOLDER
        if documents and indexed.is_dir():
            shutil.rmtree(indexed)
        if documents and kb.info().passages:
            kb.build(load_encoder(settings))
    return list(dict.fromkeys(marks))


_HOLDS = (
    "SELECT DISTINCT source, document.id FROM document WHERE source || ':' || document.id = ?1"
    " OR instr(title, ?1) OR number IN"
    " (SELECT document FROM passage WHERE instr(text, ?1) OR instr(section, ?1))"
)


def _matching_documents(kb: KnowledgeBase, what: str) -> list[tuple[str, str]]:
    """Source and id of those that are it, hold it, or are of the patient of this number."""
    with use_secret(kb.path, ()):
        patient = f"{EMR}:{hash_pseudonym(what)}"
    with kb.readers.borrow() as db:
        rows = [*db.execute(_HOLDS, (what,)), *db.execute(_HOLDS, (patient,))]
    return [(str(source), str(id)) for source, id in dict.fromkeys(rows)]


def _marks_of(kb: KnowledgeBase, document: str) -> list[str]:
    passages = kb.neighbours(f"{document}#0", 1_000_000)
    return [f"{document}#", *(one.text[:_QUOTE] for one in passages)]


def _forget_in_copy(path: Path, what: str, documents: Sequence[tuple[str, str]]) -> bool:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA secure_delete=ON")
        db.execute("PRAGMA foreign_keys=ON")
        held = {*documents, *db.execute(_HOLDS, (what,))}
        numbers = [
            number
            for source, id in held
            for (number,) in db.execute(
                "SELECT number FROM document WHERE source = ? AND id = ?", (source, id)
            )
        ]
        if numbers:
            delete_documents(db, numbers)
            set_meta(db, built="")
    return bool(numbers)


def _forget_runs(settings: Settings, needles: Sequence[bytes], report: ForgetReport) -> None:
    folder = settings.runs.path
    for run in sorted(folder.iterdir()) if folder.is_dir() else ():
        files = run.rglob("*") if run.is_dir() else ()
        if any(_holds(path, needles) for path in files if path.is_file()):
            shutil.rmtree(run)
            report.runs.append(run.name)


# Tables of what may go row by row: what was asked, and what was fetched or replied before.
_ROWS = {"serve.sqlite": ("run",), "web.db": (), "replies.sqlite": ()}


def _forget_rows(settings: Settings, marks: Sequence[str], report: ForgetReport) -> None:
    for path in _databases(settings):
        if path.name not in _ROWS and "cache" not in path.name:
            continue
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA secure_delete=ON")
            every = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for table in _ROWS.get(path.name) or tuple(name for (name,) in every):
                report.rows += _delete_rows(db, table, marks)
            for run in report.runs if path.name == "serve.sqlite" else ():
                report.rows += db.execute("DELETE FROM run WHERE id = ?", (run,)).rowcount


def _delete_rows(db: sqlite3.Connection, table: str, marks: Sequence[str]) -> int:
    name = table.replace('"', '""')
    columns = [row[1].replace('"', '""') for row in db.execute(f'PRAGMA table_info("{name}")')]
    forms = [form for mark in marks for form in _written_forms(mark)]
    deleted = 0
    for column in columns:
        for form in forms:
            deleted += db.execute(
                f'DELETE FROM "{name}" WHERE instr(CAST("{column}" AS BLOB), ?)',  # noqa: S608
                (form,),
            ).rowcount
    return deleted


def _databases(settings: Settings) -> list[Path]:
    return [path for path in _own_files(settings) if _begins_with(path, _SQLITE)]


def _begins_with(path: Path, head: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(head)) == head
    except OSError:
        return False


def _own_files(settings: Settings) -> Iterator[Path]:
    roots = dict.fromkeys((settings.home, settings.kb.path, settings.runs.path))
    seen = set()
    for root in roots:
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.is_symlink() and path not in seen:
                seen.add(path)
                yield path


def _rewrite(path: Path) -> None:
    """Writes the database anew without what was deleted, and empties its log.

    Raises `StorageFailed` where another process keeps it.
    """
    try:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as db:
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
            if "lexical" in tables:  # words of deleted rows stay in old segments until a merge
                db.execute("INSERT INTO lexical(lexical) VALUES ('optimize')")
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error as error:
        fix = "stop the server and what else uses it, then run the command again"
        raise StorageFailed(f"{path} cannot be written anew: {error}", fix=fix) from error


def _holds(path: Path, needles: Iterable[bytes]) -> bool:
    try:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return any(data.find(needle) >= 0 for needle in needles)
    except OSError:
        return True  # what cannot be read cannot be said to be free of it


def _look_for_rest(settings: Settings, needles: Sequence[bytes], report: ForgetReport) -> None:
    audit = settings.audit.path or settings.home / "audit"
    for path in _own_files(settings):
        if path.suffix in _COMPRESSED:
            report.unsearched += 1
        if not _holds(path, needles):
            continue
        if {"cache", "web", "bulk"} & {*path.parts} or path.suffix == ".part":
            path.unlink()
            report.files.append(str(path))
        elif path.is_relative_to(audit):
            report.left.append(f"{path}: the audit log is never changed")
        else:
            report.left.append(f"{path}: not a file that Osler may change; delete it yourself")


def expire_runs(settings: Settings) -> list[str]:
    """Deletes the runs that are older than runs.days; their names. Blocks."""
    if settings.runs.days is None or not settings.runs.path.is_dir():
        return []
    limit = oldest_kept(settings)
    old = [run for run in sorted(settings.runs.path.iterdir()) if run.name.lstrip(".") < limit]
    for run in old:
        shutil.rmtree(run, ignore_errors=True)
    return [run.name for run in old]


def oldest_kept(settings: Settings) -> str:
    """What the name of a run is at least that runs.days keeps; "" = all are kept."""
    if settings.runs.days is None:
        return ""
    oldest = datetime.now(UTC) - timedelta(days=settings.runs.days)
    return f"{oldest:%Y%m%d-%H%M%S}"  # a run's name begins with its second

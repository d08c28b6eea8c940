"""Takes a text, a document or a patient out of everything in home, and says what is left.

Deleted rows are overwritten (`secure_delete`) and every database is written anew (VACUUM), so
that nothing stands in free pages. Conversations, feedback and evaluated samples that hold it go
whole. What Osler cannot reach is named: the audit log, which must not change, files that are not
its own, and copies elsewhere.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from osler.build.knowledge import open_knowledge_base
from osler.build.models import load_encoder
from osler.errors import BadConfig, KnowledgeBaseMissing, StorageFailed
from osler.kb.base import KnowledgeBase
from osler.kb.search import generation
from osler.kb.store import snapshots
from osler.kb.store.durable import sync_path
from osler.kb.store.passages import delete_documents, set_meta
from osler.runs import threads
from osler.settings import Settings
from osler.sources.catalogue import EMR
from osler.sources.patients import hash_pseudonym, use_secret
from osler_serve.ops import uploads
from osler_serve.ops.forget_files import UNREAD, forget_samples, holds

_SHORTEST = 4
_WAIT = 10.0
"""Seconds for another process to let a database go."""
_SQLITE = b"SQLite format 3\0"
_QUOTE = 60
"""Characters of a passage by which its copies are known."""
# In `home`: what was fetched, sent or replied before.
_FETCHED = {"cache", "web", "bulk", "fetched", uploads.FOLDER}
_ELSEWHERE = (
    "backups and exports that were made before",
    "the files that the texts were added from, outside home",
    "model servers, online services and a Qdrant server that were sent it",
    "blocks that the disk itself keeps of files that were deleted",
)


@dataclass
class ForgetReport:
    """What was taken out, and what is left."""

    documents: list[str] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)
    """Named copies that held it, and hold it no more."""
    runs: list[str] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    """Conversations one of whose questions held it, or whose run did."""
    samples: int = 0
    """Of evaluations in home; run again, they are tried anew."""
    rows: int = 0
    """Of caches, of feedback and of the server's record."""
    files: list[str] = field(default_factory=list)
    """Cached and drafted files that were deleted."""
    left: list[str] = field(default_factory=list)
    """Files in home that still hold it, each with the reason."""
    unsearched: int = 0
    """Files in home whose compressed parts were not looked into."""
    elsewhere: tuple[str, ...] = _ELSEWHERE


def forget(settings: Settings, what: str) -> ForgetReport:
    """`what` is the id of a document (source:id), a patient's number, or a text. Blocks.

    Raises `BadConfig` for a text that is too short, `KnowledgeBaseError` while another process
    writes, and `StorageFailed`: run again, it goes on.
    """
    if len(what.strip()) < _SHORTEST:
        raise BadConfig(
            "the text is too short to search for", fix=f"give {_SHORTEST} characters or more"
        )
    report = ForgetReport()
    try:
        _forget_everywhere(settings, what, report)
    except (OSError, sqlite3.Error) as error:
        problem = getattr(error, "strerror", None) or error
        fix = "check free disk space and write permissions, then run the command again"
        raise StorageFailed(f"not everything could be forgotten: {problem}", fix=fix) from error
    return report


def _forget_everywhere(settings: Settings, what: str, report: ForgetReport) -> None:
    marks = _forget_documents(settings, what, report)
    needles = tuple(dict.fromkeys(form for mark in marks for form in _written_forms(mark)))
    _forget_runs(settings.runs.path, needles, report)
    for log in sorted((settings.home / "eval").glob("*/")):
        report.samples += forget_samples(log, needles)
        _forget_runs(log / "runs", needles, report)
    _forget_threads(settings, marks, report)
    _forget_rows(settings, marks, report)
    for path in _databases(settings):
        _rewrite(path)
    _look_for_rest(settings, needles, report)


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
    with kb:
        with use_secret(kb.path, ()):
            patient = f"{EMR}:{hash_pseudonym(what)}"
        marks = [what, patient]  # also where a run before this one took the record out already
        documents = _matching_documents(kb, what, patient)
        for source, document in documents:
            marks += _marks_of(kb, f"{source}:{document}")
            _delete_upload(settings, kb.provenance(f"{source}:{document}#0").origin, report)
            kb.remove(source=source, document=document)
            report.documents.append(f"{source}:{document}")
        take_out = partial(_forget_in_copy, what=what, documents=documents)
        for copy in snapshots.list_snapshots(kb.path):
            if snapshots.edit_snapshot(kb.path, copy.name, take_out):
                report.snapshots.append(copy.name)
        indexed = kb.path / generation.FOLDER
        if documents and indexed.is_dir():
            shutil.rmtree(indexed)
        if documents and kb.info().passages:
            kb.build(load_encoder(settings))
    return list(dict.fromkeys(marks))


def _delete_upload(settings: Settings, origin: str, report: ForgetReport) -> None:
    """The file that was sent, whole: `kb update` would read it again."""
    path = Path(origin)
    if path.is_relative_to(settings.home / uploads.FOLDER) and path.is_file():
        path.unlink()
        sync_path(path.parent)
        report.files.append(str(path))


_HOLDS = (
    "SELECT DISTINCT source, document.id FROM document WHERE source || ':' || document.id = ?1"
    " OR instr(title, ?1) OR number IN"
    " (SELECT document FROM passage WHERE instr(text, ?1) OR instr(section, ?1))"
)


def _matching_documents(kb: KnowledgeBase, what: str, patient: str) -> list[tuple[str, str]]:
    """Source and id of those that are it, hold it, or are of the patient of this id."""
    with kb.readers.borrow() as db:
        rows = [*db.execute(_HOLDS, (what,)), *db.execute(_HOLDS, (patient,))]
    return [(str(source), str(id)) for source, id in dict.fromkeys(rows)]


def _marks_of(kb: KnowledgeBase, document: str) -> list[str]:
    passages = kb.neighbours(f"{document}#0", 1_000_000)
    return [f"{document}#", *(one.text[:_QUOTE] for one in passages)]


def _forget_in_copy(
    db: sqlite3.Connection, what: str, documents: Sequence[tuple[str, str]]
) -> bool:
    """Whether it held any of them."""
    db.execute("PRAGMA foreign_keys=ON")
    number_of = "SELECT number FROM document WHERE source = ? AND id = ?"
    held = {*documents, *db.execute(_HOLDS, (what,))}
    numbers = [number for one in held for (number,) in db.execute(number_of, one)]
    if not numbers:
        return False
    delete_documents(db, numbers)
    set_meta(db, built="")
    _drop_old_words(db)
    return True


def _forget_runs(folder: Path, needles: Sequence[bytes], report: ForgetReport) -> None:
    for run in sorted(folder.iterdir()) if folder.is_dir() else ():
        files = run.rglob("*") if run.is_dir() else ()
        if any(holds(path, needles) for path in files if path.is_file()):
            shutil.rmtree(run)
            sync_path(folder)  # else a power cut brings it back
            report.runs.append(run.name)


def _forget_threads(settings: Settings, marks: Sequence[str], report: ForgetReport) -> None:
    """Whole conversations: one of which a turn is missing could not go on."""
    path = settings.home / threads.FILE
    if not path.is_file():
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA secure_delete=ON")
        found = set()
        for mark in marks:
            found |= {*db.execute(_TURNS_WITH, (mark, mark, mark))}
        for run in report.runs:
            found |= {*db.execute("SELECT workspace, thread FROM turn WHERE run = ?", (run,))}
        for workspace, id in sorted(found):
            db.execute("DELETE FROM turn WHERE workspace = ? AND thread = ?", (workspace, id))
            db.execute("DELETE FROM thread WHERE workspace = ? AND id = ?", (workspace, id))
            report.threads.append(id)
        if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'title'").fetchone():
            gone = [(run,) for run in (*report.runs, *report.threads)]
            db.executemany("DELETE FROM title WHERE id = ?", gone)
            report.rows += _delete_rows(db, "title", marks)


_TURNS_WITH = (
    "SELECT workspace, thread FROM turn WHERE instr(question, ?) OR instr(standalone, ?)"
    " OR instr(thread, ?)"
)
# Tables of what may go row by row: what was asked, and what was fetched or replied before.
_ROWS = {
    "serve.sqlite": ("run",),
    "feedback.sqlite": ("feedback",),
    "web.db": (),
    "replies.sqlite": (),
}
# Column that names a run, in those that speak of one.
_NAMES_RUN = {"serve.sqlite": ("run", "id"), "feedback.sqlite": ("feedback", "about")}


def _forget_rows(settings: Settings, marks: Sequence[str], report: ForgetReport) -> None:
    for path in _databases(settings):
        if path.name not in _ROWS and "cache" not in path.name:
            continue
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("PRAGMA secure_delete=ON")
            every = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for table in _ROWS.get(path.name) or tuple(name for (name,) in every):
                report.rows += _delete_rows(db, table, marks)
            for table, column in [_NAMES_RUN[path.name]] if path.name in _NAMES_RUN else ():
                report.rows += db.executemany(
                    f'DELETE FROM "{table}" WHERE "{column}" = ?',  # noqa: S608
                    [(run,) for run in report.runs],
                ).rowcount


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
    """All but the snapshots, which are never written in place."""
    copies = settings.kb.path / snapshots.FOLDER
    files = (path for path in _own_files(settings) if not path.is_relative_to(copies))
    return [path for path in files if _begins_with(path, _SQLITE)]


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
        with closing(sqlite3.connect(path, isolation_level=None, timeout=_WAIT)) as db:
            _drop_old_words(db)
            db.execute("VACUUM")
            (busy, *_) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:  # a reader still looks at the old pages
                raise sqlite3.OperationalError("database is locked")
    except sqlite3.Error as error:
        fix = "stop the server and what else uses it, then run the command again"
        raise StorageFailed(f"{path} cannot be rewritten: {error}", fix=fix) from error


def _drop_old_words(db: sqlite3.Connection) -> None:
    """Words of deleted rows stay in old segments until a merge."""
    if ("lexical",) in db.execute("SELECT name FROM sqlite_master").fetchall():
        db.execute("INSERT INTO lexical(lexical) VALUES ('optimize')")


def _look_for_rest(settings: Settings, needles: Sequence[bytes], report: ForgetReport) -> None:
    audit = settings.audit.path or settings.home / "audit"
    for path in _own_files(settings):
        if path.suffix in UNREAD:
            report.unsearched += 1
        if not holds(path, needles):
            continue
        inner = {*path.parts[len(settings.home.parts) :]}  # home itself may be called so
        if _FETCHED & inner or path.suffix == ".part":
            path.unlink()
            sync_path(path.parent)
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

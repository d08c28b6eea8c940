"""Documents that users send: checked whole, then kept in home and read into a source of theirs.

A file is stored and found, or neither. The files of a source lie in one folder, which the
knowledge base reads like any other: `osler kb update` and `osler kb rm` know them.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from filecmp import cmp
from pathlib import Path, PurePosixPath

from osler.build.knowledge import open_or_create
from osler.errors import KnowledgeBaseError, OslerError
from osler.kb.ingest.file_table import count_documents
from osler.kb.ingest.reader_process import FileTooCostly, ReadLimits
from osler.settings import Settings
from osler.sources.formats.registry import sniff_file
from osler.text import make_slug

FOLDER = "uploads"
ENDINGS = (".pdf", ".docx", ".xml", ".nxml", ".txt", ".md", ".html", ".htm")
_PROGRAMS = (b"MZ", b"\x7fELF", b"#!", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
_HEAD = 4096
_LONGEST = 200
"""Bytes of a name; systems take 255."""
_BEFORE = "before"
"""Where a file waits, under its folder's name, for the one that takes its place to be read."""
_TWIN = "the same file under another name"
_FIXES = {"encrypted": "save it without a password"}


class BadUpload(OslerError):
    """A file that is not taken. Nothing of it is stored."""


@dataclass(frozen=True, slots=True)
class StoredUpload:
    """A file of a source."""

    source: str
    name: str
    bytes: int
    sent: str
    """ISO 8601, UTC."""


@dataclass(frozen=True, slots=True)
class ReadUpload:
    """What became of a file that was sent."""

    upload: StoredUpload
    documents: int
    passages: int
    drops: dict[str, int]
    """What of it became no document, by reason."""
    replaced: bool = False
    """Whether another file of this name is gone for it."""


@contextmanager
def incoming_file(settings: Settings, data: bytes) -> Iterator[Path]:
    """Yields a file with what was sent, which is gone after the block. Blocks."""
    folder = _make_aside(settings)
    try:
        (folder / "sent").write_bytes(data)
        yield folder / "sent"
    finally:
        _clear_aside(folder)


def clear_interrupted(settings: Settings) -> None:
    """Puts back the files that uploads of ended processes had replaced, and removes what these
    left. Blocks."""
    for folder in (settings.home / FOLDER).glob(".incoming-*"):
        process = folder.name.split("-")[1]
        own = process == str(os.getpid())  # numbers come again, in containers above all
        if own or not process.isdigit() or not _is_alive(int(process)):
            _clear_aside(folder)


def _make_aside(settings: Settings) -> Path:
    """A folder for one upload, which only this user may look into, as the others of uploads."""
    uploads = settings.home / FOLDER
    uploads.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = uploads / f".incoming-{os.getpid()}-{secrets.token_hex(6)}"
    folder.mkdir(mode=0o700)
    return folder


def _clear_aside(folder: Path) -> None:
    """Removes the folder; the files that wait in it for others to be read, go back first."""
    for before in (folder / _BEFORE).glob("*/*"):
        os.replace(before, folder.parent / before.parent.name / before.name)
    shutil.rmtree(folder, ignore_errors=True)


def _put_aside(kept: Path, folder: Path) -> Path:
    """Moves a file to where `_clear_aside` finds it."""
    before = folder / _BEFORE / kept.parent.name / kept.name
    before.parent.mkdir(parents=True)
    os.replace(kept, before)
    return before


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def store_upload(settings: Settings, source: str, name: str, sent: Path) -> ReadUpload:
    """Keeps an incoming file and reads it into the source; one of the same name is replaced.

    Blocks. Raises `BadUpload` for a file that is none of the known formats, cannot be read, or
    takes more to read than it may: nothing of it stays.
    """
    name = _safe_name(name)
    _require_document(name, sent)
    kept = _folder_of(settings, source) / name
    kept.parent.mkdir(mode=0o700, exist_ok=True)
    replaced = kept.exists() and not cmp(kept, sent, shallow=False)
    before = _put_aside(kept, sent.parent) if kept.exists() else None
    os.replace(sent, kept)
    try:
        done = replace(_read_upload(settings, source, kept), replaced=replaced)
    except BaseException:
        kept.unlink()
        if before:
            os.replace(before, kept)
        with suppress(KnowledgeBaseError):  # what went wrong is told, not what came of it
            _forget_gone(settings, source)
        raise
    if before:
        before.unlink()
    return done


def reread_upload(settings: Settings, source: str, name: str) -> ReadUpload | None:
    """Reads a stored file anew, as this version does; `None` if absent. Blocks.

    Raises `BadUpload` for one that can be read no more: it stays, and nothing of it is found.
    """
    folder = _folder_of(settings, source)
    if name not in {one.name for one in list_uploads(settings, source)}:
        return None
    aside = _make_aside(settings)
    try:
        _put_aside(folder / name, aside)
        _forget_gone(settings, source)
    finally:
        _clear_aside(aside)
    _require_document(name, folder / name)
    return _read_upload(settings, source, folder / name)


def list_uploads(settings: Settings, source: str) -> list[StoredUpload]:
    """The files of the source, by name. Blocks."""
    folder = _folder_of(settings, source)
    if not folder.is_dir():
        return []
    return [_stored_upload(source, path) for path in sorted(folder.iterdir()) if path.is_file()]


def delete_upload(settings: Settings, source: str, name: str) -> bool:
    """Deletes the file and what was read from it; whether there was one. Blocks."""
    path = _folder_of(settings, source) / name
    if name not in {one.name for one in list_uploads(settings, source)}:
        return False
    path.unlink()
    _forget_gone(settings, source)
    return True


def _forget_gone(settings: Settings, source: str) -> None:
    """Takes out what was read from files that are gone."""
    into = settings.access.source_of_new(source)
    with open_or_create(settings) as kb:
        kb.update(source=into, prune=_folder_of(settings, source), limits=_read_limits(settings))


def _stored_upload(source: str, path: Path) -> StoredUpload:
    about = path.stat()
    sent = datetime.fromtimestamp(about.st_mtime, UTC).isoformat(timespec="seconds")
    return StoredUpload(source, path.name, about.st_size, sent)


def _folder_of(settings: Settings, source: str) -> Path:
    return settings.home / FOLDER / make_slug(source)


def _safe_name(given: str) -> str:
    """The last part of a name, of letters, digits, hyphens and its ending."""
    path = PurePosixPath(given.replace("\\", "/"))
    if path.suffix.lower() not in ENDINGS:
        shown = path.suffix[:20] or "no ending"
        raise BadUpload(f"a file of {shown} is not accepted", fix=f"send {', '.join(ENDINGS)}")
    stem = make_slug(path.stem)
    if len(stem.encode()) > _LONGEST:
        digest = hashlib.sha256(path.stem.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        stem = f"{stem.encode()[:_LONGEST].decode(errors='ignore')}-{digest}"
    return f"{stem}{path.suffix.lower()}"


def _require_document(name: str, path: Path) -> None:
    """Raises `BadUpload` by the first bytes of the file."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if len(head) < _HEAD and not head.strip():
        raise BadUpload(f"{name} is empty", fix="send one with text")
    if head.startswith(_PROGRAMS):
        raise BadUpload(f"{name} is a program", fix="send a document")
    if sniff_file(name, head) is None:
        raise BadUpload(f"{name} has an unknown format", fix="is it what its name says?")


def _read_limits(settings: Settings) -> ReadLimits:
    chosen = settings.serve
    return ReadLimits(
        chosen.upload_seconds, chosen.upload_memory_mib << 20, chosen.upload_documents
    )


def _read_upload(settings: Settings, source: str, path: Path) -> ReadUpload:
    """Reads what is new in the folder. Raises `BadUpload` where this file brings nothing."""
    into, limits = settings.access.source_of_new(source), _read_limits(settings)
    with open_or_create(settings) as kb:
        try:
            done = kb.add([path.parent], source=into, chunk=settings.kb.chunk, limits=limits)
        except FileTooCostly as error:
            raise BadUpload(error.message, fix=error.fix) from error
        with kb.readers.borrow() as db:
            documents = count_documents(db, into, path)
    shown = f"{path.parent.name}/{path.name}"
    if failed := [one for one in done.failed if one.startswith(f"{shown}: ")]:
        why = failed[0].replace(f"{shown}: ", "").removesuffix(": malformed file")
        raise BadUpload(f"{path.name}: {why}", fix=_FIXES.get(why, "correct the file"))
    drops = done.drops or ({} if done.files or documents else {_TWIN: 1})
    if not documents and _TWIN not in drops:
        why = ", ".join(drops) or "no text"
        raise BadUpload(f"{path.name} holds no document: {why}", fix="send one with text")
    return ReadUpload(_stored_upload(source, path), documents, done.passages, drops)

"""Documents that users send: checked whole, then kept in home and read into a source of theirs.

A file is stored and found, or neither. The files of a source lie in one folder, which the
knowledge base reads like any other: `osler kb update` and `osler kb rm` know them.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from osler.build.knowledge import open_or_create
from osler.errors import MalformedSource, OslerError
from osler.settings import Settings
from osler.sources.formats.registry import sniff_file
from osler.sources.records import Document, Drop, Parser, Record
from osler.text import make_slug

FOLDER = "uploads"
ENDINGS = (".pdf", ".docx", ".xml", ".nxml", ".txt", ".md", ".html", ".htm")
_PROGRAMS = (b"MZ", b"\x7fELF", b"#!", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
_HEAD = 4096


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


def store_upload(settings: Settings, source: str, name: str, data: bytes) -> ReadUpload:
    """Keeps the file and reads it into the source; one of the same name is replaced. Blocks.

    Raises `BadUpload` for a file that is none of the known formats, or cannot be read.
    """
    name = _safe_name(name)
    folder = _folder_of(settings, source)
    incoming = settings.home / FOLDER / f".incoming-{secrets.token_hex(6)}"
    incoming.mkdir(parents=True)
    try:
        path = incoming / name
        path.write_bytes(data)
        documents, drops = _check_file(path)
        folder.mkdir(exist_ok=True)
        before = (folder / name).read_bytes() if (folder / name).exists() else None
        os.replace(path, folder / name)
        try:
            passages = _read_folder(settings, source, folder, name)
        except BaseException:
            _undo(folder / name, before)
            raise
    finally:
        shutil.rmtree(incoming, ignore_errors=True)
    return ReadUpload(_stored_upload(source, folder / name), documents, passages, drops)


def reread_upload(settings: Settings, source: str, name: str) -> ReadUpload | None:
    """Reads a stored file anew, as this version does; `None` if absent. Blocks.

    Raises `BadUpload` for one that can be read no more: it stays, and nothing of it is found.
    """
    folder = _folder_of(settings, source)
    if name not in {one.name for one in list_uploads(settings, source)}:
        return None
    aside = folder.parent / f".incoming-{secrets.token_hex(6)}"
    aside.mkdir()
    try:
        os.replace(folder / name, aside / name)
        _forget_gone(settings, source)
    finally:
        if (aside / name).exists():
            os.replace(aside / name, folder / name)
        shutil.rmtree(aside, ignore_errors=True)
    documents, drops = _check_file(folder / name)
    passages = _read_folder(settings, source, folder, name)
    return ReadUpload(_stored_upload(source, folder / name), documents, passages, drops)


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
    with open_or_create(settings) as kb:
        kb.update(source=settings.access.source_of_new(source), prune=True)


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
    return f"{make_slug(path.stem)}{path.suffix.lower()}"


def _check_file(path: Path) -> tuple[int, dict[str, int]]:
    """Reads it to its end: its documents, and what becomes none. Raises `BadUpload`."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if head.startswith(_PROGRAMS):
        raise BadUpload(f"{path.name} is a program", fix="send a document")
    parser = sniff_file(path.name, head)
    if parser is None:
        raise BadUpload(f"{path.name} has an unknown format", fix="is it what its name says?")
    documents, drops = 0, Counter[str]()
    try:
        for record in _parse(path, parser):
            documents += isinstance(record, Document)
            if isinstance(record, Drop):
                drops[record.reason] += 1
    except MalformedSource as error:
        raise BadUpload(error.message, fix=error.fix) from error
    if not documents:
        why = ", ".join(drops) or "no text"
        raise BadUpload(f"{path.name} holds no document: {why}", fix="send one with text")
    return documents, dict(drops)


def _parse(path: Path, parser: Parser) -> Iterator[Record]:
    with path.open("rb") as stream:
        yield from parser.parse(stream, path.name)


def _read_folder(settings: Settings, source: str, folder: Path, name: str) -> int:
    """New passages. Raises `BadUpload` where the file cannot be read after all."""
    with open_or_create(settings) as kb:
        into = settings.access.source_of_new(source)
        done = kb.add([folder], source=into, chunk=settings.kb.chunk)
        if failed := [one for one in done.failed if name in one]:
            raise BadUpload(failed[0], fix="correct the file")
        return done.passages


def _undo(path: Path, before: bytes | None) -> None:
    """Puts back what lay there before."""
    if before is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(before)

"""One verified archive of all that a home holds and cannot fetch again, and of the settings.

It is made while a server runs and writes: databases are copied by SQLite itself, at one moment
each; a run's folder is whole once it has its name; of a log the whole lines count. The order
matters: conversations, feedback and the ledger go before the runs, signed heads before the log that
they sign, and what was uploaded after the knowledge base that has read it, so that nothing in the
archive speaks of what is not in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from osler.audit.checkpoints import HEAD
from osler.audit.entries import log_folder
from osler.errors import BadConfig, StorageFailed
from osler.kb.store.durable import make_folders, sync_path, write_private
from osler.settings import Settings
from osler_serve.ops import uploads

MANIFEST, SETTINGS = "manifest.json", "settings/osler.toml"
_FORMAT = 1
_SQLITE = b"SQLite format 3\0"
_PIECE = 1 << 20
_BESIDE = ("-wal", "-shm", "-journal")
# Locks; and the index of the embedded engine, which a build makes again of the vectors.
_LEFT_OUT = {"kb.lock", "edge"}
# In home while parts of a restored backup get their names: the manifest.
_BEGUN = ".restoring"
# Of home: what can be fetched again, and what an earlier `osler restore` put there.
_NOT_OF_HOME = {"web", "fetched", "settings"}


@dataclass(frozen=True, slots=True)
class BackupReport:
    path: Path
    when: str
    """ISO 8601, UTC."""
    files: int
    bytes: int
    """Of all files, unpacked."""
    parts: dict[str, int]
    """Files of each part."""


_PARTS = {"home", "serve", "runs", "audit", "kb", "uploads", "settings"}


def part_folders(settings: Settings) -> dict[str, Path]:
    """Where each part lies, in the order in which they are copied."""
    return {
        "home": settings.home,
        "serve": settings.home / "serve",
        "runs": settings.runs.path,
        "audit": log_folder(settings),
        "kb": settings.kb.path,
        "uploads": settings.home / uploads.FOLDER,
    }


def make_backup(
    settings: Settings, target: Path, settings_file: Path | None = None
) -> BackupReport:
    """Writes the archive, reads it again, and only then gives it its name (mode 0600).

    Raises `BadConfig` where the file is there already, and `StorageFailed`.
    """
    if target.exists():
        raise BadConfig(f"{target} already exists", fix="choose another name")
    draft, scratch = (target.with_name(f".{target.name}.{end}") for end in ("part", "copy"))
    try:
        make_folders(target.parent)
        with suppress(FileNotFoundError):
            draft.unlink()  # of a backup that was killed
        handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w+b") as file:
            _write_archive(file, settings, settings_file, scratch)
            file.flush()
            os.fsync(file.fileno())
        report = check_backup(draft)
        draft.replace(target)
        sync_path(target.parent)
    except (OSError, sqlite3.Error) as error:
        said = getattr(error, "strerror", None) or error
        fix = "check that both disks have room and can be read and written"
        raise StorageFailed(f"the backup failed: {said}", fix=fix) from error
    finally:
        for left in (draft, scratch):
            with suppress(OSError):
                left.unlink()
    return BackupReport(target, report.when, report.files, report.bytes, report.parts)


def _write_archive(
    file: BinaryIO, settings: Settings, settings_file: Path | None, scratch: Path
) -> None:
    listed: dict[str, tuple[int, str]] = {}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, path in _list_files(settings, settings_file):
            # A run may be deleted meanwhile: then it is in neither.
            with suppress(FileNotFoundError), _open_copy(path, scratch) as source:
                listed[place] = _copy_in(archive, place, source)
        manifest = {
            "format": _FORMAT,
            "osler": version("osler"),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "files": listed,
        }
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))


def _list_files(settings: Settings, settings_file: Path | None) -> Iterator[tuple[str, Path]]:
    folders = part_folders(settings)
    rest = {settings.home / name for name in _NOT_OF_HOME} | {*folders.values()}
    for part, folder in folders.items():
        others = rest - {folder} if part == "home" else set()
        for path in sorted(folder.rglob("*"), key=_order_file):
            inner = path.relative_to(folder)
            hidden = any(word.startswith(".") or word in _LEFT_OUT for word in inner.parts)
            hidden = hidden or any(path.is_relative_to(other) for other in others)
            hidden = hidden or (part == "home" and path.suffix == ".zip")  # another backup
            if path.is_file() and not hidden and not path.name.endswith(_BESIDE):
                yield f"{part}/{inner.as_posix()}", path
    if settings_file is not None and settings_file.is_file():
        yield SETTINGS, settings_file


def _order_file(path: Path) -> tuple[bool, Path]:
    """What says how much another file holds comes before it: a server may write meanwhile."""
    return "checkpoint" not in path.name and path.name != HEAD, path


def _open_copy(path: Path, scratch: Path) -> BinaryIO:
    """The file, or a copy of the database at one moment."""
    file = path.open("rb")
    if file.read(len(_SQLITE)) != _SQLITE:
        file.seek(0)
        return file
    file.close()
    scratch.unlink(missing_ok=True)
    os.close(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    uri = f"{path.resolve().as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(uri, uri=True, timeout=60)) as source,
        closing(sqlite3.connect(scratch, isolation_level=None)) as target,
    ):
        source.backup(target)
        target.execute("PRAGMA journal_mode=DELETE")
        (found,) = target.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise StorageFailed(f"{path} is damaged: {found}", fix="run `osler kb info --verify`")
    return scratch.open("rb")


def _copy_in(archive: zipfile.ZipFile, place: str, source: BinaryIO) -> tuple[int, str]:
    size, hashed, rest = 0, hashlib.sha256(), b""
    is_log = place.startswith(("audit/", "home/")) and place.endswith(".jsonl")
    with archive.open(place, "w", force_zip64=True) as target:
        while piece := source.read(_PIECE):
            if is_log:  # half a line may be its writer's last
                whole = (rest + piece).rpartition(b"\n")
                piece, rest = whole[0] + whole[1], whole[2]
            target.write(piece)
            hashed.update(piece)
            size += len(piece)
    return size, hashed.hexdigest()


def check_backup(path: Path) -> BackupReport:
    """Reads every byte. Raises `StorageFailed` where one is not as it was written."""
    with _open_archive(path) as (archive, manifest):
        parts: dict[str, int] = {}
        for place, (size, digest) in manifest["files"].items():
            _copy_out(archive, place, size, digest, None)
            part = place.partition("/")[0]
            parts[part] = parts.get(part, 0) + 1
        sizes = [size for size, _ in manifest["files"].values()]
        return BackupReport(path, manifest["when"], len(sizes), sum(sizes), parts)


def restore_backup(path: Path, settings: Settings) -> BackupReport:
    """Puts each part where the settings say it lies; nothing is there before all is checked. Where
    it was killed, it goes on when it is run again.

    Raises `StorageFailed` for an archive that is not whole, and `BadConfig` where something lies
    in a part's place already.
    """
    report = check_backup(path)
    folders = {**part_folders(settings), "settings": settings.home / "settings"}
    # The knowledge base gets its name last: where it is, all is.
    parts = sorted(report.parts, key=lambda part: part == "kb")
    drafts = {
        part: folders[part] / ".restored"
        if part == "home"
        else folders[part].with_name(f".{folders[part].name}.restored")
        for part in parts
    }
    try:
        with _open_archive(path) as (archive, manifest):
            begun, mark = settings.home / _BEGUN, json.dumps(manifest)
            if not (begun.is_file() and begun.read_text() == mark):
                _refuse_taken(manifest["files"], folders)
                begun.unlink(missing_ok=True)
            for draft in drafts.values():
                shutil.rmtree(draft, ignore_errors=True)
                make_folders(draft.parent)
                draft.mkdir(mode=0o700)
            for place, (size, digest) in manifest["files"].items():
                part, _, inner = place.partition("/")
                _write_out(archive, place, size, digest, drafts[part] / inner)
        write_private(begun, mark.encode())
        for part, draft in drafts.items():
            if part == "home":
                for entry in draft.iterdir():
                    _give_name(entry, folders[part] / entry.name)
            else:
                _give_name(draft, folders[part])
            sync_path(folders[part].parent if part != "home" else folders[part])
    except OSError as error:
        fix = "make room and run it again"
        raise StorageFailed(f"restoring failed: {error.strerror or error}", fix=fix) from error
    finally:
        for draft in drafts.values():
            shutil.rmtree(draft, ignore_errors=True)
    with suppress(OSError):
        begun.unlink()
    return report


def _give_name(draft: Path, place: Path) -> None:
    """What has its name already got it before a kill."""
    if place.is_dir() and not any(place.iterdir()):
        place.rmdir()
    if not place.exists():
        draft.rename(place)


def _refuse_taken(places: Iterable[str], folders: dict[str, Path]) -> None:
    """Raises `BadConfig` where something lies where a part is to go."""
    for place in places:
        part, inner = place.split("/")[:2]
        target = folders[part] / inner if part == "home" else folders[part]
        if target.is_file() or (target.is_dir() and any(target.iterdir())):
            fix = "restore to an empty place: OSLER__HOME=/new/home osler restore FILE"
            raise BadConfig(f"{target} already exists, or not empty", fix=fix)


def _write_out(archive: zipfile.ZipFile, place: str, size: int, digest: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        _copy_out(archive, place, size, digest, file)
        file.flush()
        os.fsync(file.fileno())
    sync_path(target.parent)


def _copy_out(
    archive: zipfile.ZipFile, place: str, size: int, digest: str, target: BinaryIO | None
) -> None:
    hashed, read = hashlib.sha256(), 0
    try:
        with archive.open(place) as source:
            while read <= size and (piece := source.read(_PIECE)):
                hashed.update(piece)
                read += len(piece)
                if target is not None:
                    target.write(piece)
    except _BROKEN as error:
        raise _broken_archive(place) from error
    if (read, hashed.hexdigest()) != (size, digest):
        raise _broken_archive(place)


# What zipfile raises for archives that are not whole; `RuntimeError` for an encrypted member.
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, KeyError, TypeError, EOFError, ValueError),
    *(NotImplementedError, RuntimeError),
)


def _broken_archive(what: str) -> StorageFailed:
    return StorageFailed(f"incomplete backup: {what}", fix="take another copy of it")


@contextmanager
def _open_archive(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, Any]]]:
    """The archive and its manifest, which names every member and no place outside."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read(MANIFEST))
            names = [*manifest["files"], MANIFEST]
            if manifest["format"] != _FORMAT or sorted(names) != sorted(archive.namelist()):
                raise _broken_archive("its files are not those that it lists")
            if unsafe := [name for name in names[:-1] if not _is_safe(name)]:
                raise _broken_archive(f"a file {unsafe[0]!r}")
            yield archive, manifest
    except _BROKEN as error:
        raise _broken_archive(str(error)) from error
    except OSError as error:
        raise StorageFailed(f"{path} cannot be read: {error.strerror or error}") from error


def _is_safe(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return len(parts) > 1 and parts[0] in _PARTS and ".." not in parts and "\\" not in name

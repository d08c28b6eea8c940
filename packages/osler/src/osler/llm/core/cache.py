"""The cache folder: whole files or none, and a note of each one's hash.

A file appears under its name only when it is complete. Beside it lies a
`.verified` note: the sha256 that was found, and the inode, size and times the
file had then, under a key of the user's own that lies elsewhere. While those stand the
note answers for the file, so that a start does not read hundreds of megabytes; when they
change, or the note is another's, the file is read again. Who can write to the cache
alone can therefore not have other weights taken for these.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from osler.errors import ModelMissing, translate_os_errors


def cache_dir() -> Path:
    """Returns `$OSLER_CACHE`, else the platform's cache folder. It may not exist yet."""
    folder = os.environ.get("OSLER_CACHE")
    if folder:
        return Path(folder).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("osler", appauthor=False))


def derive_file(name: str, make: Callable[[Path], None], *, cache: Path | None = None) -> Path:
    """Returns the cached file `name`, made by `make` when it is absent or has changed.

    `make` writes to the path that it is given. Two processes that make it at once do the
    work twice and harm nothing. Raises `ModelMissing` when the cache cannot be written.
    """
    path = (cache or cache_dir()) / name
    if path.is_file() and (note := _read_note(path)) and sha256_of(path) == note.sha256:
        remember_hash(path, note.sha256)
        return path
    with prepare_folder(path.parent), write_whole(path) as draft:
        make(draft)
    remember_hash(path, sha256_of(path))
    return path


@contextmanager
def prepare_folder(folder: Path) -> Iterator[None]:
    """Makes the folder; a failure to write there becomes `ModelMissing` with a fix."""
    fix = "make room there, or set OSLER_CACHE to another folder"
    with translate_os_errors(f"cannot write to the cache {folder}", ModelMissing, fix):
        folder.mkdir(parents=True, exist_ok=True)
        yield


@contextmanager
def write_whole(target: Path) -> Iterator[Path]:
    """Yields a path to write to: it becomes `target` if the block ends well, else it vanishes."""
    # Beside the target, not in /tmp: a rename is atomic within one file system only.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".partial-") as folder:
        draft = Path(folder) / target.name
        yield draft
        os.replace(draft, target)


def sha256_of(path: Path) -> str:
    """Returns the noted hash while the file is the one that was noted, else hashes it."""
    note = _read_note(path)
    return note.sha256 if note and note.shape == _file_shape(path) else hash_file(path)


def hash_file(path: Path) -> str:
    """SHA-256 of the content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remember_hash(path: Path, sha256: str) -> None:
    """Notes a file's hash beside it; not in a read-only cache, nor for a user without a key."""
    note = _Note(sha256, _file_shape(path))
    if note != _read_note(path):
        with suppress(OSError), write_whole(_note_path(path)) as draft:
            content = {**asdict(note), "mac": _sign_note(path, note, _own_key())}
            draft.write_text(json.dumps(content), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Note:
    sha256: str
    shape: tuple[int, ...]
    """Inode, size, times of the last change of content and of the inode (which nobody sets)."""


def _file_shape(path: Path) -> tuple[int, ...]:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _sign_note(path: Path, note: _Note, key: bytes) -> str:
    text = json.dumps([str(path.resolve()), note.sha256, note.shape])
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def _own_key() -> bytes:
    """The user's key for notes, made at first use. Raises `OSError`."""
    import platformdirs

    path = Path(platformdirs.user_data_dir("osler", appauthor=False)) / "notes.key"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with write_whole(path) as draft:
            draft.touch(mode=0o600)
            draft.write_bytes(secrets.token_bytes(32))
    key = path.read_bytes()
    if len(key) != 32:
        raise OSError(errno.EINVAL, f"{path} is no key")
    return key


def _note_path(path: Path) -> Path:
    return path.with_name(path.name + ".verified")


def _read_note(path: Path) -> _Note | None:
    try:
        content = json.loads(_note_path(path).read_text(encoding="utf-8"))
        note = _Note(str(content["sha256"]), tuple(map(int, content["shape"])))
        signed = _sign_note(path, note, _own_key())
        return note if hmac.compare_digest(signed, str(content["mac"])) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None

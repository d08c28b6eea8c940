"""The log's file: one entry a line, appended, flushed and signed before an answer is returned.

Beside `entries.jsonl` lies `head`, the last checkpoint, in two slots that are written in turn: a
power cut spoils one of them at most. What stands behind the head was never answered for, and is
cut off at the next start. `audit.copies` keeps checkpoints where this machine cannot reach them.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from osler.audit.checkpoints import (
    Checkpoint,
    CheckpointSigner,
    MerkleFrontier,
    hash_leaf,
    is_signed_by,
    read_checkpoints,
)
from osler.errors import StorageFailed, translate_os_errors
from osler.kb.store.durable import make_folders, sync_path, write_private

ENTRIES, HEAD, LOCK, PUBLIC = "entries.jsonl", "head", "lock", "public.key"
_SLOT = 512
_FIX = "run `osler audit --verify`; check free disk space and write permissions"


class AuditLog:
    """Any thread and any process may append. Raises `StorageFailed` where that fails."""

    def __init__(
        self, folder: Path, signer: CheckpointSigner, copies: Path | None = None, every: int = 100
    ) -> None:
        self.folder = folder
        self._signer = signer
        self._copies, self._every = copies, every
        self._lock = threading.Lock()
        self._tree = MerkleFrontier()
        self._bytes = 0
        """Of the entries that `_tree` holds."""
        with _storage_errors(folder):
            make_folders(folder.parent)
            folder.mkdir(exist_ok=True, mode=0o700)
            with self._hold_files():
                sync_path(folder)  # the names of the files, before anything in them counts
            sync_path(folder.parent)
            _keep_public(folder / PUBLIC, f"{signer.public_key}\n".encode())

    def append(self, record: Mapping[str, Any]) -> int:
        """The number of the entry, from 0. It is on disk and signed when this returns."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._lock, _storage_errors(self.folder), self._hold_files() as (entries, head):
            if os.fstat(entries).st_size != self._bytes or self._bytes == 0:
                self._load(entries, head)
            number = self._tree.size
            line = json.dumps({"n": number, "at": now, **record}, ensure_ascii=False).encode()
            grown = self._tree.copy()
            grown.append(hash_leaf(line))
            self._write(entries, line + b"\n")
            signed = self._signer.sign(grown.size, grown.root(), now)
            _write_head(head, signed)
            self._tree, self._bytes = grown, self._bytes + len(line) + 1
        if self._copies is not None and signed.size % self._every == 0:
            self._copy(signed)
        return number

    def _copy(self, signed: Checkpoint) -> None:
        assert self._copies is not None  # noqa: S101  its callers look
        with _storage_errors(self._copies), self._copies.open("a", encoding="utf-8") as file:
            file.write(signed.to_json() + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _write(self, entries: int, data: bytes) -> None:
        """The whole line, or nothing of it."""
        try:
            os.lseek(entries, self._bytes, os.SEEK_SET)
            written = 0
            while written < len(data):
                written += os.write(entries, data[written:])
            os.fdatasync(entries)
        except OSError:
            os.ftruncate(entries, self._bytes)
            raise

    def _load(self, entries: int, head: int) -> None:
        """Reads what is there, of this process or another, up to the head."""
        signed = _best_slot(head)
        size = signed.size if signed else 0
        tree, kept = MerkleFrontier(), 0
        os.lseek(entries, 0, os.SEEK_SET)
        with os.fdopen(os.dup(entries), "rb") as file:
            for line in file:
                if tree.size == size or not line.endswith(b"\n"):
                    break
                tree.append(hash_leaf(line[:-1]))
                kept += len(line)
        if tree.size != size or (signed and tree.root().hex() != signed.root):
            raise StorageFailed("the audit log does not match its signature", fix=_FIX)
        os.ftruncate(entries, kept)
        self._tree, self._bytes = tree, kept

    @contextmanager
    def _hold_files(self) -> Iterator[tuple[int, int]]:
        with ExitStack() as stack:
            handles = []
            for name in (LOCK, ENTRIES, HEAD):
                handle = os.open(self.folder / name, os.O_RDWR | os.O_CREAT, 0o600)
                stack.callback(os.close, handle)
                handles.append(handle)
            fcntl.flock(handles[0], fcntl.LOCK_EX)
            yield handles[1], handles[2]


def _keep_public(path: Path, key: bytes) -> None:
    if not path.is_file() or path.read_bytes() != key:
        path.unlink(missing_ok=True)
        write_private(path, key)


def _write_head(head: int, signed: Checkpoint) -> None:
    slot, at = signed.to_json().encode().ljust(_SLOT), _SLOT * (signed.size % 2)
    written = 0
    while written < len(slot):  # a full disk takes a part, and says so at the next write
        written += os.pwrite(head, slot[written:], at + written)
    os.fdatasync(head)


def _best_slot(head: int) -> Checkpoint | None:
    """The newest of the two that is whole."""
    whole = []
    for number in range(2):
        data = os.pread(head, _SLOT, _SLOT * number)
        try:
            whole += read_checkpoints([data.decode()])
        except ValueError:  # cut short by a power failure, or not written yet
            continue
    return max(whole, key=lambda one: one.size, default=None)


def read_head(folder: Path) -> Checkpoint | None:
    """The last checkpoint; `None` of a log without one."""
    try:
        handle = os.open(folder / HEAD, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return _best_slot(handle)
    finally:
        os.close(handle)


def read_lines(folder: Path) -> list[bytes]:
    """The entries as they are hashed. Raises `StorageFailed`."""
    lines = _read_data(folder).split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def _read_data(folder: Path) -> bytes:
    with _storage_errors(folder):
        path = folder / ENTRIES
        return path.read_bytes() if path.exists() else b""


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify_log` found."""

    entries: int
    public_key: str
    checkpoints: int
    """That were compared, of the head and of the copies."""
    problems: tuple[str, ...]


def verify_log(folder: Path, public_key: str, copies: Iterable[Checkpoint] = ()) -> Verification:
    """Holds the entries against the head and every copied checkpoint.

    Whoever has neither the signing key nor the second place cannot change, reorder, add or cut
    off an entry unseen. Raises `StorageFailed`.
    """
    lines, head = read_lines(folder), read_head(folder)
    problems = _slot_problems(folder)
    if lines and not _read_data(folder).endswith(b"\n"):
        problems.append("the last entry is cut short")
    if head is None:
        problems.append("there is no signed head")
    elif head.size != len(lines):
        problems.append(f"{len(lines):,} entries are there, {head.size:,} were signed")
    wanted: dict[int, list[Checkpoint]] = {}
    for one in (*copies, *([head] if head else [])):
        wanted.setdefault(one.size, []).append(one)
    checked, tree = 0, MerkleFrontier()
    for number, line in enumerate((None, *lines)):
        if line is not None:
            tree.append(hash_leaf(line))
            if _number_of(line) != number - 1:
                problems.append(f"entry {number - 1:,} is out of place or damaged")
        for one in wanted.pop(number, ()):
            checked += 1
            problems += _check_one(one, tree.root().hex(), public_key)
    problems += [f"a checkpoint knows {size:,} entries, not {len(lines):,}" for size in wanted]
    return Verification(len(lines), public_key, checked, tuple(dict.fromkeys(problems)))


def _slot_problems(folder: Path) -> list[str]:
    """Both slots are whole, and of neighbouring sizes, but after a power cut."""
    if (head := read_head(folder)) is None or head.size < 2:
        return []
    data = (folder / HEAD).read_bytes()
    slots = [data[at : at + _SLOT] for at in (0, _SLOT)]
    try:
        sizes = sorted(read_checkpoints([slot.decode() for slot in slots]), key=lambda s: s.size)
    except ValueError:
        return ["one of the two signed heads is damaged: by a power cut, or by somebody"]
    whole = len(sizes) == 2 and sizes[0].size == head.size - 1
    return [] if whole else ["one of the two signed heads is missing"]


def _check_one(signed: Checkpoint, root: str, public_key: str) -> list[str]:
    if not is_signed_by(signed, public_key):
        return [f"the checkpoint of {signed.size:,} entries is not signed by this log's key"]
    if signed.root != root:
        return [f"the first {signed.size:,} entries are not those that were signed"]
    return []


def _number_of(line: bytes) -> int | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry.get("n") if isinstance(entry, dict) else None


def _storage_errors(place: Path) -> AbstractContextManager[None]:
    said = f"the audit log in {place} cannot be read or written"
    return translate_os_errors(said, StorageFailed, _FIX)

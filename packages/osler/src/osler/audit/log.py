"""The log's file: one entry a line, appended, flushed and signed before an answer is returned.

Beside `entries.jsonl` lies `head`, the last checkpoint. What stands behind the head was never
answered for, and is cut off at the next start. A log that is shorter than its anchors, or another
than they signed, is not gone on with. `audit.copies` keeps checkpoints where this machine cannot
reach them.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from osler.audit.checkpoints import (
    HEAD,
    SLOT,
    Anchors,
    Checkpoint,
    CheckpointSigner,
    MerkleFrontier,
    hash_leaf,
    is_signed_by,
    newest_signed,
    read_slots,
    write_slot,
)
from osler.errors import StorageFailed, translate_os_errors
from osler.kb.store.durable import make_folders, probe_folder, sync_path, write_private

ENTRIES, LOCK, PUBLIC = "entries.jsonl", "lock", "public.key"
_FIX = "run `osler audit --verify`; check free disk space and write permissions"
_PUT_BACK = (
    "stop Osler, put back the newest whole copy of the folder and run `osler audit --verify`; only"
    " if the entries are lost, `osler audit --accept` goes on from what is there and records that"
)
_MOVE = f"{_PUT_BACK}, once the folder is moved elsewhere"


class AuditLog:
    """Any thread and any process may append. Raises `StorageFailed` where that fails."""

    def __init__(
        self,
        folder: Path,
        signer: CheckpointSigner,
        copies: Path | None = None,
        every: int = 100,
        anchors: Sequence[Path] = (),
    ) -> None:
        self.folder = folder
        self._anchors = Anchors(anchors, signer.public_key)
        self._signer = signer
        self._copies, self._every = copies, every
        self._lock = threading.Lock()
        self._tree = MerkleFrontier()
        self._bytes = 0
        """Of the entries that `_tree` holds."""
        self._head = b""
        """The head that signs them."""
        with storage_errors(folder):
            make_folders(folder.parent)
            folder.mkdir(exist_ok=True, mode=0o700)
            with self._hold_files():
                sync_path(folder)  # the names of the files, before anything in them counts
            sync_path(folder.parent)

    def append(self, record: Mapping[str, Any]) -> int:
        """The number of the entry, from 0. It is on disk and signed when this returns."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._lock, storage_errors(self.folder), self._hold_current() as (entries, head):
            number = self._tree.size
            line = json.dumps({"n": number, "at": now, **record}, ensure_ascii=False).encode()
            grown = self._tree.copy()
            grown.append(hash_leaf(line))
            self._write(entries, line + b"\n")
            signed = self._signer.sign(grown.size, grown.root(), now)
            write_slot(head, signed)
            os.fdatasync(head)
            self._tree, self._bytes = grown, self._bytes + len(line) + 1
            self._head = os.pread(head, 2 * SLOT, 0)
            self._anchors.keep(signed)
        if self._copies is not None and signed.size % self._every == 0:
            self._copy(signed)
        return number

    def check(self) -> None:
        """Raises `StorageFailed` for a log that is not gone on with."""
        with self._lock, storage_errors(self.folder), self._hold_files() as (entries, head):
            self._load(entries, head, self._known())

    def check_writable(self) -> None:
        """Raises `StorageFailed` where the next entry would: nothing is appended."""
        with self._lock, storage_errors(self.folder), self._hold_current():
            probe_folder(self.folder)

    def accept(self) -> int:
        """Goes on from what is there, however short; the entry that says so has this number."""
        lost = max((one for _, one in self._anchors.read()), key=lambda one: one.size, default=None)
        with self._lock, storage_errors(self.folder), self._hold_files() as (entries, head):
            self._load(entries, head, [])
        self._anchors.drop()
        signed = {} if lost is None else {"signed": lost.size, "root": lost.root, "until": lost.at}
        return self.append({"what": "audit.accepted", "held": self._tree.size, **signed})

    @contextmanager
    def _hold_current(self) -> Iterator[tuple[int, int]]:
        """The files, read anew where somebody else has written since."""
        with self._hold_files() as (entries, head):
            is_same = os.fstat(entries).st_size == self._bytes > 0
            if not is_same or os.pread(head, 2 * SLOT, 0) != self._head:
                self._load(entries, head, self._known())
            yield entries, head

    def _known(self) -> list[tuple[Path, Checkpoint]]:
        """What was signed and where that stands: in the anchors, and in this process."""
        own = Checkpoint(self._tree.size, self._tree.root().hex(), "")
        mine = [(Path("this process"), own)] if self._tree.size else []
        return [*self._anchors.read(), *mine]

    def _copy(self, signed: Checkpoint) -> None:
        assert self._copies is not None  # noqa: S101  its callers look
        with storage_errors(self._copies), self._copies.open("a", encoding="utf-8") as file:
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

    def _load(self, entries: int, head: int, known: list[tuple[Path, Checkpoint]]) -> None:
        """Reads what is there, of this process or another, up to the head."""
        data = os.pread(head, 2 * SLOT, 0)
        signed = newest_signed(read_slots(data), self._signer.public_key)
        if signed is None:
            self._check_unsigned(entries, data)
        else:
            known = [*known, (self.folder / HEAD, signed)]
        tree, kept, roots = MerkleFrontier(), 0, {one.size: "" for _, one in known}
        os.lseek(entries, 0, os.SEEK_SET)
        with os.fdopen(os.dup(entries), "rb") as file:
            for line in file:
                if tree.size == (signed.size if signed else 0) or not line.endswith(b"\n"):
                    break
                tree.append(hash_leaf(line[:-1]))
                kept += len(line)
                if tree.size in roots:
                    roots[tree.size] = tree.root().hex()
        for place, one in known:
            self._check_known(place, one, tree.size, roots[one.size])
        os.ftruncate(entries, kept)
        _keep_public(self.folder / PUBLIC, f"{self._signer.public_key}\n".encode())
        self._tree, self._bytes, self._head = tree, kept, data

    def _check_known(self, place: Path, one: Checkpoint, held: int, root: str) -> None:
        if one.signature and not is_signed_by(one, self._signer.public_key):
            said = f"{place} is of a log in {self.folder} that another key signed"
            raise StorageFailed(said, fix=f"set audit.key_file to that key, or {_PUT_BACK}")
        if one.size > held:
            said = f"the audit log in {self.folder} holds {held:,} entries, and {one.size:,} were"
            raise StorageFailed(f"{said} signed by {one.at or 'now'} ({place})", fix=_PUT_BACK)
        if one.root != root:
            said = f"the audit log in {self.folder} does not match its signature in {place}"
            raise StorageFailed(said, fix=_MOVE)

    def _check_unsigned(self, entries: int, head: bytes) -> None:
        """Without a signed head there is one entry at most: the first, in a crash."""
        data = os.pread(entries, os.fstat(entries).st_size, 0)
        if read_slots(head) or data.count(b"\n") > 1:
            said = f"the audit log in {self.folder} has no head that its key signed"
            raise StorageFailed(said, fix=_MOVE)

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


def storage_errors(place: Path) -> AbstractContextManager[None]:
    """Tells of the log's files what went wrong with them, and what mends it."""
    said = f"the audit log in {place} cannot be read or written"
    return translate_os_errors(said, StorageFailed, _FIX)

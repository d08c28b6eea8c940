"""Signed tree heads: how many entries there were, and the root of their tree.

The last checkpoint on disk, in two slots that are written in turn: a power cut spoils one of
them at most.

It lies beside the entries, as `head`, and in other places, its anchors: a log that holds less than
an anchor says was cut, emptied or set back. An anchor is written behind the head, so that a crash
leaves it old, never ahead. One is a row of the server's ledger: who sets that file back, sets back
runs and keys with it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from osler.errors import BadConfig, require_extra, translate_os_errors
from osler.kb.store.durable import write_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def hash_leaf(entry: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + entry).digest()


def hash_node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class MerkleFrontier:
    """The roots of the whole subtrees of a growing tree: all that appending needs, log n hashes."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self.size = 0
        self._roots: list[bytes] = []
        for leaf in leaves:
            self.append(leaf)

    def append(self, leaf: bytes) -> None:
        """Adds the hash of an entry."""
        self._roots.append(leaf)
        self.size += 1
        # As many whole subtrees end here as the new size has trailing zero bits.
        for _ in range((self.size & -self.size).bit_length() - 1):
            right, left = self._roots.pop(), self._roots.pop()
            self._roots.append(hash_node(left, right))

    def root(self) -> bytes:
        """MTH of RFC 6962: of no leaves, the hash of nothing."""
        if not self._roots:
            return hashlib.sha256().digest()
        root = self._roots[-1]
        for left in reversed(self._roots[:-1]):
            root = hash_node(left, root)
        return root

    def copy(self) -> MerkleFrontier:
        twin = MerkleFrontier()
        twin.size, twin._roots = self.size, [*self._roots]
        return twin


@dataclass(frozen=True, slots=True)
class Checkpoint:
    size: int
    """Entries."""
    root: str
    """Of their tree, in hexadecimal."""
    at: str
    """ISO 8601, UTC."""
    signature: str = ""
    """Ed25519 over `signed_bytes`, in hexadecimal."""

    def signed_bytes(self) -> bytes:
        return f"osler audit 1\n{self.size}\n{self.root}\n{self.at}\n".encode()

    def to_json(self) -> str:
        return json.dumps(asdict(self))


class CheckpointSigner:
    """Signs with a key of its own, which it makes at the first use (a file of the owner's alone).

    Raises `BadConfig` without the extra `audit`, and for a key that cannot be read or made.
    """

    def __init__(self, key_file: Path) -> None:
        with require_extra("audit", "the audit log needs the extra `audit`"):
            from cryptography.hazmat.primitives import serialization
            from cryptography.hazmat.primitives.asymmetric import ed25519
        if not key_file.exists():
            fresh = ed25519.Ed25519PrivateKey.generate()
            pem = fresh.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            fix = "set audit.path to a folder that can be written"
            with translate_os_errors(f"{key_file} cannot be made", BadConfig, fix):
                write_private(key_file, pem)
        try:
            loaded = serialization.load_pem_private_key(key_file.read_bytes(), None)
        except (OSError, ValueError, TypeError) as error:
            fix = "set audit.key_file to an Ed25519 key in PEM, or to a file that is to be made"
            raise BadConfig(f"{key_file} holds no signing key: {error}", fix=fix) from error
        if not isinstance(loaded, ed25519.Ed25519PrivateKey):
            raise BadConfig(f"{key_file} is not an Ed25519 key", fix="make another")
        self._key: Ed25519PrivateKey = loaded

    @property
    def public_key(self) -> str:
        """In hexadecimal: 32 bytes."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, size: int, root: bytes, at: str) -> Checkpoint:
        plain = Checkpoint(size, root.hex(), at)
        return Checkpoint(size, root.hex(), at, self._key.sign(plain.signed_bytes()).hex())


def is_signed_by(checkpoint: Checkpoint, public_key: str) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(
            bytes.fromhex(checkpoint.signature), checkpoint.signed_bytes()
        )
    except (InvalidSignature, ValueError):
        return False
    return True


HEAD = "head"
LEDGER = "serve.sqlite"
"""Name of the server's database."""
SLOT = 512
_LOG = logging.getLogger("osler.audit")


def write_slot(handle: int, signed: Checkpoint) -> None:
    slot, at = signed.to_json().encode().ljust(SLOT), SLOT * (signed.size % 2)
    written = 0
    while written < len(slot):  # a full disk takes a part, and says so at the next write
        written += os.pwrite(handle, slot[written:], at + written)


def read_checkpoints(lines: Iterable[str]) -> list[Checkpoint]:
    """Raises `ValueError` for a line that is no checkpoint."""
    try:
        return [Checkpoint(**json.loads(line)) for line in lines if line.strip()]
    except TypeError as error:
        raise ValueError(str(error)) from error


def read_slots(data: bytes) -> list[Checkpoint]:
    """Those of the two that can be read, whoever signed them."""
    found = []
    for at in (0, SLOT):
        # One that was cut short by a power failure, or not written yet, is none.
        with suppress(ValueError):
            found += read_checkpoints([data[at : at + SLOT].decode()])
    return found


def newest_signed(slots: Iterable[Checkpoint], public_key: str) -> Checkpoint | None:
    """The newest that the key signed: a slot half written over may be readable, but not that."""
    whole = (one for one in slots if is_signed_by(one, public_key))
    return max(whole, key=lambda one: one.size, default=None)


@dataclass(frozen=True)
class Anchors:
    """Files with the last checkpoint, beside the signing key and elsewhere."""

    places: Sequence[Path]
    public_key: str
    _failed: set[Path] = field(default_factory=set)

    def read(self) -> list[tuple[Path, Checkpoint]]:
        """The checkpoint of each place that has one; another key's where none is this key's."""
        found = []
        for place in self.places:
            with suppress(OSError, sqlite3.Error):
                slots = read_slots(_read_place(place))
                if newest := newest_signed(slots, self.public_key) or next(iter(slots), None):
                    found.append((place, newest))
        return found

    def keep(self, signed: Checkpoint) -> None:
        """Writes it to each place; where that fails, the log says so once and the others serve."""
        for place in self.places:
            try:
                _write_place(place, signed)
                self._failed.discard(place)
            except (OSError, sqlite3.Error) as error:
                if place not in self._failed:
                    said = "no anchor of the audit log in %s (%s): set audit.anchor"
                    _LOG.warning(said, place, getattr(error, "strerror", None) or error)
                self._failed.add(place)

    def drop(self) -> None:
        for place in self.places:
            with suppress(OSError, sqlite3.Error):
                if place.name != LEDGER:
                    place.unlink()
                elif place.exists():
                    with _open_rows(place) as db:
                        db.execute("DELETE FROM anchor")


def _read_place(place: Path) -> bytes:
    if place.name != LEDGER:
        return place.read_bytes()
    place.stat()  # connecting would make it
    with _open_rows(place) as db:
        return b"".join(row.encode() for (row,) in db.execute("SELECT signed FROM anchor"))


def _write_place(place: Path, signed: Checkpoint) -> None:
    """Not flushed: what a power cut takes leaves an older one, and none is waited for."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if place.name == LEDGER:
        with _open_rows(place) as db:
            db.execute("INSERT OR REPLACE INTO anchor VALUES (1, ?)", (signed.to_json(),))
        return
    handle = os.open(place, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        write_slot(handle, signed)
    finally:
        os.close(handle)


@contextmanager
def _open_rows(place: Path) -> Iterator[sqlite3.Connection]:
    # Through SQLite alone: to close any other handle would drop the locks of this process's ledger.
    with closing(sqlite3.connect(place, isolation_level=None, timeout=1)) as db:
        if place.stat().st_size == 0:
            place.chmod(0o600)
        db.execute("PRAGMA synchronous=NORMAL")  # a server's is in WAL: flushed at its checkpoints
        db.execute("CREATE TABLE IF NOT EXISTS anchor(one INTEGER PRIMARY KEY, signed TEXT)")
        yield db

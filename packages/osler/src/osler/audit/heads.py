"""The last checkpoint on disk, in two slots that are written in turn: a power cut spoils one of
them at most.

It lies beside the entries, as `head`, and in other places, its anchors: a log that holds less than
an anchor says was cut, emptied or set back. An anchor is written behind the head, so that a crash
leaves it old, never ahead. One is a row of the server's ledger: who sets that file back, sets back
runs and keys with it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from osler.audit.checkpoints import Checkpoint, is_signed_by, read_checkpoints

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

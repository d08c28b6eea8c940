"""Append-only JSON Lines in a shared folder: one file a writer, read by everybody.

A line counts once its line break is there, so a process that is killed loses what it was at and
nothing else; half a line at the end is skipped, and cut off when its writer appends the next.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from osler.errors import BadRun, OslerError, describe_invalid, translate_os_errors
from osler.kb.store.durable import make_folders, sync_path

MEND = "remove that line, or the file: the other lines still count"


V = TypeVar("V")


@dataclass(frozen=True)
class LineFormat(Generic[V]):
    """Form of a journal whose lines are values of one type."""

    kind: type[V]
    fault: str
    """Error text for a line that cannot be read: "not a record"."""

    @cached_property
    def _adapter(self) -> TypeAdapter[V]:
        # Built at first use: it takes some 10 ms, which most commands need not spend.
        return TypeAdapter(self.kind)

    def encode_line(self, value: V) -> bytes:
        """Encodes a value as a line of JSON, with its line break."""
        return self._adapter.dump_json(value) + b"\n"

    def decode_line(self, line: bytes, place: str = "", *, fix: str = "") -> V:
        """Decodes the line that stands at `place`.

        Raises `BadRun` naming the place and the first field that is not as it should be.
        """
        try:
            return self._adapter.validate_json(line)
        except ValidationError as error:
            at = f"{place}: " if place else ""
            why = describe_invalid(error, "line")
            raise BadRun(f"{at}{self.fault}: {why}", fix=fix) from error


def writer_name() -> str:
    """A name of this process that no other has, on this host or another."""
    # The random part tells apart threads, and processes of containers with equal host and id.
    host = "".join(c if c.isalnum() else "-" for c in socket.gethostname())[:32]
    return f"{host}-{os.getpid()}-{secrets.token_hex(3)}"


def make_folder(folder: Path) -> None:
    """Raises `BadRun`."""
    with translate_os_errors(f"{folder} cannot be made", BadRun):
        make_folders(folder)


def append_line(path: Path, line: bytes) -> None:
    """Appends `line`, which ends with its line break, and flushes it to disk. Raises `BadRun`."""
    with translate_os_errors(f"{path} cannot be written", BadRun, "make room"):
        is_new = not path.exists()
        # No other process appends to this file, so lines never interleave.
        with path.open("a+b") as file:
            _drop_half_line(file)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_path(path.parent)


def _drop_half_line(file: BinaryIO) -> None:
    """Cuts off what a full disk or a power cut left of the last line, before it spoils the next."""
    if not (end := file.seek(0, os.SEEK_END)):
        return
    file.seek(end - 1)
    if file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def read_lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yields whole lines from byte `start` on, each with the byte where it begins."""
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            if line.endswith(b"\n"):
                yield start, line
            start += len(line)


@dataclass
class NewLines:
    """Lines that any writer added to the files of a pattern since the last look."""

    folder: Path
    pattern: str
    _read: dict[str, int] = field(default_factory=dict)

    def read_new(self) -> Iterator[tuple[Path, int, bytes]]:
        """Yields each new line with its file and the byte where it begins.

        A line counts as read once the caller asks for the next: one that the caller rejects is
        given again.
        """
        for path in sorted(self.folder.glob(self.pattern)):
            start = self._read.get(path.name, 0)
            # The size is asked first: opening every file of a folder on NFS costs far more.
            if path.stat().st_size > start:
                for at, line in read_lines(path, start):
                    yield path, at, line
                    self._read[path.name] = at + len(line)


def failure_reason(failure: Exception) -> str:
    """Returns kind and message; for a bug also the file and line where it was raised."""
    reason = f"{type(failure).__name__}: {failure}"
    if isinstance(failure, OslerError):
        return reason
    last = traceback.extract_tb(failure.__traceback__)[-1]
    return f"{reason} ({Path(last.filename).name}:{last.lineno})"


def facts_of(folder: Path, name: str) -> dict[str, Any]:
    """The facts that `require_agreement` wrote. Raises `BadRun` if absent."""
    path = folder / f"{name}.json"
    try:
        facts: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadRun(f"{path} cannot be read: {error}") from error
    return facts


def require_agreement(folder: Path, name: str, facts: dict[str, Any]) -> None:
    """Holds all who work in a folder to the facts that the first of them wrote.

    Raises `BadRun` naming what differs.
    """
    make_folder(folder)
    path = folder / f"{name}.json"
    text = json.dumps(facts, ensure_ascii=False, sort_keys=True, indent=1)
    draft = folder / f".{name}.{writer_name()}"
    try:
        draft.write_text(text, encoding="utf-8")
        sync_path(draft)
        with contextlib.suppress(FileExistsError):
            # A link fails where the name exists, so exactly one of several processes that begin
            # together writes the facts; the others read them below.
            os.link(draft, path)  # whole or not at all, also for who reads it meanwhile
            sync_path(folder)
        draft.unlink()
    except OSError as error:
        with contextlib.suppress(OSError):  # a draft is in nobody's way
            draft.unlink()
        raise BadRun(f"{path} cannot be written: {error.strerror}") from error
    known, now = facts_of(folder, name), json.loads(text)
    differs = [key for key in sorted(known.keys() | now.keys()) if known.get(key) != now.get(key)]
    if differs:
        changes = "; ".join(f"{key} {known.get(key)!r}, now {now.get(key)!r}" for key in differs)
        raise BadRun(
            f"{path} was made with other settings: {changes}",
            fix="use the same settings, or another --log-dir",
        )

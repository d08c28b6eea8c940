"""XML without the elements that nobody reads, cut out before it is parsed."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import BinaryIO

_BLOCK = 1 << 18
# An element of more bytes is left in, so that a hostile file cannot fill the memory.
_LONGEST = 1 << 24

_LONGEST_MARK = 32
# What may follow a name: otherwise "<Author" would be found in "<AuthorList".
_AFTER_A_NAME = (b">", b" ", b"/", b"\n", b"\r", b"\t", b"")


class TrimmedStream(io.BufferedIOBase):
    """The content of `stream` without the elements of these names.

    A name in a comment or a CDATA section is not an element: from the first of these on, the
    content is passed through unchanged, as is all that is not encoded like ASCII.
    """

    def __init__(self, stream: BinaryIO, names: Iterable[str], *, block: int = _BLOCK) -> None:
        """`block` bytes are read and cut at a time."""
        self._stream = stream
        self._block = block
        self._marks = [(f"<{name}".encode(), f"</{name}>".encode()) for name in names]
        self._held = b""
        self._ready = b""
        self._place = 0
        self._plain = False

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        while self._place == len(self._ready):
            block = self._stream.read(self._block)
            self._ready, self._held = self._cut_block(self._held + block, last=not block)
            self._place = 0
            if not block:
                break
        end = len(self._ready) if size is None or size < 0 else self._place + size
        piece = self._ready[self._place : end]
        self._place += len(piece)
        return piece

    def _cut_block(self, data: bytes, *, last: bool) -> tuple[bytes, bytes]:
        """The bytes that may be read, and those that must wait for the next block."""
        self._plain = self._plain or _has_hidden(data)
        if self._plain or last:
            return data, b""
        ready, waiting = data, b""
        for mark in self._marks:
            ready, rest = _cut_elements(ready, *mark)
            waiting = rest + waiting
        if len(waiting) > _LONGEST:
            return ready + waiting, b""
        # The last characters may be the first ones of a mark.
        open_tag = ready.rfind(b"<", max(0, len(ready) - _LONGEST_MARK))
        if not waiting and open_tag >= 0 and b">" not in ready[open_tag:]:
            return ready[:open_tag], ready[open_tag:]
        return ready, waiting


def _has_hidden(data: bytes) -> bool:
    """Whether a comment or a CDATA section begins here. "!" is rare, so it is looked for first."""
    place = data.find(b"!")
    while place >= 0:
        if data[place - 1 : place] == b"<" and data[place + 1 : place + 2] in (b"-", b"[", b""):
            return True
        place = data.find(b"!", place + 1)
    return False


def _cut_elements(data: bytes, opener: bytes, closer: bytes) -> tuple[bytes, bytes]:
    """The data without closed elements, up to the first that is still open, and the rest."""
    kept: list[bytes] = []
    place = 0
    while (start := _find_opening(data, opener, place, len(data))) >= 0:
        end = _find_end(data, start, opener, closer)
        if end < 0:
            return b"".join((*kept, data[place:start])), data[start:]
        kept.append(data[place:start])
        place = end
    return b"".join((*kept, data[place:])), b""


def _find_opening(data: bytes, opener: bytes, place: int, limit: int) -> int:
    """The start of the next element of exactly this name; -1 for none before `limit`."""
    while (start := data.find(opener, place, limit)) >= 0:
        after = start + len(opener)
        if data[after : after + 1] in _AFTER_A_NAME:
            break
        place = after
    return start


def _find_end(data: bytes, start: int, opener: bytes, closer: bytes) -> int:
    """The end of the element at `start`, which may hold others of its name; -1: not in `data`."""
    depth, place = 0, start
    while True:
        head = data.find(b">", place)
        if head < 0:
            return -1
        # "<a/>" is whole in itself.
        if data[head - 1 : head] != b"/":
            depth += 1
        place = head + 1
        while depth:
            close = data.find(closer, place)
            if close < 0:
                return -1
            inner = _find_opening(data, opener, place, close)
            if inner >= 0:
                place = inner
                break
            depth, place = depth - 1, close + len(closer)
        else:
            return place

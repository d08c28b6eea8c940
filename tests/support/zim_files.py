"""Writes small ZIM archives to the openZIM specification, in either layout and any packing."""

from __future__ import annotations

import hashlib
import lzma
import struct
from collections.abc import Mapping
from importlib import import_module
from typing import Literal, NamedTuple

Packing = Literal["none", "xz", "zstd"]
_NUMBERS = {"none": 1, "xz": 4, "zstd": 5}


class Entry(NamedTuple):
    """An entry of the directory; one with `to` redirects to the entry of that path."""

    path: str
    content: bytes = b""
    title: str = ""
    kind: str = "text/html"
    to: str = ""
    space: str = ""


def zim_bytes(
    *entries: Entry,
    packing: Packing = "xz",
    spaced: bool = False,
    wide: bool = False,
    about: Mapping[str, str] | None = None,
    together: int = 20,
) -> bytes:
    """An archive of these entries, `together` of them in a cluster. `spaced`: the older layout with
    pages in "A"; `wide`: offsets of eight bytes."""
    pages = "A" if spaced else "C"
    told = [
        Entry(name, text.encode(), kind="text/plain", space="M")
        for name, text in (about or {}).items()
    ]
    listed = sorted(
        (one._replace(space=one.space or pages) for one in (*entries, *told)),
        key=lambda one: (one.space, one.path),
    )
    kinds = sorted({one.kind for one in listed})
    held = [one for one in listed if not one.to]
    places = {(one.space, one.path): divmod(n, together) for n, one in enumerate(held)}
    clusters = [
        _pack([one.content for one in held[n : n + together]], packing, wide)
        for n in range(0, len(held), together)
    ]
    numbers = {(one.space, one.path): n for n, one in enumerate(listed)}
    directory = [_entry(one, kinds, places, numbers) for one in listed]
    types = b"".join(kind.encode() + b"\0" for kind in kinds) + b"\0"
    paths = 80 + len(types)
    titles = paths + 8 * len(listed)
    starts = titles + 4 * len(listed)
    begin = starts + 8 * len(clusters)
    end = begin + sum(map(len, directory)) + sum(map(len, clusters))
    head = struct.pack(
        *("<4s2H16s2I4Q2IQ", b"ZIM\x04", 5 if spaced else 6, 0 if spaced else 1, bytes(16)),
        *(len(listed), len(clusters), paths, titles, starts, 80, 0, 0xFFFFFFFF, end),
    )
    body = b"".join(
        [
            *(head, types, _positions(begin, directory)),
            struct.pack(f"<{len(listed)}I", *range(len(listed))),
            *(_positions(begin + sum(map(len, directory)), clusters), *directory, *clusters),
        ]
    )
    return body + hashlib.md5(body, usedforsecurity=False).digest()


def _entry(
    one: Entry,
    kinds: list[str],
    places: Mapping[tuple[str, str], tuple[int, int]],
    numbers: Mapping[tuple[str, str], int],
) -> bytes:
    names = f"{one.path}\0{one.title}\0".encode()
    if one.to:
        return (
            struct.pack("<HBcII", 0xFFFF, 0, one.space.encode(), 0, numbers[one.space, one.to])
            + names
        )
    place = places[one.space, one.path]
    return struct.pack("<HBc3I", kinds.index(one.kind), 0, one.space.encode(), 0, *place) + names


def _pack(contents: list[bytes], packing: Packing, wide: bool) -> bytes:
    width, letter = (8, "Q") if wide else (4, "I")
    place = width * (len(contents) + 1)
    bounds = [place]
    for content in contents:
        bounds.append(bounds[-1] + len(content))
    data = struct.pack(f"<{len(bounds)}{letter}", *bounds) + b"".join(contents)
    if packing == "xz":
        data = lzma.compress(data)
    elif packing == "zstd":
        data = import_module("backports.zstd").compress(data)
    return bytes([_NUMBERS[packing] | (16 if wide else 0)]) + data


def _positions(begin: int, pieces: list[bytes]) -> bytes:
    places = [begin]
    for piece in pieces:
        places.append(places[-1] + len(piece))
    return struct.pack(f"<{len(pieces)}Q", *places[:-1])

"""ZIM archives (openZIM, as of Kiwix): the pages of a whole web site in one file.

Read by the public specification, in both layouts of name spaces: pages stand in "A", or since
version 6.1 in "C". Pages are HTML; clusters of them are packed by XZ, by Zstandard (the extra `zim`
before Python 3.14), or not at all. Redirects, pictures and indexes are passed over and counted.

The file is not trusted: each place in it is checked where it is followed, a cluster is unpacked to
64 MiB at most, and all of them together as far as an archive may swell.
"""

from __future__ import annotations

import lzma
import re
import struct
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from importlib import import_module
from io import BytesIO
from itertools import groupby
from operator import itemgetter
from typing import Any, BinaryIO

from osler.errors import MalformedSource
from osler.sources.formats.containers import Unreadable, largest_unpacked, require_package
from osler.sources.formats.html import read_page
from osler.sources.formats.reading import date_in, id_of, on_disk, year_in
from osler.sources.formats.sections import finish_document, without_noise
from osler.sources.records import Drop, Record
from osler.text import make_slug, one_line

_HEADER = struct.Struct("<4s2H16s2I4Q2IQ")
_ENTRY = struct.Struct("<HBc3I")
_MAGIC = b"ZIM\x04"
_NO_CONTENT = 0xFFFD  # from here on: deleted, link target, redirect
_REDIRECT = 0xFFFF
_PAGES = b"AC"
_ABOUT = b"M"
_TOLD = frozenset({"Name", "Date", "License"})
# Entries that tell about the archive; published ones have about fifteen.
_MOST_ABOUT = 100
_LONGEST_TYPES = 2**16
_LONGEST_NAMES = 2**13
_LARGEST_CLUSTER = 64 * 2**20
_LARGEST_WINDOW = 128 * 2**20
_STEP = 2**16
_POINTERS = 2**13
_PLAIN, _XZ, _ZSTD = frozenset({0, 1}), 4, 5
_WIDE = 16  # flag of a cluster whose offsets have eight bytes


class Zim:
    name = "zim"
    seeks = True
    """A second process (`osler.kb.ingest.reader_process`) must not hand it the file in order."""

    def matches(self, name: str, head: bytes) -> bool:
        # By its name too: what is called an archive and is none is told to be broken.
        return head.startswith(_MAGIC) or name.lower().endswith(".zim")

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """A document or drop for each page, cluster by cluster; memory holds one cluster, and 16
        bytes for each page."""
        # A member or a compressed file would be unpacked anew at each step back.
        if stream.seekable() and "!" not in name and not name.lower().endswith((".gz", ".bz2")):
            yield from _read_archive(_Archive(stream, name))
            return
        with on_disk(stream, ".zim") as path, path.open("rb") as file:
            yield from _read_archive(_Archive(file, name))


class _Damaged(Exception):
    """A cluster or an entry that cannot be read; the others may be."""


class _Archive:
    """Random access to an archive. Raises `Unreadable` where its header leads out of the file."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self._file = file
        header = self._read_at(0, _HEADER.size)
        told = _HEADER.unpack(header)
        magic, types, end = told[0], told[9], told[-1]
        self.entries, self._clusters, self._paths = told[4:7]
        self._starts = told[8]
        if magic != _MAGIC:
            raise self.damage()
        self._read_at(end, 16)  # the checksum, which ends the file
        self._left = largest_unpacked(end + 16)
        listed = self._read_at(types, _LONGEST_TYPES, whole=False).partition(b"\0\0")
        if not listed[1] or b"/" not in listed[0]:
            raise self.damage()
        self.types = [kind.startswith(b"text/html") for kind in listed[0].split(b"\0")]

    def damage(self) -> Unreadable:
        return Unreadable(
            self.name, "truncated or damaged", fix="fetch it again; join the parts of a split one"
        )

    def places(self) -> Iterator[int]:
        """Where each entry of the directory stands."""
        for first in range(0, self.entries, _POINTERS):
            count = min(_POINTERS, self.entries - first)
            yield from struct.unpack(
                f"<{count}Q", self._read_at(self._paths + 8 * first, 8 * count)
            )

    def read_fields(self, place: int) -> tuple[int, bytes, int, int]:
        """Type, name space, cluster and place in it of the entry at `place`."""
        kind, _, space, _, cluster, blob = _ENTRY.unpack(self._read_at(place, _ENTRY.size))
        return kind, space, cluster, blob

    def read_entry(self, place: int) -> tuple[str, str]:
        """Path with its name space, "C/Aspirin", and title of the entry at `place`."""
        data = self._read_at(place, _LONGEST_NAMES, whole=False)
        names = data[_ENTRY.size :].split(b"\0", 2)
        if len(names) < 3:
            raise _Damaged
        path, title = (name.decode("utf-8", "replace") for name in names[:2])
        return f"{chr(data[3])}/{path}", one_line(title)

    def open_cluster(self, number: int) -> _Cluster:
        if number >= self._clusters:
            raise _Damaged
        try:
            (start,) = struct.unpack("<Q", self._read_at(self._starts + 8 * number, 8))
            kind = self._read_at(start, 1)[0]
        except Unreadable as error:
            raise _Damaged from error
        if kind & 15 in _PLAIN:
            return _Cluster(kind, self._file, start + 1)
        content = self._unpack(kind & 15)
        self._left -= content.tell()
        if self._left < 0:
            fix = "unpack it yourself if you trust it, and add the files"
            raise Unreadable(self.name, "decompression bomb", fix=fix)
        return _Cluster(kind, content, 0)

    def _unpack(self, kind: int) -> BytesIO:
        """The cluster from the present place on, as far as one may reach."""
        unpacker = self._make_unpacker(kind)
        content = BytesIO()
        try:
            while not unpacker.eof and content.tell() < _LARGEST_CLUSTER:
                step = self._file.read(_STEP) if unpacker.needs_input else b""
                if not step and unpacker.needs_input:
                    break
                content.write(unpacker.decompress(step, _LARGEST_CLUSTER - content.tell()))
        except Unreadable:
            raise
        except Exception as error:  # the error of Zstandard is known where it is installed
            raise _Damaged from error
        return content

    def _make_unpacker(self, kind: int) -> Any:
        if kind == _XZ:
            return lzma.LZMADecompressor(memlimit=_LARGEST_WINDOW)
        if kind != _ZSTD:
            raise _Damaged
        try:
            zstd = import_module("compression.zstd")  # from Python 3.14 on
        except ImportError:
            require_package("backports.zstd", "zim", self.name)
            zstd = import_module("backports.zstd")
        most = {zstd.DecompressionParameter.window_log_max: _LARGEST_WINDOW.bit_length() - 1}
        return zstd.ZstdDecompressor(options=most)

    def _read_at(self, place: int, size: int, *, whole: bool = True) -> bytes:
        try:
            self._file.seek(place)
            data = self._file.read(size)
        except (OSError, OverflowError, ValueError) as error:
            raise self.damage() from error
        if whole and len(data) < size:
            raise self.damage()
        return data


class _Cluster:
    """The contents that stand together: unpacked, or where they are in the file."""

    def __init__(self, kind: int, file: BinaryIO, start: int) -> None:
        self._width = 8 if kind & _WIDE else 4
        self._file, self._start = file, start

    def content(self, number: int) -> bytes:
        """Raises `_Damaged` where its bounds are none, or lie outside."""
        first = self._bound(0)
        begin, end = self._bound(number), self._bound(number + 1)
        is_inside = (number + 2) * self._width <= first <= begin <= end
        if not is_inside or end - begin > _LARGEST_CLUSTER:
            raise _Damaged
        return self._slice(begin, end)

    def _bound(self, number: int) -> int:
        place = number * self._width
        return int.from_bytes(self._slice(place, place + self._width), "little")

    def _slice(self, begin: int, end: int) -> bytes:
        try:
            self._file.seek(self._start + begin)
            data = self._file.read(end - begin)
        except (OSError, OverflowError) as error:
            raise _Damaged from error
        if len(data) < end - begin:
            raise _Damaged
        return data


class _Directory:
    """The pages of the archive in the order of their clusters, and what the archive says of
    itself."""

    def __init__(self, archive: _Archive) -> None:
        self._archive = archive
        self.passed: Counter[str] = Counter()
        """Entries that are no pages, by reason."""
        self._order, self._places = array("Q"), array("Q")
        about: list[tuple[int, int, int]] = []
        for place in archive.places():
            try:
                kind, space, cluster, blob = archive.read_fields(place)
            except Unreadable:
                self.passed["unreadable page"] += 1
                continue
            if space == _ABOUT and kind < _NO_CONTENT and len(about) < _MOST_ABOUT:
                about.append((cluster, blob, place))
            if reason := self._passed_over(kind, space):
                self.passed[reason] += 1
            else:
                self._order.append(cluster << 32 | blob)
                self._places.append(place)
        self.about = dict(self._read_about(sorted(about)))

    def _passed_over(self, kind: int, space: bytes) -> str:
        if kind == _REDIRECT:
            return "redirect"
        if kind < _NO_CONTENT and kind >= len(self._archive.types):
            return "unreadable page"
        is_page = kind < _NO_CONTENT and space in _PAGES and self._archive.types[kind]
        return "" if is_page else "not an article"

    def pages(self) -> Iterator[tuple[int, int, int]]:
        """Cluster, place in it, and place of the entry: one for each content."""
        last = -1
        for at in sorted(range(len(self._order)), key=self._order.__getitem__):
            key = self._order[at]
            if key == last:
                self.passed["redirect"] += 1
            else:
                yield key >> 32, key & 0xFFFFFFFF, self._places[at]
            last = key

    def _read_about(self, entries: list[tuple[int, int, int]]) -> Iterator[tuple[str, str]]:
        for place, content in _read_contents(self._archive, entries):
            try:
                told = self._archive.read_entry(place)[0][2:]
            except (_Damaged, Unreadable):
                continue
            if told in _TOLD and content is not None:
                yield told, one_line(content[:_LONGEST_NAMES].decode("utf-8", "replace"))


def _read_contents(
    archive: _Archive, entries: Iterable[tuple[int, int, int]]
) -> Iterator[tuple[int, bytes | None]]:
    """The place of each entry with its content, `None` for one that cannot be read."""
    for number, together in groupby(entries, key=itemgetter(0)):
        try:
            cluster = archive.open_cluster(number)
        except _Damaged:
            yield from ((place, None) for _, _, place in together)
            continue
        for _, blob, place in together:
            try:
                yield place, cluster.content(blob)
            except _Damaged:
                yield place, None


def _read_archive(archive: _Archive) -> Iterator[Record]:
    directory = _Directory(archive)
    about = directory.about
    base = about.get("Name") or id_of(archive.name)
    day = re.sub(r"\D", "", about.get("Date", ""))
    version, licence = int(day) if len(day) == 8 else 0, about.get("License", "")
    for place, content in _read_contents(archive, directory.pages()):
        try:
            path, title = archive.read_entry(place)
            where = f"{archive.name}!{one_line(path)}"
            page = read_page(content or b"", where, _identify(base, path[2:]))
        except (_Damaged, MalformedSource):
            directory.passed["unreadable page"] += 1
            continue
        if content is None:
            yield Drop(where, "unreadable page")
            continue
        sections, _ = without_noise(page.sections)
        page = replace(
            page,
            title=title or page.title,
            sections=sections,
            year=page.year or year_in(day[:4]),
            date=page.date if page.year else date_in(day),
            version=version,
            licence=licence,
        )
        yield finish_document(page, where)
    for reason, count in directory.passed.items():
        yield Drop(f"{archive.name}: {count:,} entries", reason)


def _identify(base: str, path: str) -> str:
    """The name of a page by its path. Paths that differ in a mark alone stay apart."""
    name = make_slug(f"{base}-{path}")
    if name.endswith(path):
        return name
    return make_slug(f"{name}-{blake2b(path.encode(), digest_size=3).hexdigest()}")

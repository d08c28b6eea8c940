"""Compressed files and archives, read as streams; nothing is ever unpacked to disk.

Not trusted: a name that leads out of the archive, a link, a device, an archive
inside an archive, and content that is more than 200 times its compressed size and
more than 2 GiB are refused, each by a name that can be counted. The same bounds hold for
all members of an archive together. One kind of archive inside another is read: a zip of at most
64 MiB in a zip, as DailyMed packs its labels; the bounds of the outer one hold for all of it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import stat
import sys
import tarfile
import zipfile
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from osler.errors import MalformedSource
from osler.sources.formats.reading import decode_text
from osler.sources.records import Drop
from osler.text import one_line

# Text compresses about 5 times and XML 20; deflate cannot exceed 1,032.
_HIGHEST_RATIO = 200
_ALWAYS_ALLOWED = 2 * 2**30
_LARGEST_INNER = 64 * 2**20
_TAR = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tbz")
_GZIP = (".gz", ".tgz")
_BZIP2 = (".bz2", ".tbz2", ".tbz")
_BUFFER = 2**16
_DAMAGE = (EOFError, OSError, zlib.error, tarfile.TarError, zipfile.BadZipFile)


class Unreadable(MalformedSource):
    """A container that cannot be read to its end; `reason` is that of a drop."""

    def __init__(self, name: str, reason: str, *, fix: str) -> None:
        super().__init__(f"{name}: {reason}", fix=fix)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive. Its stream is open until the next member is asked for."""

    name: str
    stream: io.BufferedReader


def is_archive(name: str) -> bool:
    return name.lower().endswith((*_TAR, ".zip"))


def largest_unpacked(compressed: int) -> int:
    """Bytes that so many compressed ones may become."""
    return max(_ALWAYS_ALLOWED, _HIGHEST_RATIO * compressed)


def require_package(module: str, extra: str, name: str) -> None:
    """Raises `Unreadable`, with the command that installs it, where a package is absent."""
    try:
        is_there = find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it
        is_there = False
    if not is_there:
        raise Unreadable(name, f"needs osler[{extra}]", fix=f'pip install "osler[{extra}]"')


def open_file(path: Path) -> io.BufferedReader:
    """The file's content, decompressed by its name's ending (.gz, .bz2).

    Reading raises `Unreadable` where the content breaks off or swells.
    """
    file = path.open("rb")
    return _decompress_stream(file, path.name, path.stat().st_size)


def open_members(path: Path, label: str) -> Iterator[Member | Drop]:
    """The archive's files in its order, and a drop for each member that is refused.

    Raises `Unreadable` where the archive itself is truncated or damaged.
    """
    try:
        if path.name.lower().endswith(".zip"):
            room = _Room(largest_unpacked(path.stat().st_size))
            with zipfile.ZipFile(path) as archive:
                yield from _read_zip(archive, "", label, room)
        else:
            yield from _tar_members(path, label)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise _damage_error(label) from error


def _tar_members(path: Path, label: str) -> Iterator[Member | Drop]:
    with open_file(path) as file, tarfile.open(fileobj=file, mode="r:") as archive:
        while (info := archive.next()) is not None:
            # Otherwise memory grows with the number of members. The stubs hide the list.
            archive.members.clear()  # type: ignore[attr-defined]
            where = f"{label}!{one_line(info.name)}"
            if info.isdir():
                continue
            content = archive.extractfile(info) if info.isreg() else None
            if content is None:
                yield Drop(where, "link or device in an archive")
            else:
                yield from _open_member(info.name, where, cast("BinaryIO", content), info.size)


@dataclass
class _Room:
    """The bytes that may still come out of an archive."""

    left: int

    def takes(self, size: int) -> bool:
        """Whether so many more bytes fit; from the first that do not, nothing does."""
        self.left -= size
        return self.left >= 0


def _read_zip(
    archive: zipfile.ZipFile, above: str, label: str, room: _Room
) -> Iterator[Member | Drop]:
    """The files of a zip, which is the member `above` of another unless that is empty."""
    for info in archive.infolist():
        name = _name_of(info)
        where = f"{label}!{one_line(name)}"
        if name.endswith("/"):
            continue
        if stat.S_ISLNK(info.external_attr >> 16):
            yield Drop(where, "link or device in an archive")
        elif info.flag_bits & 1:
            yield Drop(where, "encrypted")
        elif not room.takes(info.file_size):
            yield Drop(where, "decompression bomb")
        elif info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            yield Drop(where, "unknown compression")
        else:
            content = cast("BinaryIO", archive.open(info))
            # It is read no further than its entry claims: zipfile sees to that.
            bounded = _bound_stream(content, where, info.compress_size)
            if above or not _is_inner(info) or _leads_out(name):
                yield from _open_member(name, where, bounded, info.file_size, above)
            else:
                yield from _open_inner(bounded, name, where, room)


def _name_of(info: zipfile.ZipInfo) -> str:
    """The member's name; without UTF-8's mark it may be in UTF-8 or, as Chinese Windows writes
    it, in GB18030, and zipfile has read it as code page 437."""
    if not info.flag_bits & 0x800:
        with suppress(MalformedSource, UnicodeEncodeError):
            return decode_text(info.filename.encode("cp437"), info.filename)
    return info.filename


def _is_inner(info: zipfile.ZipInfo) -> bool:
    return info.filename.lower().endswith(".zip") and info.file_size <= _LARGEST_INNER


def _open_inner(content: BinaryIO, name: str, where: str, room: _Room) -> Iterator[Member | Drop]:
    try:
        with content, zipfile.ZipFile(io.BytesIO(content.read())) as archive:
            yield from _read_zip(archive, name, where, room)
    except (zipfile.BadZipFile, EOFError, Unreadable):
        yield Drop(where, "truncated or damaged")


def _leads_out(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or not path.parts or ".." in path.parts or ":" in path.parts[0]


def _open_member(
    name: str, where: str, content: BinaryIO, size: int, above: str = ""
) -> Iterator[Member | Drop]:
    if _leads_out(name):
        yield Drop(where, "unsafe path in an archive")
    elif is_archive(name):
        yield Drop(where, "archive in an archive")
    else:
        with _decompress_stream(content, name, size) as stream:
            yield Member(f"{above}!{name}" if above else name, stream)


def _decompress_stream(file: BinaryIO, name: str, size: int) -> io.BufferedReader:
    if name.lower().endswith(_GZIP):
        file = cast("BinaryIO", _open_gzip(file))
    elif name.lower().endswith(_BZIP2):
        file = cast("BinaryIO", _Bzip2(file))
    return _bound_stream(file, name, size)


def _bound_stream(file: BinaryIO, name: str, compressed: int) -> io.BufferedReader:
    return io.BufferedReader(_BoundedStream(file, name, largest_unpacked(compressed)), _BUFFER)


def _damage_error(name: str) -> Unreadable:
    return Unreadable(name, "truncated or damaged", fix="fetch it again")


def _damage_errors() -> tuple[type[Exception], ...]:
    """The exceptions of damaged content; the fast decoder has one of its own."""
    fast = sys.modules.get("isal.isal_zlib")
    return _DAMAGE if fast is None else (*_DAMAGE, fast.error)


def _open_gzip(file: BinaryIO) -> gzip.GzipFile:
    """By Intel's decoder where the extra `fast` is installed, in a third of the time."""
    try:
        from isal import igzip
    except ImportError:
        kind: Any = gzip.GzipFile
    else:
        kind = igzip.IGzipFile
    reader = kind(fileobj=file, mode="rb")
    # Closed with it, as is the file of a reader that was opened by its name.
    reader.myfileobj = file
    return cast("gzip.GzipFile", reader)


def as_utf8(stream: io.BufferedReader) -> io.BufferedReader:
    """Text in UTF-16 with its mark as UTF-8; as it is anything else, and XML, which names its
    encoding itself."""
    head = stream.peek(_BUFFER)[:64]
    is_wide = head.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    if not is_wide or head.decode("utf-16", "ignore").lstrip().startswith("<?xml"):
        return stream
    return io.BufferedReader(_Utf8Stream(stream), _BUFFER)


class _Utf8Stream(io.RawIOBase):
    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file, self._rest = file, b""
        self._decoder = getincrementaldecoder("utf-16")("replace")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = b" "
        while data and not self._rest:
            data = self._file.read(_BUFFER)
            self._rest = self._decoder.decode(data, final=not data).encode()
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class _Bzip2(bz2.BZ2File):
    """Closes the file below it as well."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, "rb")
        self._below = file

    def close(self) -> None:
        super().close()
        self._below.close()


class _BoundedStream(io.RawIOBase):
    """At most `limit` bytes of a stream; damaged or longer content raises `Unreadable`."""

    def __init__(self, file: BinaryIO, name: str, limit: int) -> None:
        super().__init__()
        self._file, self._name, self._limit = file, name, limit
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._file.read(len(buffer))
        except _damage_errors() as error:
            raise _damage_error(self._name) from error
        self._move_to(self._place + len(data))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            raise io.UnsupportedOperation("the end of a compressed stream is not known")
        place = offset + (self._place if whence == io.SEEK_CUR else 0)
        self._move_to(place)  # before the bytes up to there are decompressed
        try:
            return self._file.seek(place)
        except _damage_errors() as error:
            raise _damage_error(self._name) from error

    def tell(self) -> int:
        return self._place

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()

    def _move_to(self, place: int) -> None:
        if place > self._limit:
            raise Unreadable(
                self._name,
                "decompression bomb",
                fix="unpack it yourself if you trust it, and add the files",
            )
        self._place = place

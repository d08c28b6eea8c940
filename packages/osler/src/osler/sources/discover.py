"""The files at a path, each with its parser: files, folders, archives and their members.

Every file is accounted for: it is a `Found`, or a `Drop` that says why it is not.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from osler.errors import MalformedSource, MissingPath
from osler.llm.core.cache import hash_file
from osler.sources.catalogue import is_patients
from osler.sources.formats.containers import (
    Member,
    Unreadable,
    as_utf8,
    is_archive,
    open_file,
    open_members,
)
from osler.sources.formats.reading import utf8_head
from osler.sources.formats.registry import (
    PARSERS,
    CompanionParser,
    FolderParser,
    by_name,
    sniff_file,
    sniff_folder,
)
from osler.sources.records import Document, Drop, Parser, Record, SourceFile
from osler.text import one_line


@dataclass(frozen=True, slots=True)
class Companions:
    """The companion files below one root, and how its other files are read with them."""

    fmt: Parser | None = None
    """The parser that was asked for; `None`: each file is sniffed."""
    knowing: Mapping[str, Parser] = field(default_factory=dict)
    """By format, the parser that knows the companions of its files, and …"""
    beside: Mapping[str, str] = field(default_factory=dict)
    """… the SHA-256 of each of these, one a line."""
    broken: tuple[tuple[Path, str], ...] = ()
    """Companions that could not be read, each with why."""

    def parser_of(self, name: str, head: bytes) -> Parser | None:
        """The parser of a file called `name` that begins with `head`, if there is one."""
        parser = self.fmt or sniff_file(name, head)
        return self.knowing.get(parser.name, parser) if parser else None


def is_companion(path: Path) -> bool:
    """Whether it is a regular file that names and orders others and holds no text itself."""
    has_name = any(parser.is_companion(path.name) for parser in _companion_parsers())
    return has_name and path.is_file() and not path.is_symlink()


def load_companions(paths: Iterable[Path], fmt: Parser | None) -> Companions:
    """The parsers that know the companions among the paths; one that cannot be read is left out."""
    ordered = sorted(filter(is_companion, paths))
    knowing: dict[str, Parser] = {}
    beside: dict[str, str] = {}
    broken: list[tuple[Path, str]] = []
    for parser in _companion_parsers():
        good: list[Path] = []
        for path in (path for path in ordered if parser.is_companion(path.name)):
            # One by one first: a broken table of contents must not take the others with it.
            try:
                parser.with_companions([path])
            except (MalformedSource, PermissionError) as error:
                broken.append((path, str(error)))
            else:
                good.append(path)
        if good:
            knowing[parser.name] = parser.with_companions(good)
            hashes = (hashlib.sha256(path.read_bytes()).hexdigest() for path in good)
            beside[parser.name] = "\n".join(hashes)
    return Companions(fmt, knowing, beside, tuple(broken))


def _companion_parsers() -> list[CompanionParser]:
    return [parser for parser in PARSERS if isinstance(parser, CompanionParser)]


_HEAD = 4096
# Folders inside each other; deeper ones are no library but a loop or an attack.
_DEEPEST = 200
_CONCEPTS = re.compile(r"MRCONSO\.RRF(?:\.gz)?", re.IGNORECASE)
_NOT_TEXT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_PAPERS = "licence or readme"
_ABOUT = re.compile(r"(?:licen[cs]e|copying|readme|notice)(?:[.-].*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, or a member of an archive, and the parser that will read it."""

    file: SourceFile
    name: str
    """Place from the added folder on: "books/heart/af.md", "books.tar.gz!af.md"."""
    parser: Parser
    open: Callable[[], BinaryIO]
    """The content, decompressed. A member's can be opened once, before the next is found."""
    beside: str = ""
    """Hash of the companion files that name and order its documents; "" for none."""


@dataclass(frozen=True, slots=True)
class FoundFolder:
    """A folder whose tables are one unit: a UMLS release, a MIMIC module."""

    file: SourceFile
    name: str
    parser: FolderParser
    beside: str = ""


Found = FoundFile | FoundFolder


@dataclass(frozen=True, slots=True)
class Listing:
    """The content of one path, listed once; see `list_path`."""

    above: Path
    """The folder from which names are shown."""
    entries: tuple[str | FoundFolder | Drop, ...]
    """In sorted order. Files are plain strings: a library may have millions."""
    companions: Companions

    @property
    def paths(self) -> Iterator[Path]:
        """Every regular file, and every folder that is one unit."""
        for entry in self.entries:
            if isinstance(entry, str):
                yield Path(entry)
            elif isinstance(entry, FoundFolder):
                yield entry.file.path


def discover(paths: Sequence[Path], *, fmt: str | None = None) -> Iterator[Found | Drop]:
    """Everything at the paths: files, folders (in sorted order, all levels) and archives.

    A folder with the tables of UMLS (MRCONSO.RRF) or MIMIC (patients, admissions,
    diagnoses_icd) is taken as one unit, and so is MRCONSO.RRF when it is named
    itself. `fmt` names the format of all files instead of letting each be sniffed.
    Links are not followed and hidden files are not read. Read each `Found` before the
    next is asked for: a member of an archive is open only until then.

    Raises `MalformedSource` for a path that does not exist and `BadConfig` for an
    unknown format, both at once and not when the iteration begins.
    """
    check_paths(paths, fmt=fmt)
    return (entry for path in paths for entry in open_listing(list_path(path, fmt=fmt)))


def check_paths(paths: Sequence[Path], *, fmt: str | None = None) -> None:
    """Raises as `discover` does, without reading anything."""
    parser = None if fmt is None else by_name(fmt)
    for path in paths:
        if isinstance(parser, FolderParser) and not _resolve_unit(path).is_dir():
            raise MalformedSource(
                f"{path} is not a folder",
                fix=f"{parser.name} is read from the folder of its tables",
            )
        _resolve_unit(path)


def list_path(path: Path, *, fmt: str | None = None) -> Listing:
    """Walks the path once. No file is opened but companions. Raises as `discover` does."""
    check_paths([path], fmt=fmt)
    parser, path = None if fmt is None else by_name(fmt), _resolve_unit(path)
    if isinstance(parser, FolderParser):
        unit = FoundFolder(SourceFile(path), _display_path(path, path.parent), parser)
        return Listing(path.parent, (unit,), Companions())
    if path.is_dir():
        unit_of = None if parser else sniff_folder
        entries = tuple(_walk_folder(path, path, unit_of))
        neighbours = (Path(entry) for entry in entries if isinstance(entry, str))
        return Listing(path.parent, entries, load_companions(neighbours, parser))
    above = path.parent.parent
    if not path.is_file():
        drop = Drop(_display_path(path, above), "not a regular file")
        return Listing(above, (drop,), Companions())
    return Listing(above, (os.fspath(path),), load_companions(path.parent.iterdir(), parser))


def open_listing(
    listing: Listing, *, settled: Callable[[Path], bool] | None = None
) -> Iterator[Found | Drop]:
    """The files and folders of the listing with their parsers, in order; archives are opened.

    A regular file for which `settled` is true is not opened and not yielded. A file that
    went since it was listed is a drop.
    """
    for broken, why in listing.companions.broken:
        yield Drop(f"{_display_path(broken, listing.above)}: {why}", "malformed file")
    for entry in listing.entries:
        if not isinstance(entry, str):
            yield entry
            continue
        path = Path(entry)
        name = _display_path(path, listing.above)
        try:
            if settled is None or not settled(path):
                yield from _open_path(path, name, listing.companions)
        except FileNotFoundError:
            yield Drop(name, "file is gone")


def hash_tree(path: Path) -> str:
    """SHA-256 of all bytes that `discover([path])` would look at, in hexadecimal.

    Of one file it is the file's own; of a folder, of the names and hashes inside.
    """
    path = _resolve_unit(path)
    if not path.is_dir():
        return hash_file(path)
    total = hashlib.sha256()
    for entry in _walk_folder(path, path, None):
        if isinstance(entry, str):
            name = os.path.relpath(entry, path)
            total.update(os.fsencode(name) + b"\0" + hash_file(Path(entry)).encode())
    return total.hexdigest()


def _resolve_unit(path: Path) -> Path:
    """The absolute path, which must exist; for MRCONSO.RRF its folder, which is the unit."""
    if not path.exists():
        raise MissingPath(f"{path} does not exist", fix="check the path")
    # Not resolved: a link that the user names is followed, and keeps its name.
    path = Path(os.path.abspath(path))
    return path.parent if _CONCEPTS.fullmatch(path.name) else path


def _display_path(path: Path, above: Path) -> str:
    """The path from `above` on, fit to be printed and stored whatever bytes the name holds."""
    return one_line(path.relative_to(above).as_posix())


def _walk_folder(
    folder: Path, root: Path, unit_of: Callable[[Path], FolderParser | None] | None, depth: int = 0
) -> Iterator[str | FoundFolder | Drop]:
    """Regular files in sorted order, folders that are one unit, and what is passed over."""
    name = _display_path(folder, root.parent)
    try:
        inside = sorted(folder.iterdir())
        parser = unit_of(folder) if unit_of else None
    except PermissionError:
        yield Drop(name, "not readable")
        return
    if depth == _DEEPEST:
        yield Drop(name, "too many folders inside each other")
        return
    if parser is not None:
        yield FoundFolder(SourceFile(folder), name, parser)
        return
    for path in inside:
        reason = "link" if path.is_symlink() else _unwanted_name(path.name)
        if path.is_dir() and reason in {"", _PAPERS}:
            yield from _walk_folder(path, root, unit_of, depth + 1)
        elif reason or not path.is_file():
            yield Drop(_display_path(path, root.parent), reason or "not a regular file")
        else:
            yield os.fspath(path)


def _unwanted_name(name: str) -> str:
    """Why a file of this name is not read, as the reason of a drop; "" for a good one."""
    # Some names hold bytes of no known encoding: they could not be stored and named again.
    if _NOT_TEXT.search(name):
        return "name is not text"
    if name.startswith("."):
        return "hidden"
    return _PAPERS if _ABOUT.fullmatch(name) else ""


def _open_path(path: Path, name: str, companions: Companions) -> Iterator[FoundFile | Drop]:
    """The file itself, or what is in it when it is an archive."""
    if is_companion(path):
        yield Drop(name, "table of contents, read with its files")
        return
    try:
        if is_archive(path.name):
            for member in open_members(path, name):
                if isinstance(member, Drop):
                    yield member
                else:
                    yield _open_archived(path, name, member, companions)
        else:
            with open_file(path) as stream:
                head = stream.peek(_HEAD)[:_HEAD]
            yield _match_parser(SourceFile(path), name, head, companions, lambda: open_file(path))
    except Unreadable as error:
        yield Drop(name, error.reason)
    except PermissionError:
        yield Drop(name, "not readable")


def _open_archived(
    path: Path, name: str, member: Member, companions: Companions
) -> FoundFile | Drop:
    where, last = f"{name}!{one_line(member.name)}", PurePosixPath(member.name).name
    if reason := "name is not text" if _NOT_TEXT.search(member.name) else _unwanted_name(last):
        return Drop(where, reason)
    try:
        head = member.stream.peek(_HEAD)[:_HEAD]
    except Unreadable as error:
        return Drop(where, error.reason)
    file = SourceFile(path, member.name)
    return _match_parser(file, where, head, companions, lambda: member.stream)


def _match_parser(
    file: SourceFile,
    name: str,
    head: bytes,
    companions: Companions,
    opener: Callable[[], BufferedReader],
) -> FoundFile | Drop:
    if not head:
        return Drop(name, "empty file")
    parser = companions.parser_of(name, utf8_head(head))
    if parser is None:
        return Drop(name, "unknown format")
    beside = companions.beside.get(parser.name, "")
    return FoundFile(file, name, parser, lambda: as_utf8(opener()), beside)


# Documents of one file that are compared with each other; their keys take about 100 MB.
_REMEMBERED = 1_000_000


def without_doubles(records: Iterator[Record], name: str) -> Iterator[Record]:
    """The records, without documents that repeat an earlier one of the file `name`: each is a
    drop instead.

    Patients are not compared: two may well have the same history.
    """
    seen: set[bytes] = set()
    for record in records:
        if isinstance(record, Document) and not is_patients("", record.kind):
            key = _document_key(record)
            if key in seen:
                yield Drop(f"{name}: {record.id}", "double in the file")
                continue
            if len(seen) < _REMEMBERED:
                seen.add(key)
        yield record


def _document_key(document: Document) -> bytes:
    """Equal for equal words under the same identity: two articles may both say "Reply."."""
    # A later version of a record replaces the earlier one, even where it says the same.
    parts = [document.title, document.code, document.url, str(document.version)]
    parts += ["\n".join((*section.path, section.text)) for section in document.sections]
    whole = "\0".join(parts).encode(errors="surrogatepass")
    return hashlib.blake2b(whole, digest_size=8).digest()

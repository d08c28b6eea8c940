"""What `kb add` finds at a path: files and archive members with their parsers.

Every file is accounted for: it is a `Found`, or a `Drop` that says why it is not.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from osler.errors import MalformedSource
from osler.sources.companions import Companions, is_companion, load_companions
from osler.sources.duplicates import without_doubles
from osler.sources.formats import FolderParser, by_name, sniff_folder
from osler.sources.formats.containers import Member, Unreadable, is_archive, open_file, open_members
from osler.sources.records import Drop, Parser, Record, SourceFile
from osler.text import one_line

_HEAD = 4096
_DEEPEST = 200
"""Folders inside each other; deeper ones are no library but a loop or an attack."""
_CONCEPTS = re.compile(r"MRCONSO\.RRF(?:\.gz)?", re.IGNORECASE)
_NOT_TEXT = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
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
    """Hash of the files beside it that name and order its documents; "" for none."""


@dataclass(frozen=True, slots=True)
class FoundFolder:
    """A folder whose tables are one unit: a UMLS release, a MIMIC module."""

    file: SourceFile
    name: str
    parser: FolderParser


Found = FoundFile | FoundFolder


def discover(
    paths: Sequence[Path],
    *,
    fmt: str | None = None,
    settled: Callable[[Path], bool] | None = None,
) -> Iterator[Found | Drop]:
    """Everything at the paths: files, folders (in sorted order, all levels) and archives.

    A folder with the tables of UMLS (MRCONSO.RRF) or MIMIC (patients, admissions,
    diagnoses_icd) is taken as one unit, and so is MRCONSO.RRF when it is named
    itself. `fmt` names the format of all files instead of letting each be sniffed.
    A regular file for which `settled` is true is not opened and not yielded.
    Links are not followed and hidden files are not read. Read each `Found` before the
    next is asked for: a member of an archive is open only until then.

    Raises `MalformedSource` for a path that does not exist and `BadConfig` for an
    unknown format, both at once and not when the iteration begins.
    """
    parser = None if fmt is None else by_name(fmt)
    for path in paths:
        if isinstance(parser, FolderParser) and not _resolve_unit(_require_path(path)).is_dir():
            raise MalformedSource(
                f"{path} is not a folder",
                fix=f"{parser.name} is read from the folder of its tables",
            )
    return _discover_all(
        [_resolve_unit(_require_path(path)) for path in paths], parser, settled or _is_never_settled
    )


def read_records(found: Found) -> Iterator[Record]:
    """The records; a file that breaks off, or cannot be read at all, ends in a drop.

    A document with the title and text of an earlier one of the file is a drop, too
    (Omni-RAG §3.1), unless it is a patient: two may well have the same history.
    """
    is_empty = True
    try:
        for record in without_doubles(_parse_records(found), found.name):
            is_empty = False
            yield record
    except Unreadable as error:
        yield Drop(found.name, error.reason)
    except MalformedSource as error:
        yield Drop(f"{found.name}: {error.message}", "malformed file")
    else:
        if is_empty:
            yield Drop(found.name, "no record")


def hash_tree(path: Path) -> str:
    """SHA-256 of all bytes that `discover([path])` would look at, in hexadecimal.

    Of one file it is the file's own; of a folder, of the names and hashes inside.
    """
    path = _resolve_unit(_require_path(path))
    if not path.is_dir():
        return _hash_file(path)
    total = hashlib.sha256()
    for file in _walk_folder(path, path):
        if isinstance(file, Path):
            total.update(os.fsencode(file.relative_to(path)) + b"\0" + _hash_file(file).encode())
    return total.hexdigest()


def _require_path(path: Path) -> Path:
    if not path.exists():
        raise MalformedSource(f"{path} does not exist", fix="check the path")
    return path


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _parse_records(found: Found) -> Iterator[Record]:
    if isinstance(found, FoundFolder):
        yield from found.parser.parse_folder(found.file.path)
    else:
        with found.open() as stream:
            yield from found.parser.parse(stream, found.name)


def _resolve_unit(path: Path) -> Path:
    """The path without links in its own name; of MRCONSO.RRF, the folder that it stands in."""
    path = Path(os.path.abspath(path))
    return path.parent if _CONCEPTS.fullmatch(path.name) else path


def _is_never_settled(path: Path) -> bool:
    return False


def _discover_all(
    paths: Sequence[Path],
    parser: Parser | FolderParser | None,
    settled: Callable[[Path], bool],
) -> Iterator[Found | Drop]:
    for path in paths:
        if isinstance(parser, FolderParser):
            yield FoundFolder(SourceFile(path), _display_path(path, path.parent), parser)
        elif path.is_dir():
            files = (file for file in _walk_folder(path, path) if isinstance(file, Path))
            kin = load_companions(filter(is_companion, files), parser)
            yield from _broken_companions(kin, path.parent)
            for found in _walk_folder(path, path, sniff_folder if parser is None else _no_unit):
                if not isinstance(found, Path):
                    yield found
                elif not settled(found):
                    yield from _in_file(found, _display_path(found, path.parent), kin)
        elif not path.is_file():
            yield Drop(_display_path(path, path.parent.parent), "not a regular file")
        elif not settled(path):
            kin = load_companions(filter(is_companion, path.parent.iterdir()), parser)
            yield from _broken_companions(kin, path.parent.parent)
            yield from _in_file(path, _display_path(path, path.parent.parent), kin)


def _broken_companions(kin: Companions, above: Path) -> Iterator[Drop]:
    for path, why in kin.broken:
        yield Drop(f"{_display_path(path, above)}: {why}", "malformed file")


def _display_path(path: Path, above: Path) -> str:
    """The path from `above` on, fit to be printed and stored whatever bytes the name holds."""
    return one_line(path.relative_to(above).as_posix())


def _is_text(name: str) -> bool:
    """Whether a name can be stored and named again: some hold bytes of no known encoding."""
    return _NOT_TEXT.search(name) is None


def _no_unit(folder: Path) -> FolderParser | None:
    return None


def _walk_folder(
    folder: Path,
    root: Path,
    unit_of: Callable[[Path], FolderParser | None] = _no_unit,
    depth: int = 0,
) -> Iterator[Path | FoundFolder | Drop]:
    """Regular files in sorted order, folders that are one unit, and what is passed over."""
    name = _display_path(folder, root.parent)
    try:
        inside = sorted(folder.iterdir())
        parser = unit_of(folder)
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
        if path.is_symlink():
            yield Drop(_display_path(path, root.parent), "link")
        elif not _is_text(path.name):
            yield Drop(_display_path(path, root.parent), "name is not text")
        elif path.name.startswith("."):
            yield Drop(_display_path(path, root.parent), "hidden")
        elif path.is_dir():
            yield from _walk_folder(path, root, unit_of, depth + 1)
        elif not path.is_file():
            yield Drop(_display_path(path, root.parent), "not a regular file")
        elif _ABOUT.fullmatch(path.name):
            yield Drop(_display_path(path, root.parent), "licence or readme")
        else:
            yield path


def _in_file(path: Path, name: str, kin: Companions) -> Iterator[FoundFile | Drop]:
    """The file itself, or what is in it when it is an archive."""
    if is_companion(path):
        yield Drop(name, "table of contents, read with its files")
        return
    try:
        if is_archive(path.name):
            for member in open_members(path, name):
                yield (member if isinstance(member, Drop) else _in_archive(path, name, member, kin))
        else:
            with open_file(path) as stream:
                head = stream.peek(_HEAD)[:_HEAD]
            yield _match_parser(SourceFile(path), name, head, kin, lambda: open_file(path))
    except Unreadable as error:
        yield Drop(name, error.reason)
    except PermissionError:
        yield Drop(name, "not readable")


def _in_archive(path: Path, name: str, member: Member, kin: Companions) -> FoundFile | Drop:
    where, last = f"{name}!{one_line(member.name)}", PurePosixPath(member.name).name
    if not _is_text(member.name):
        return Drop(where, "name is not text")
    if last.startswith("."):
        return Drop(where, "hidden")
    if _ABOUT.fullmatch(last):
        return Drop(where, "licence or readme")
    try:
        head = member.stream.peek(_HEAD)[:_HEAD]
    except Unreadable as error:
        return Drop(where, error.reason)
    return _match_parser(SourceFile(path, member.name), where, head, kin, lambda: member.stream)


def _match_parser(
    file: SourceFile,
    name: str,
    head: bytes,
    kin: Companions,
    opener: Callable[[], BinaryIO],
) -> FoundFile | Drop:
    if not head:
        return Drop(name, "empty file")
    parser = kin.parser_of(name, head)
    if parser is None:
        return Drop(name, "unknown format")
    return FoundFile(file, name, parser, opener, kin.beside.get(parser.name, ""))

"""Companion files (e.g. tables of contents), and the parsers that know them.

A parser that is a `CompanionParser` names and orders its documents by other files that lie
beside them: the collections of OpenStax textbooks. The hash of these stands with each file
that is read with them, so that a changed table of contents counts as a changed file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from osler.errors import MalformedSource
from osler.sources.formats import PARSERS, CompanionParser, sniff_file
from osler.sources.records import Parser


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
    """The parsers that know these companions; a companion that cannot be read is left out."""
    ordered = sorted(paths)
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

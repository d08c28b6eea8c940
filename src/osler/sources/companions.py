"""Files that tell about others beside them: the collections of textbooks."""

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
    """How the files below one root are read."""

    fmt: Parser | None = None
    """The parser that was asked for; `None`: each file tells."""
    knowing: Mapping[str, Parser] = field(default_factory=dict)
    """By format, the parser that knows the companions of its files, and …"""
    beside: Mapping[str, str] = field(default_factory=dict)
    """… a hash of these."""
    broken: tuple[tuple[Path, str], ...] = ()
    """Companions that could not be read, each with why."""

    def parser_of(self, name: str, head: bytes) -> Parser | None:
        found = self.fmt or sniff_file(name, head)
        return self.knowing.get(found.name, found) if found else None


def is_companion(path: Path) -> bool:
    """Whether it is a file that tells about others and holds no text itself."""
    is_named_so = any(of.is_companion(path.name) for of in _companion_parsers())
    return is_named_so and path.is_file() and not path.is_symlink()


def load_companions(companions: Iterable[Path], fmt: Parser | None) -> Companions:
    """The parsers that know the companions, each tried by itself first."""
    paths = sorted(companions)
    knowing: dict[str, Parser] = {}
    beside: dict[str, str] = {}
    broken: list[tuple[Path, str]] = []
    for of in _companion_parsers():
        good: list[Path] = []
        for path in (path for path in paths if of.is_companion(path.name)):
            try:
                of.with_companions([path])
            except (MalformedSource, PermissionError) as error:
                broken.append((path, str(error)))
            else:
                good.append(path)
        if good:
            knowing[of.name] = of.with_companions(good)
            hashes = (hashlib.sha256(path.read_bytes()).hexdigest() for path in good)
            beside[of.name] = "\n".join(hashes)
    return Companions(fmt, knowing, beside, tuple(broken))


def _companion_parsers() -> list[CompanionParser]:
    return [parser for parser in PARSERS if isinstance(parser, CompanionParser)]

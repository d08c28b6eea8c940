"""Files that describe a graph and hold none of its facts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from osler.graph.items import Item
from osler.sources.formats.reading import plain_head
from osler.sources.records import Drop

_BEGINNINGS = (
    b"metaedge\tabbreviation\t",  # Hetionet
    b"metanode\tabbreviation\t",
    b"namespace ",  # OpenSPG's schema
    b"MATCH (",  # and its rules
)


class AboutFile:
    """Named as such, so that a folder with one in it is read without a complaint."""

    name = "about"

    def matches(self, path: Path, head: bytes) -> bool:
        begin = plain_head(head)
        return begin.startswith(_BEGINNINGS) or path.name == "predicate.json"

    def read(self, path: Path) -> Iterator[Item]:
        yield Drop(path.name, "description of a graph, no facts")

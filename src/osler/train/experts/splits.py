"""Train, dev and test: by document and by question, as hashes on disk.

Questions that share a document, and documents that share a question, stay on one side. The file
(`split.json` of the benchmarks) holds hashes of ids alone, so it may be published where the data
may not. It was made once, before any expert was trained; all of them share it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar, get_args

from osler.errors import BadConfig

Part = Literal["train", "dev", "test"]
PARTS: tuple[Part, ...] = get_args(Part)
DIGITS = 10
"""Hexadecimal digits of a hash: among 20,000 ids, two are alike in 2 of 10,000 cases."""


class SplitItem(Protocol):
    """An item with an id and the documents that it rests on."""

    @property
    def id(self) -> str: ...
    @property
    def documents(self) -> tuple[str, ...]: ...


Item = TypeVar("Item", bound=SplitItem)


@dataclass(frozen=True)
class DataSplit:
    """The part of each question and of each document, by the hash of its id."""

    parts: Mapping[str, Part]

    def part_of(self, item: SplitItem) -> Part | None:
        """The item's part; `None` for one that the split does not know.

        Raises `BadConfig` for an item whose documents are in another part.
        """
        found = {self.parts.get(hash_of(id)) for id in (item.id, *item.documents)}
        if len(found) > 1:
            raise BadConfig(
                f"{item.id} and its documents are not in one part of the split",
                fix="give the data as they were published",
            )
        return found.pop()

    def choose_items(self, items: Iterable[Item], part: Part) -> list[Item]:
        """The items of one part, in order. Raises as `part_of`."""
        return [item for item in items if self.part_of(item) == part]


def hash_of(id: str) -> str:
    """The hash that stands for an id in the file."""
    return hashlib.sha256(id.encode()).hexdigest()[:DIGITS]


def read_split(path: Path) -> DataSplit:
    """Raises `BadConfig` for a file that is no split, or names one hash in two parts."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        listed = [(str(h), part) for part in PARTS for h in content[part]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadConfig(f"{path} is no split: {error}", fix="give the file of --split") from error
    if len(dict(listed)) < len(listed):
        raise BadConfig(f"{path} names one hash in two parts")
    return DataSplit(dict(listed))

"""Train, dev and test: by document and by question, as hashes on disk.

Questions that share a document, and documents that share a question, stay on one side: the unit
is a connected component of the graph between them. A component with a held-out question is
tested on. The file holds hashes of ids alone, so it may be published where the data may not.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar, get_args

from osler.errors import BadConfig

Part = Literal["train", "dev", "test"]
PARTS: tuple[Part, ...] = get_args(Part)
DIGITS = 10
"""Hexadecimal digits of a hash: among 20,000 ids, two are alike in 2 of 10,000 cases."""


class SplitItem(Protocol):
    """An item with an id, the documents that it rests on, and whether it must be tested on."""

    @property
    def id(self) -> str: ...
    @property
    def documents(self) -> tuple[str, ...]: ...
    @property
    def held_out(self) -> bool: ...


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
                fix="make the split anew from the data at hand",
            )
        return found.pop()

    def choose_items(self, items: Iterable[Item], part: Part) -> list[Item]:
        """The items of one part, in order. Raises as `part_of`."""
        return [item for item in items if self.part_of(item) == part]


def hash_of(id: str) -> str:
    """The hash that stands for an id in the file."""
    return hashlib.sha256(id.encode()).hexdigest()[:DIGITS]


def make_split(
    items: Sequence[SplitItem], *, dev: float = 0.1, test: float = 0.25, seed: int = 0
) -> DataSplit:
    """Splits items by connected components; the same items and seed give the same split.

    A component's part depends on its own ids alone, so items that are added later leave the
    others where they are, unless they join two components.
    """
    parts: dict[str, Part] = {}
    for members in _connected_items(items):
        names = sorted({name for item in members for name in (item.id, *item.documents)})
        lot = int(hash_of(f"{seed}:{names[0]}"), 16) / 16**DIGITS
        held_out = any(item.held_out for item in members)
        part: Part = "test" if held_out or lot < test else "dev" if lot < test + dev else "train"
        parts |= {hash_of(name): part for name in names}
    return DataSplit(parts)


def _connected_items(items: Sequence[Item]) -> list[list[Item]]:
    """Items joined by shared documents, by union–find."""
    parent = list(range(len(items)))

    def find_root(one: int) -> int:
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        return one

    first: dict[str, int] = {}
    for number, item in enumerate(items):
        for document in item.documents:
            parent[find_root(number)] = find_root(first.setdefault(document, number))
    members: dict[int, list[Item]] = defaultdict(list)
    for number, item in enumerate(items):
        members[find_root(number)].append(item)
    return list(members.values())


def write_split(split: DataSplit, path: Path) -> None:
    """Writes the split: a JSON object of sorted hashes by part."""
    hashes = {part: sorted(h for h, p in split.parts.items() if p == part) for part in PARTS}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(hashes, indent=0) + "\n", encoding="utf-8")


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

"""Other words for what a question names: brand and ingredient, lay and technical, class and member.

`lexicon.tsv` was written for Osler. It widens searches (`osler.retrieve.asked`): on questions that
other hands wrote, the passage that answers was among the first ten for .96 in place of .85.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from osler.text import read_packaged

MEANS = frozenset({"brand", "name", "lay"})
"""Kinds of rows whose words stand for the word that was typed."""
_BRAND, _CLASS = "brand", "class"
_WORD = re.compile(r"[A-Za-z0-9]+(?:[-'’][A-Za-z0-9]+)*\+?")


@dataclass(frozen=True, slots=True)
class OtherNames:
    """A stretch of a text, and what else it is called."""

    start: int
    end: int
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Rows of `lexicon.tsv` by what people type, in lower case. Equal only to itself, so that a
    reader of questions can be remembered by it."""

    means: Mapping[str, tuple[str, ...]]
    classes: Mapping[str, tuple[str, ...]]
    """Member → the classes that it belongs to."""
    drugs: frozenset[str]
    """Names of substances, in lower case."""
    longest: int
    """Words of the longest entry."""

    def find_drugs(self, text: str) -> list[tuple[int, int]]:
        """Where the text names substances; of two names in one place the longer."""
        return [match.span() for match in self._drug_pattern.finditer(text)]

    @cached_property
    def _drug_pattern(self) -> re.Pattern[str]:
        names = sorted(self.drugs, key=lambda name: (-len(name), name))
        return re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b", re.IGNORECASE)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All single words of the table, in order."""
        said = (name for key, names in self.means.items() for name in (key, *names))
        listed = {word for name in (*said, *self.classes) for word in name.casefold().split()}
        return tuple(sorted(listed))

    def find_names(self, text: str) -> list[OtherNames]:
        """Other names of what a text says, the longest entries first, none inside another."""
        words = [
            (match[0].casefold().replace("’", "'"), *match.span()) for match in _WORD.finditer(text)
        ]
        found, at = [], 0
        while at < len(words):
            taken = 1
            for size in range(min(self.longest, len(words) - at), 0, -1):
                if names := self._look_up(" ".join(word for word, _, _ in words[at : at + size])):
                    found.append(OtherNames(words[at][1], words[at + size - 1][2], names))
                    taken = size
                    break
            at += taken
        return found

    def find_classes(self, names: Sequence[str]) -> tuple[str, ...]:
        """Classes of the drugs that are among the names, each once."""
        found = (one for name in names for one in self.classes.get(name.casefold(), ()))
        return tuple(dict.fromkeys(found))

    def is_class(self, name: str) -> bool:
        """Whether a name is one of the classes of drugs."""
        return name.casefold() in self._members

    def find_named_classes(self, text: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Classes that a text names: as it has them, as the table has them, and their members."""
        for match in self._class_pattern.finditer(text):
            name = match[1].casefold()
            yield match[0], name, self._members[name]

    @cached_property
    def _members(self) -> Mapping[str, tuple[str, ...]]:
        members: dict[str, list[str]] = defaultdict(list)
        for drug, classes in self.classes.items():
            for name in classes:
                members[name].append(drug)
        return {name: tuple(drugs) for name, drugs in members.items()}

    @cached_property
    def _class_pattern(self) -> re.Pattern[str]:
        names = sorted(self._members, key=lambda name: (-len(name), name))
        return re.compile(rf"\b({'|'.join(map(re.escape, names))})s?\b", re.IGNORECASE)

    def _look_up(self, said: str) -> tuple[str, ...]:
        return next((self.means[form] for form in _forms(said) if form in self.means), ())


def _forms(said: str) -> Iterator[str]:
    """The words as typed, and without a possessive or plural ending."""
    yield said
    for ending in ("'s", "es", "s"):
        if said.endswith(ending) and len(said) > len(ending) + 3:
            yield said.removesuffix(ending)


@cache
def packaged_lexicon() -> Lexicon:
    """The table that comes with the package."""
    means: dict[str, tuple[str, ...]] = {}
    classes: dict[str, list[str]] = defaultdict(list)
    drugs: set[str] = set()
    for line in read_packaged(__package__, "lexicon.tsv").splitlines():
        if not line or line.startswith("#"):
            continue
        kind, said, meant = line.split("\t")
        names = tuple(meant.split("; "))
        if kind in (_BRAND, _CLASS):
            drugs.update(name.casefold() for name in names)
        if kind in MEANS:
            means[said] = (*means.get(said, ()), *names)
        elif kind == _CLASS:
            for name in names:
                classes[name.casefold()].append(said)
    longest = max(len(said.split()) for said in means)
    return Lexicon(
        means, {name: tuple(all_) for name, all_ in classes.items()}, frozenset(drugs), longest
    )

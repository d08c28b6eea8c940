"""Which names mean one entity: by concept, by standard name, by synonym.

A model's synonyms are its own knowledge and often wrong, and one wrong merge joins all that
hangs on two names. So a synonym counts only where nothing speaks against it, and what is
decided does not depend on the order in which chunks came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Name = str
"""A normal form (`osler.graph.normal`), or a concept as `concept` writes it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one chunk says of one name."""

    name: Name
    concepts: tuple[str, ...] = ()
    standard: Name = ""
    synonyms: tuple[Name, ...] = ()
    type: str = ""


@dataclass(frozen=True)
class Classes:
    """Names by entity."""

    of: Mapping[Name, int]
    """The entity of each name and concept; they count from 0 in order of their first names."""
    count: int
    refused: int
    """Synonyms that were not taken: of several entities, or of another type."""

    def __getitem__(self, name: Name) -> int | None:
        return self.of.get(name)


def concept(id: str) -> Name:
    """A concept among the names: no normal form begins with "="."""
    return f"={id}"


def classes(claims: Iterable[Claim], heads: Mapping[str, str] | None = None) -> Classes:
    """The entities behind these names.

    1. Names of one concept are one; `heads` says which concepts were fused into another. A name
       that is several concepts', in one chunk or in two, is ambiguous, and joins nothing.
    2. A name and its standard name, the one that most chunks give, unless their types differ.
    3. A name and its synonym, unless their types differ or names of several entities claim it.
    """
    known = _Known(heads or {})
    for claim in claims:
        known.take(claim)
    merged = _Merged()
    for one, other in known.of_concepts():
        merged.join(one, other)
    for one, other in known.of_standards():
        merged.join(one, other)
    chosen, refused = known.of_synonyms(merged)
    for one, other in chosen:
        merged.join(one, other)
    return _numbered(known.names, merged, refused)


@dataclass
class _Known:
    heads: Mapping[str, str]
    names: set[Name] = field(default_factory=set)
    concepts: dict[Name, set[Name]] = field(default_factory=dict)
    standards: dict[Name, Counter[Name]] = field(default_factory=dict)
    claimers: dict[Name, set[Name]] = field(default_factory=dict)
    types: dict[Name, set[str]] = field(default_factory=dict)

    def take(self, claim: Claim) -> None:
        self.names.add(claim.name)
        if claim.type:
            self.types.setdefault(claim.name, set()).add(claim.type)
        for id in claim.concepts:
            self.concepts.setdefault(claim.name, set()).add(concept(self.heads.get(id, id)))
        if claim.standard:
            self.standards.setdefault(claim.name, Counter())[claim.standard] += 1
        for synonym in claim.synonyms:
            self.claimers.setdefault(synonym, set()).add(claim.name)

    def of_concepts(self) -> Iterator[tuple[Name, Name]]:
        for name, concepts in sorted(self.concepts.items()):
            if len(concepts) == 1:
                yield name, next(iter(concepts))

    def of_standards(self) -> Iterator[tuple[Name, Name]]:
        for name, given in sorted(self.standards.items()):
            standard = min(given, key=lambda each: (-given[each], each))
            if self._agree(name, standard):
                yield name, standard

    def of_synonyms(self, merged: _Merged) -> tuple[list[tuple[Name, Name]], int]:
        chosen, refused = list[tuple[Name, Name]](), 0
        for synonym, claimers in sorted(self.claimers.items()):
            entities = {merged.root(name) for name in claimers}
            agreed = [name for name in sorted(claimers) if self._agree(name, synonym)]
            if len(entities) > 1 or not agreed:
                refused += 1
            else:
                chosen += [(name, synonym) for name in agreed]
        return chosen, refused

    def _agree(self, one: Name, other: Name) -> bool:
        """Whether nothing is known of their types, or one type is both's."""
        first, second = self.types.get(one), self.types.get(other)
        return not first or not second or bool(first & second)


@dataclass
class _Merged:
    """Disjoint sets, each under its first name."""

    parent: dict[Name, Name] = field(default_factory=dict)

    def root(self, name: Name) -> Name:
        found = name
        while (above := self.parent.get(found, found)) != found:
            found = above
        while (above := self.parent.get(name, name)) != found:
            self.parent[name], name = found, above
        return found

    def join(self, one: Name, other: Name) -> None:
        first, second = sorted((self.root(one), self.root(other)))
        self.parent.setdefault(first, first)
        self.parent[second] = first


def _numbered(names: set[Name], merged: _Merged, refused: int) -> Classes:
    numbers: dict[Name, int] = {}
    of: dict[Name, int] = {}
    for name in sorted(names | merged.parent.keys()):
        of[name] = numbers.setdefault(merged.root(name), len(numbers))
    return Classes(of, len(numbers), refused)


def members(found: Classes) -> Sequence[frozenset[Name]]:
    """The names of each entity, concepts left out."""
    every: list[set[Name]] = [set() for _ in range(found.count)]
    for name, number in found.of.items():
        if not name.startswith("="):
            every[number].add(name)
    return [frozenset(each) for each in every]

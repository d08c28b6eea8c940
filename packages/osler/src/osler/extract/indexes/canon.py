"""Resolves names to entities: by concept, by standard name, by synonym.

A model's synonyms are its own knowledge and often wrong, and one wrong merge joins everything
connected to two names. So a synonym counts only where nothing contradicts it, and the result does
not depend on the order of the chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from osler.graph.fusion import DisjointSets

Name = str
"""A normal form (`osler.graph.derive`), or a concept as `concept_name` writes it."""


@dataclass(frozen=True, slots=True)
class NameClaim:
    """One chunk's statement about one name."""

    name: Name
    concepts: tuple[str, ...] = ()
    standard: Name = ""
    synonyms: tuple[Name, ...] = ()
    type: str = ""


@dataclass(frozen=True)
class EntityClasses:
    """Names by entity."""

    of: Mapping[Name, int]
    """Entity number of each name and concept, from 0 in order of their first names."""
    count: int
    refused: int
    """Number of rejected synonyms: of several entities, or of another type."""

    def __getitem__(self, name: Name) -> int | None:
        return self.of.get(name)


def concept_name(id: str) -> Name:
    """A concept's key among the names; no normal form begins with "="."""
    return f"={id}"


def resolve_entities(
    claims: Iterable[NameClaim], heads: Mapping[str, str] | None = None
) -> EntityClasses:
    """Groups these names into entities.

    1. Names of one concept are one entity; `heads` maps concepts to those they were fused into.
       A name of several concepts, in one chunk or in two, is ambiguous and joins nothing.
    2. A name joins its standard name, the one that most chunks give, unless their types differ.
    3. A name joins its synonym, unless their types differ or names of several entities claim it.
    """
    known = _NameClaims(heads or {})
    for claim in claims:
        known.add_claim(claim)
    merged = DisjointSets[Name]()
    for one, other in chain(known.of_concepts(), known.of_standards()):
        merged.join_sets(one, other)
    chosen, refused = known.of_synonyms(merged)
    for one, other in chosen:
        merged.join_sets(one, other)
    return _number_classes(known.names, merged, refused)


@dataclass
class _NameClaims:
    heads: Mapping[str, str]
    names: set[Name] = field(default_factory=set)
    concepts: dict[Name, set[Name]] = field(default_factory=dict)
    standards: dict[Name, Counter[Name]] = field(default_factory=dict)
    claimers: dict[Name, set[Name]] = field(default_factory=dict)
    types: dict[Name, set[str]] = field(default_factory=dict)

    def add_claim(self, claim: NameClaim) -> None:
        self.names.add(claim.name)
        if claim.type:
            self.types.setdefault(claim.name, set()).add(claim.type)
        for id in claim.concepts:
            self.concepts.setdefault(claim.name, set()).add(concept_name(self.heads.get(id, id)))
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
            if self._types_agree(name, standard):
                yield name, standard

    def of_synonyms(self, merged: DisjointSets[Name]) -> tuple[list[tuple[Name, Name]], int]:
        chosen, refused = list[tuple[Name, Name]](), 0
        for synonym, claimers in sorted(self.claimers.items()):
            entities = {merged.find_root(name) for name in claimers}
            agreed = [name for name in sorted(claimers) if self._types_agree(name, synonym)]
            # A synonym claimed for two entities decides nothing.
            if len(entities) > 1 or not agreed:
                refused += 1
            else:
                chosen += [(name, synonym) for name in agreed]
        return chosen, refused

    def _types_agree(self, one: Name, other: Name) -> bool:
        """Whether the two share a type, or a type is unknown."""
        first, second = self.types.get(one), self.types.get(other)
        return not first or not second or bool(first & second)


def _number_classes(names: set[Name], merged: DisjointSets[Name], refused: int) -> EntityClasses:
    numbers: dict[Name, int] = {}
    of: dict[Name, int] = {}
    for name in sorted(names | merged.parent.keys()):
        of[name] = numbers.setdefault(merged.find_root(name), len(numbers))
    return EntityClasses(of, len(numbers), refused)

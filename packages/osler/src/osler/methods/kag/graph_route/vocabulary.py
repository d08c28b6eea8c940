"""Kinds of concepts, with the words that questions use for them, and the relations between them.

They are those of `relations.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from osler.text import read_packaged_table
from osler.types import Language

_AROUND = re.compile(r"\(\?<?[=!][^)]*\)")


@dataclass(frozen=True, slots=True)
class RelationKind:
    """A relation that questions ask for, and the predicates by which graphs state it."""

    name: str
    ends: frozenset[tuple[str, str]]
    """Kinds of the first and the second end."""
    out: frozenset[str]
    """Predicates stated from the first end."""
    inverse: frozenset[str]
    """Predicates stated from the second end."""
    symmetric: bool = False

    def steps_from(self, kind: str) -> Iterator[tuple[bool, str]]:
        """Whether one goes forward, and to which kind, from a concept of this kind."""
        for first, second in sorted(self.ends):
            if first == kind:
                yield True, second
            if second == kind and not (self.symmetric and first == kind):
                yield False, first


@dataclass(frozen=True)
class Vocabulary:
    """Kinds and relations, with a pattern for the words of each kind in both languages."""

    kinds: Mapping[str, frozenset[str]]
    """What a concept is, a drug, a disease, a gene, with the semantic types of graphs for it."""
    relations: Mapping[str, RelationKind]
    patterns: Mapping[Language, Mapping[str, re.Pattern[str]]]
    """By language and kind."""

    def kinds_of(self, types: frozenset[str]) -> frozenset[str]:
        """The kinds of a concept with these semantic types."""
        return frozenset(name for name, own in self.kinds.items() if own & types)


@cache
def read_vocabulary() -> Vocabulary:
    """The vocabulary that comes with Osler."""
    tables = read_packaged_table(__package__, "relations.toml")
    kinds = {name: frozenset(row["types"]) for name, row in tables["kind"].items()}
    relations = {name: _make_relation(name, row) for name, row in tables["relation"].items()}
    patterns: dict[Language, dict[str, re.Pattern[str]]] = {
        "en": {name: _english(row["en"]) for name, row in tables["kind"].items()},
        "zh": {name: _chinese(row["zh"]) for name, row in tables["kind"].items()},
    }
    return Vocabulary(kinds, relations, patterns)


@cache
def name_hops() -> tuple[str, ...]:
    """Each relation and way: "treats>" from a drug, "treats<" to one; a symmetric one has none."""
    return tuple(
        f"{one.name}{way}"
        for one in read_vocabulary().relations.values()
        for way in (("",) if one.symmetric else "><")
    )


@cache
def step_kinds(kinds: frozenset[str], hop: str) -> frozenset[str]:
    """The kinds that a hop leads to from concepts of these."""
    relation = read_vocabulary().relations[hop.rstrip("<>")]
    return frozenset(
        other
        for kind in kinds
        for forward, other in relation.steps_from(kind)
        if relation.symmetric or forward != hop.endswith("<")
    )


def _make_relation(name: str, row: Mapping[str, list[str]]) -> RelationKind:
    ends = frozenset((a, b) for a, _, b in (pair.partition(">") for pair in row["ends"]))
    inverse = frozenset(row.get("inverse", ()))
    return RelationKind(name, ends, frozenset(row["out"]), inverse, bool(row.get("symmetric")))


def _english(words: list[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-])", re.IGNORECASE)


def _chinese(words: list[str]) -> re.Pattern[str]:
    # The longest first; what is looked for around a word is no part of it.
    bare = {word: len(_AROUND.sub("", word)) for word in words}
    return re.compile("|".join(sorted(words, key=bare.__getitem__, reverse=True)))

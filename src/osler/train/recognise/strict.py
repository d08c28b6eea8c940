"""Strict F1 of spans: an entity counts when its start, its end and its type are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.train.recognise.corpus import Entity


@dataclass(frozen=True, slots=True)
class Score:
    """0/0 counts as 0."""

    right: int
    found: int
    gold: int

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        total = self.found + self.gold
        return 2 * self.right / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Scores:
    micro: Score
    types: dict[str, Score]


def strict(found: Sequence[Sequence[Entity]], gold: Sequence[Sequence[Entity]]) -> Scores:
    """Over all texts. Raises `ValueError` for unequal numbers of texts."""
    pairs = [(set(f), set(g)) for f, g in zip(found, gold, strict=True)]
    names = sorted({entity.type for f, g in pairs for entity in f | g})
    types = {name: _score([(_of(f, name), _of(g, name)) for f, g in pairs]) for name in names}
    return Scores(_score(pairs), types)


def _of(entities: set[Entity], type: str) -> set[Entity]:
    return {entity for entity in entities if entity.type == type}


def _score(pairs: Sequence[tuple[set[Entity], set[Entity]]]) -> Score:
    return Score(
        sum(len(f & g) for f, g in pairs),
        sum(len(f) for f, _ in pairs),
        sum(len(g) for _, g in pairs),
    )

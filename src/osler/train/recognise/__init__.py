"""A trained recogniser of medical entities, and the strict F1 by which it is measured.

| Module | Has |
|---|---|
| `corpus` | texts with marked entities: BIO columns and JSON Lines, units and windows |
| `net` | the network: a score for every span and type |
| `loop` | the training: seeded, on a CPU, the best epoch kept |
| `recogniser` | a trained recogniser as a folder of two files |
| `link` | recognised names led to concepts of the graph |

Strict: an entity counts when its start, its end and its type are all right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.train.recognise.corpus import MarkedEntity


@dataclass(frozen=True, slots=True)
class TypeScore:
    """Counts of one type, and their scores; 0/0 counts as 0."""

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
class StrictScores:
    micro: TypeScore
    types: dict[str, TypeScore]


def strict_scores(
    found: Sequence[Sequence[MarkedEntity]], gold: Sequence[Sequence[MarkedEntity]]
) -> StrictScores:
    """Scores all texts together. Raises `ValueError` for unequal numbers of texts."""
    pairs = [(set(f), set(g)) for f, g in zip(found, gold, strict=True)]
    names = sorted({entity.type for f, g in pairs for entity in f | g})
    types = {
        name: _score_pairs([(_of_type(f, name), _of_type(g, name)) for f, g in pairs])
        for name in names
    }
    return StrictScores(_score_pairs(pairs), types)


def _of_type(entities: set[MarkedEntity], type: str) -> set[MarkedEntity]:
    return {entity for entity in entities if entity.type == type}


def _score_pairs(pairs: Sequence[tuple[set[MarkedEntity], set[MarkedEntity]]]) -> TypeScore:
    return TypeScore(
        sum(len(f & g) for f, g in pairs),
        sum(len(f) for f, _ in pairs),
        sum(len(g) for _, g in pairs),
    )

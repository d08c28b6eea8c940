"""Measures over several answers, plans or raters: LUQ, diversity, stability, agreement.

What a model must judge (entailment, consistency) comes in as numbers, so that the definition
stands apart from who judges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import fmean


@dataclass(frozen=True, slots=True)
class Entailment:
    """An NLI model's scores of one sentence given one response; its neutral score is unused."""

    entails: float
    contradicts: float

    @property
    def share(self) -> float:
        """P(entail) normalised over entail and contradict; 0.5 where both are 0."""
        both = self.entails + self.contradicts
        return self.entails / both if both else 0.5


def luq(scores: Sequence[Sequence[Sequence[Entailment | None]]]) -> float:
    """LUQ uncertainty of n responses, 0 (all agree) to 1 (Omni-RAG A.3).

    `scores[i][s][j]` is sentence s of response i given response j; `None` where i = j.
    C(i) is the mean over sentences of the mean over the others; U = 1 − mean C(i). Raises
    `ValueError` for fewer than two responses, or a response without sentences.
    """
    if len(scores) < 2:
        raise ValueError("LUQ needs two responses")
    consistencies = []
    for i, sentences in enumerate(scores):
        if not sentences:
            raise ValueError(f"response {i} has no sentence")
        shares = [
            [e.share for j, e in enumerate(row) if j != i and e is not None] for row in sentences
        ]
        # C(i): first the mean over the other responses, then over the sentences (A.3).
        consistencies.append(fmean(fmean(row) for row in shares))
    return 1 - fmean(consistencies)


def query_diversity(vectors: Sequence[Sequence[float]]) -> float | None:
    """Mean cosine distance over all pairs of queries to one source (Omni-RAG Eq. 5).

    `None` for fewer than two queries. Raises `ValueError` for a vector of length 0.
    """
    if len(vectors) < 2:
        return None
    return fmean(1 - _cosine(a, b) for a, b in combinations(vectors, 2))


def _cosine(a: Sequence[float], b: Sequence[float]) -> float:
    lengths = sqrt(sum(x * x for x in a)) * sqrt(sum(y * y for y in b))
    if not lengths:
        raise ValueError("a query without direction")
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of a machine's yes and no with a person's (Omni-RAG A.2). 0/0 counts as 0."""

    accuracy: float
    precision: float
    recall: float
    f1: float
    n: int


def agreement(machine: Sequence[bool], person: Sequence[bool]) -> Agreement:
    """Raises `ValueError` for no judgements, or unequal numbers of them."""
    if len(machine) != len(person) or not machine:
        raise ValueError(f"{len(machine)} judgements against {len(person)}")
    both = sum(m and p for m, p in zip(machine, person, strict=True))
    same = sum(m == p for m, p in zip(machine, person, strict=True))
    precision = both / sum(machine) if any(machine) else 0.0
    recall = both / sum(person) if any(person) else 0.0
    total = sum(machine) + sum(person)
    return Agreement(
        same / len(machine), precision, recall, 2 * both / total if total else 0.0, len(machine)
    )


def relative_drop(value: float, base: float) -> float:
    """(value − base) / base (Omni-RAG Table 6). Raises `ValueError` for base 0."""
    if not base:
        raise ValueError("there is no drop from 0")
    return (value - base) / base

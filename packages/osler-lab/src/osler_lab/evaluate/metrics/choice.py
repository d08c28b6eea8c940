"""Choices, how well their sureness is calibrated, and how far several answers or judges agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import fmean

from osler.answer.option_reading import written_option, written_options
from osler.types import Question


def chosen_letters(question: Question, option: str | None, text: str) -> frozenset[str]:
    """Letters that an answer chose: its option, else those its text names; empty for none."""
    if option:
        return frozenset(option)
    # A set is looked for first: "A, C" names no single option.
    if several := written_options(text, question):
        return frozenset(several)
    single = written_option(text, question)
    return frozenset({single} if single else ())


def is_exact_choice(chosen: Iterable[str], gold: Iterable[str]) -> float:
    """Returns 1.0 when exactly the gold letters were chosen (TC-RAG's EM), else 0.0."""
    picked = set(chosen)
    return float(bool(picked) and picked == set(gold))


def standard_error(accuracy: float, n: int) -> float:
    """Standard error of a share as MIRAGE has it: sqrt(p (1 - p) / n). Raises `ValueError`."""
    if n < 1:
        raise ValueError("no samples, no error")
    return sqrt(accuracy * (1 - accuracy) / n)


def leaderboard(rows: Sequence[tuple[str, str, float]]) -> tuple[dict[str, float], float]:
    """Averages as CMB does: accuracy by exam_class, their mean by exam_type, the mean of those.

    `rows` are exam_type, exam_class and 1.0 or 0.0. Raises `ValueError` for none.
    """
    classes: dict[str, dict[str, list[float]]] = {}
    for kind, group, score in rows:
        classes.setdefault(kind, {}).setdefault(group, []).append(score)
    types = {kind: fmean(map(fmean, groups.values())) for kind, groups in classes.items()}
    return types, fmean(types.values())


BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers whose confidence lies in one tenth of the scale."""

    confidence: float
    """Mean."""
    accuracy: float
    n: int


def reliability(
    confidences: Sequence[float], rights: Sequence[float], bins: int = BINS
) -> tuple[Bin, ...]:
    """Groups answers into bins of equal width, in order, without the empty ones.

    Raises `ValueError` for confidences outside 0 to 1, and for unequal lengths.
    """
    if len(confidences) != len(rights):
        raise ValueError(f"{len(confidences)} confidences for {len(rights)} answers")
    if not all(0 <= value <= 1 for value in confidences):
        raise ValueError("a confidence lies in 0 to 1")
    by_bin: dict[int, list[tuple[float, float]]] = {}
    for confidence, right in zip(confidences, rights, strict=True):
        # A confidence of exactly 1 belongs to the last bin.
        by_bin.setdefault(min(int(confidence * bins), bins - 1), []).append((confidence, right))
    return tuple(
        Bin(fmean(c for c, _ in pairs), fmean(r for _, r in pairs), len(pairs))
        for _, pairs in sorted(by_bin.items())
    )


def calibration_error(
    confidences: Sequence[float], rights: Sequence[float], bins: int = BINS
) -> float:
    """Expected calibration error: gaps of confidence and accuracy, weighted by the bins' size.

    Raises `ValueError` for no answers.
    """
    filled = reliability(confidences, rights, bins)
    if not filled:
        raise ValueError("no answers, no error")
    total = sum(one.n for one in filled)
    return sum(one.n * abs(one.confidence - one.accuracy) for one in filled) / total


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

"""Choices: set equality, accuracy with its standard error, macro and leaderboard averages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


def macro_average(scores: Mapping[str, float]) -> float:
    """Mean over groups, each counting the same. Raises `ValueError` for none."""
    if not scores:
        raise ValueError("no groups, no mean")
    return fmean(scores.values())


def leaderboard(rows: Sequence[tuple[str, str, float]]) -> tuple[dict[str, float], float]:
    """Averages as CMB does: accuracy by exam_class, their mean by exam_type, the mean of those.

    `rows` are exam_type, exam_class and 1.0 or 0.0. Raises `ValueError` for none.
    """
    classes: dict[str, dict[str, list[float]]] = {}
    for kind, group, score in rows:
        classes.setdefault(kind, {}).setdefault(group, []).append(score)
    types = {kind: fmean(map(fmean, groups.values())) for kind, groups in classes.items()}
    return types, macro_average(types)

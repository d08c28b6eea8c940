"""Fits TC-RAG's sigma to graded answers, with a bound on wrong ones among those that converged.

The graded answers are lines of `osler ask --json` with a `right` of true or false beside each.
Their `state` is the value of the conclusion that stood: ask with a large sigma, so that it is the
first one. What a run concludes later, when its first value was not below the fitted sigma, was not
graded, and the bound does not speak of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import inf, nextafter
from pathlib import Path
from typing import Any

from osler.errors import BadConfig, BadQuestion
from osler.methods.tcrag.monitor import Metric
from osler_lab.evaluate.guarantee import GuaranteedThreshold, fit_threshold
from osler_lab.studies.calibrate_sureness import bound_in_words, read_graded_lines

_GRADE = (
    "ask with --strategy tc-rag --json and a large strategy.sigma, and write"
    ' "right": true or false into each line'
)


@dataclass(frozen=True, slots=True)
class GradedState:
    """The state value of an answer that somebody judged."""

    value: float
    metric: str
    model: str
    """Identity of the planner."""
    right: bool


@dataclass(frozen=True, slots=True)
class GuaranteedSigma:
    """A sigma with a bound on the wrong answers below it."""

    sigma: float
    metric: Metric
    model: str
    risk: float
    confidence: float
    n: int
    date: str
    questions: str

    @property
    def settings(self) -> dict[str, object]:
        """Keys of [calibration], and their values."""
        bound = bound_in_words(self.risk, self.confidence, self.n, self.questions, self.date)
        return {"sigma": self.sigma, "metric": self.metric, "model": self.model, "basis": bound}


def read_graded_states(path: Path) -> list[GradedState]:
    """Answers of a JSON Lines file; those that did not converge have no value, and are left out.

    Raises `BadQuestion` naming file, line and fix.
    """
    return read_graded_lines(path, _read_line)


def _read_line(line: str, place: str) -> tuple[str, GradedState] | None:
    try:
        document: dict[str, Any] = json.loads(line)
        state, model = document["state"], document["models"]["planner"]
        if state is None or not state["halted"]:
            return None
        value, metric, right = float(state["value"]), str(state["metric"]), document.get("right")
    except (ValueError, KeyError, TypeError) as error:
        raise BadQuestion(f"{place} is not an answer of TC-RAG's", fix=_GRADE) from error
    if not isinstance(right, bool):
        raise BadQuestion(f"{place}: the answer is not graded", fix=_GRADE)
    return str(document.get("question", "")), GradedState(value, metric, str(model), right)


def fit_guaranteed_sigma(
    graded: Sequence[GradedState],
    metric: Metric,
    *,
    risk: float,
    confidence: float,
    questions: str,
    today: date,
) -> tuple[GuaranteedSigma, GuaranteedThreshold]:
    """The largest sigma below which at most `risk` of the answers are wrong, at this confidence.

    Raises `BadConfig` for values of another metric or of several models, and as `fit_threshold`.
    """
    models = sorted({one.model for one in graded})
    if others := sorted({one.metric for one in graded} - {metric}):
        raise BadConfig(
            f"the graded answers bear values of {', '.join(others)}, not of {metric}",
            fix="ask the questions again with the settings in force, and grade those answers",
        )
    if len(models) > 1:
        raise BadConfig(
            f"the graded answers are of several models: {', '.join(models)}",
            fix="grade answers of one model: state values of two are on two scales",
        )
    fit = fit_threshold(
        [-one.value for one in graded],
        [one.right for one in graded],
        risk=risk,
        confidence=confidence,
    )
    # A conclusion stands strictly below sigma, and the last value that passed is to stand.
    sigma = nextafter(-fit.threshold, inf)
    values = GuaranteedSigma(
        sigma, metric, models[0], risk, confidence, len(graded), today.isoformat(), questions
    )
    return values, fit

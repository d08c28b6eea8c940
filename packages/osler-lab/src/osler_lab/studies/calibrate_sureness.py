"""Fits the least sureness of an answer, or sigma, to graded answers: with a bound on wrong ones.

The graded answers are lines of `osler ask --json`, each with a `right` of true or false beside it.
`osler_lab.evaluate.guarantee` has the method.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from math import inf, nextafter
from pathlib import Path
from typing import Any, TypeVar

from osler.errors import BadConfig, BadQuestion, read_text_file
from osler.methods.tcrag.monitor import Metric
from osler.retrieve.experts.cards import open_expert
from osler.retrieve.experts.judge import JUDGE
from osler.runs.feedback import FeedbackStore
from osler.runs.files import EVENTS, read_run_events
from osler.settings import Settings
from osler.trace import Answered, Started
from osler.types import Sureness
from osler_lab.evaluate.guarantee import (
    GuaranteedThreshold,
    draw_one_per_question,
    fit_threshold,
)

T = TypeVar("T")

_GRADE = 'write "right": true or "right": false into each line of `osler ask --file --json`'


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """An answer that somebody judged."""

    sureness: Sureness
    right: bool


@dataclass(frozen=True, slots=True)
class SurenessFit:
    """The least sureness of an answer, with a bound on the wrong ones."""

    sureness: float
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
        return {
            "sureness": self.sureness,
            "sureness_model": self.model,
            "sureness_basis": bound,
        }


def bound_in_words(risk: float, confidence: float, n: int, questions: str, date: str) -> str:
    return (
        f"at most {risk:.0%} wrong with {confidence:.0%} confidence, by {n} graded answers"
        f" ({questions}), {date}"
    )


def read_graded_lines(path: Path, read_line: Callable[[str, str], tuple[str, T] | None]) -> list[T]:
    """One graded answer to each question of a JSON Lines file.

    `read_line` gives question and answer of a line at a place, `None` for a line to leave out.
    Raises `BadQuestion` naming file, line and fix.
    """
    lines = read_text_file(path, BadQuestion, "name another file").splitlines()
    found = [read_line(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]
    return draw_one_per_question(one for one in found if one is not None)


def read_graded_answers(path: Path) -> list[GradedAnswer]:
    """Answers of a JSON Lines file; those that abstained have nothing to grade, and are left out.

    Raises `BadQuestion` naming file, line and fix.
    """
    return read_graded_lines(path, _read_line)


def read_judged_answers(settings: Settings) -> list[GradedAnswer]:
    """Answers of this home that readers called helpful, wrong or unsafe; the last verdict counts.

    Those that bear no sureness, or of which the run is gone, are left out.
    """
    found: dict[str, tuple[str, GradedAnswer] | None] = {}
    for one in FeedbackStore(settings.home).read_all():  # the newest first
        if one.kind == "run" and one.about not in found:
            recorded = _recorded_sureness(settings.runs.path / one.about / EVENTS)
            right = one.verdict == "helpful"
            found[one.about] = recorded and (recorded[0], GradedAnswer(recorded[1], right))
    return draw_one_per_question(one for one in found.values() if one is not None)


def _recorded_sureness(log: Path) -> tuple[str, Sureness] | None:
    """A run's question and how sure its answer was."""
    events = read_run_events(log) if log.is_file() else []
    end = events[-1] if events else None
    if not isinstance(end, Answered) or not end.solution.answer.statements:
        return None  # what abstained has nothing to grade
    begun = next((event for event in events if isinstance(event, Started)), None)
    if (sureness := end.solution.answer.sureness) is None:
        return None
    return (begun.question.text if begun else "", sureness)


def _read_line(line: str, place: str) -> tuple[str, GradedAnswer] | None:
    try:
        document: dict[str, Any] = json.loads(line)
        if document["grounding"] == "abstained":
            return None
        given, right = document["answer"]["sureness"], document.get("right")
        sureness = None if given is None else Sureness(float(given["probability"]), given["by"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadQuestion(f"{place} is not an answer of `osler ask --json`", fix=_GRADE) from error
    if sureness is None:
        raise BadQuestion(
            f"{place}: the answer bears no sureness", fix="grade English answers with quotes"
        )
    if not isinstance(right, bool):
        raise BadQuestion(f"{place}: the answer is not graded", fix=_GRADE)
    return str(document.get("question", "")), GradedAnswer(sureness, right)


def fit_sureness(
    settings: Settings,
    graded: Sequence[GradedAnswer],
    *,
    risk: float,
    confidence: float,
    questions: str,
    today: date,
) -> tuple[SurenessFit, GuaranteedThreshold]:
    """The least sureness with at most `risk` wrong among the answered, at this confidence.

    Raises `BadConfig` for answers of another expert than the one in use, and as `fit_threshold`.
    """
    model = open_expert(JUDGE, settings.answer.judge_path).card.identity
    if others := sorted({one.sureness.by for one in graded} - {model}):
        raise BadConfig(
            f"the graded answers bear the sureness of {', '.join(others)}, not of {model}",
            fix="ask the questions again with the settings in force, and grade those answers",
        )
    fit = fit_threshold(
        [one.sureness.probability for one in graded],
        [one.right for one in graded],
        risk=risk,
        confidence=confidence,
    )
    # Rounded down, the least confident of the answered would stay so.
    threshold = int(fit.threshold * 10_000) / 10_000
    values = SurenessFit(
        threshold, model, risk, confidence, len(graded), today.isoformat(), questions
    )
    return values, fit


_GRADE_STATE = (
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
    return read_graded_lines(path, _read_state)


def _read_state(line: str, place: str) -> tuple[str, GradedState] | None:
    try:
        document: dict[str, Any] = json.loads(line)
        state, model = document["state"], document["models"]["planner"]
        if state is None or not state["halted"]:
            return None
        value, metric, right = float(state["value"]), str(state["metric"]), document.get("right")
    except (ValueError, KeyError, TypeError) as error:
        raise BadQuestion(f"{place} is not an answer of TC-RAG's", fix=_GRADE_STATE) from error
    if not isinstance(right, bool):
        raise BadQuestion(f"{place}: the answer is not graded", fix=_GRADE_STATE)
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

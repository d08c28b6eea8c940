"""Fits the least sureness of an answer to graded answers, with a bound on wrong ones.

The graded answers are lines of `osler ask --json`, each with a `right` of true or false beside it.
`osler.evaluate.guarantee` has the method.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from osler.app.config import Settings
from osler.app.feedback import FeedbackStore
from osler.app.run_files import EVENTS, read_run_events
from osler.errors import BadConfig, BadQuestion, read_text_file
from osler.evaluate.guarantee import GuaranteedThreshold, fit_threshold
from osler.retrieve.experts.answerable import ANSWERABLE, AnswerableExpert
from osler.retrieve.experts.shelf import open_expert
from osler.trace import Answered
from osler.types import Sureness

_GRADE = 'write "right": true or "right": false into each line of `osler ask --file --json`'


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """An answer that somebody judged."""

    sureness: Sureness
    right: bool


@dataclass(frozen=True, slots=True)
class SurenessFit:
    """The values written to [calibration] for the least sureness of an answer."""

    sureness: float
    sureness_model: str
    sureness_risk: float
    sureness_confidence: float
    sureness_n: int
    sureness_date: str
    sureness_questions: str


def read_graded_answers(path: Path) -> list[GradedAnswer]:
    """Answers of a JSON Lines file; those that abstained have nothing to grade, and are left out.

    Raises `BadQuestion` naming file, line and fix.
    """
    lines = read_text_file(path, BadQuestion, "name another file").splitlines()
    found = [_read_line(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]
    return [one for one in found if one is not None]


def read_judged_answers(settings: Settings) -> list[GradedAnswer]:
    """Answers of this home that readers called helpful, wrong or unsafe; the last verdict counts.

    Those that bear no sureness, or of which the run is gone, are left out.
    """
    found: dict[str, GradedAnswer | None] = {}
    for one in FeedbackStore(settings.home).read_all():  # the newest first
        if one.kind == "run" and one.about not in found:
            sureness = _recorded_sureness(settings.runs.path / one.about / EVENTS)
            right = one.verdict == "helpful"
            found[one.about] = None if sureness is None else GradedAnswer(sureness, right)
    return [one for one in found.values() if one is not None]


def _recorded_sureness(log: Path) -> Sureness | None:
    end = read_run_events(log)[-1] if log.is_file() else None
    if not isinstance(end, Answered) or not end.solution.answer.statements:
        return None  # what abstained has nothing to grade
    return end.solution.answer.sureness


def _read_line(line: str, place: str) -> GradedAnswer | None:
    try:
        document: dict[str, Any] = json.loads(line)
        if document["grounding"] == "abstained":
            return None
        given, right = document["answer"]["sureness"], document.get("right")
        sureness = None if given is None else Sureness(float(given["probability"]), given["by"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadQuestion(f"{place} is no answer of `osler ask --json`", fix=_GRADE) from error
    if sureness is None:
        raise BadQuestion(
            f"{place}: the answer bears no sureness", fix="grade English answers with quotes"
        )
    if not isinstance(right, bool):
        raise BadQuestion(f"{place}: the answer is not graded", fix=_GRADE)
    return GradedAnswer(sureness, right)


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
    model = AnswerableExpert(open_expert(ANSWERABLE, settings.answer.gate_path)).identity
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

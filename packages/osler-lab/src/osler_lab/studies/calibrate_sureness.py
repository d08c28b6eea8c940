"""Fits the least sureness of an answer to graded answers: with a bound on wrong ones.

The graded answers are lines of `osler ask --json`, each with a `right` of true or false beside it.

Learn then Test (Angelopoulos et al. 2021, arXiv:2110.01052): thresholds are tested one after the
other, each by the exact binomial bound of Clopper and Pearson (1934), from the strictest down, and
the last one before the first that fails is taken. Fixed sequence testing needs no correction for
the number of thresholds. The guarantee holds for questions like those it was fitted on, each of
which counts once (`draw_one_per_question`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil, comb, log
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from osler.errors import BadConfig, BadQuestion, read_text_file
from osler.retrieve.experts.cards import open_expert
from osler.retrieve.experts.judge import JUDGE
from osler.runs.feedback import FeedbackStore
from osler.runs.files import EVENTS, read_run_events
from osler.settings import Settings
from osler.trace import Answered, Started
from osler.types import Sureness

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
        return {
            "sureness": self.sureness,
            "sureness_model": self.model,
            "sureness_basis": f"at most {self.risk:.0%} wrong with {self.confidence:.0%}"
            f" confidence, by {self.n} graded answers ({self.questions}), {self.date}",
        }


def read_graded_answers(path: Path) -> list[GradedAnswer]:
    """Answers of a JSON Lines file; those that abstained have nothing to grade, and are left out.

    One answer to each question counts. Raises `BadQuestion` naming file, line and fix.
    """
    lines = read_text_file(path, BadQuestion, "name another file").splitlines()
    found = [_read_line(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]
    return draw_one_per_question(one for one in found if one is not None)


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


_HALVINGS = 60
# Wrong answers that the first threshold must be able to bear: with none, one slip ends the test.
_BEARABLE = 2


@dataclass(frozen=True, slots=True)
class GuaranteedThreshold:
    """A threshold on the confidence, and what held for it where it was fitted."""

    threshold: float
    """Least confidence that is answered."""
    bound: float
    """Upper bound on the share of wrong answers among the answered."""
    answered: int
    wrong: int
    n: int

    @property
    def coverage(self) -> float:
        """Share of the questions that are answered."""
        return self.answered / self.n


def wrong_bound(wrong: int, answered: int, confidence: float) -> float:
    """Clopper and Pearson's one-sided upper bound on a share: exact, by bisection.

    1 where nothing was answered, or all of it wrongly.
    """
    if wrong >= answered:
        return 1.0
    low, high = wrong / answered, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at_most(wrong, answered, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(wrong: int, n: int, share: float) -> float:
    """Probability of at most so many wrong answers, each wrong with probability `share`."""
    return sum(comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(wrong + 1))


def draw_one_per_question(graded: Iterable[tuple[str, T]]) -> list[T]:
    """One answer to each question, drawn by chance, and always the same one.

    The bound counts independent answers, and answers to one question are not. An answer whose
    question is unknown ("") stands for itself.
    """
    answers: dict[str | int, list[T]] = {}
    for number, (question, one) in enumerate(graded):
        answers.setdefault(question or number, []).append(one)
    chance = Random(0)
    return [chance.choice(each) for each in answers.values()]


def answers_needed(risk: float, confidence: float) -> int:
    """Least answers, none of them wrong, that show a risk: 29 for 0.1 at 95 % confidence."""
    return ceil(log(1 - confidence) / log(1 - risk))


def fit_threshold(
    confidences: Sequence[float], rights: Sequence[bool], *, risk: float, confidence: float
) -> GuaranteedThreshold:
    """The least threshold with at most `risk` wrong among the answered, at this confidence.

    `rights` says which answers are right. Raises `BadConfig` for too few answers, for answers
    that are all right or all wrong, and where no threshold passes.
    """
    needed = answers_needed(risk, confidence)
    if len(rights) < needed:
        raise BadConfig(
            f"{len(rights)} graded answers; {needed} are needed for a risk of {risk:g} at"
            f" {confidence:.0%} confidence",
            fix="grade more answers, or allow a greater --risk",
        )
    if len({*rights}) < 2:
        kind = "right" if rights[0] else "wrong"
        raise BadConfig(
            f"all {len(rights)} graded answers are {kind}: nothing tells good confidence from bad",
            fix="grade answers to questions that the knowledge base does not answer as well",
        )
    passed = _test_thresholds(confidences, rights, risk, confidence)
    if passed is None:
        raise BadConfig(
            f"no threshold keeps wrong answers at {risk:.0%} with {confidence:.0%} confidence"
            f" on these {len(rights)}",
            fix="allow a greater --risk, or grade more answers",
        )
    return passed


def _test_thresholds(
    confidences: Sequence[float], rights: Sequence[bool], risk: float, confidence: float
) -> GuaranteedThreshold | None:
    pairs = sorted(zip(confidences, rights, strict=True), key=lambda pair: -pair[0])
    first = _first_size(len(pairs), risk, confidence)
    passed: tuple[float, int, int] | None = None
    wrong = 0
    for answered, (value, right) in enumerate(pairs, 1):
        wrong += not right
        tied = answered < len(pairs) and pairs[answered][0] == value
        if answered < first or tied:
            continue
        if not _is_shown(wrong, answered, risk, confidence):
            break
        passed = value, answered, wrong
    if passed is None:
        return None
    value, answered, wrong = passed
    bound = wrong_bound(wrong, answered, confidence)
    return GuaranteedThreshold(value, bound, answered, wrong, len(pairs))


def _is_shown(wrong: int, answered: int, risk: float, confidence: float) -> bool:
    """Whether `wrong_bound` is at most the risk, without its bisection."""
    return _at_most(wrong, answered, risk) <= 1 - confidence


def _first_size(n: int, risk: float, confidence: float) -> int:
    """Answers above the strictest threshold. It follows from the numbers alone, never from the
    grades: else the sequence would not be fixed."""
    size = answers_needed(risk, confidence)
    while size < n and not _is_shown(_BEARABLE, size, risk, confidence):
        size += 1
    return size

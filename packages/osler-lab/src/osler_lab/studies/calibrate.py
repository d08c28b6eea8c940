"""Fits TC-RAG's sigma and KAG-Thinker's tau to a model: their scales are the model's own.

Sigma: for each calibration question, what the strategy finds and would conclude from it at once,
valued as in a run. Sigma is a quantile of those values: with 0.9, nine in ten of such conclusions
may stand. No answer is compared with a gold one: the quantile says how many conclusions stand, not
how many of these are right. Tau (KAG-Thinker §3.2): the model answers labelled questions as the
boundary would let it, and tau is the lowest value at which the wanted share of the answers that
reach it is right. Either is written into the settings file with what it was fitted to, and is used
only there (`osler.build.tc_rag`, `osler.build.thinking`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from math import ceil
from pathlib import Path

import numpy as np

from osler.build import thinking
from osler.build.live import live_parts
from osler.build.strategy_build import StrategyBuild
from osler.build.tc_rag import build_machine
from osler.errors import BadConfig, BadQuestion
from osler.kb.base import Progress
from osler.methods.kag.boundary import GenerateThenAssess
from osler.methods.tcrag.stack import Metric
from osler.questions import LabeledQuestion, parse_labeled, read_labeled
from osler.retrieve import content_terms, look_up
from osler.settings import KagThinkerSettings, LoadedSettings, Settings, TcRagSettings
from osler.settings.show import write_keys
from osler.trace import Run
from osler.types import Language, Question
from osler_lab.studies.calibrate_sureness import SurenessFit

PACKAGED = "packaged calibration questions"
# Settings of [strategy] that go before a calibration.
_HAND_SET = ("sigma", "tau")
# Conclusions below which a quantile says nothing.
_LEAST = 5


@dataclass(frozen=True, slots=True)
class QuestionValue:
    """A question and the state value of its first conclusion."""

    question: Question
    value: float | None
    """`None` where the evidence did not answer it."""


@dataclass(frozen=True, slots=True)
class StateValues:
    model: str
    """Identity of the planner, whose state value it is."""
    metric: Metric
    values: tuple[QuestionValue, ...]

    def known_values(self) -> list[float]:
        """The values there are."""
        return [valued.value for valued in self.values if valued.value is not None]


@dataclass(frozen=True, slots=True)
class SigmaFit:
    """A quantile for TC-RAG's sigma; no gold answer is compared: nothing bounds the wrong ones."""

    sigma: float
    metric: Metric
    model: str
    quantile: float
    n: int
    date: str
    questions: str

    @property
    def settings(self) -> dict[str, object]:
        """Keys of [calibration], and their values."""
        of = f"quantile {self.quantile:g} of {self.n} questions ({self.questions})"
        return {
            "sigma": self.sigma,
            "metric": self.metric,
            "model": self.model,
            "basis": f"calibrated: {of}, {self.date}",
        }


@dataclass(frozen=True, slots=True)
class TauFit:
    """The boundary of KAG-Thinker."""

    tau: float
    model: str
    share: float
    n: int
    date: str
    questions: str

    @property
    def settings(self) -> dict[str, object]:
        """Keys of [calibration], and their values."""
        of = f"{self.share:.0%} right of {self.n} answers ({self.questions})"
        return {
            "tau": self.tau,
            "tau_model": self.model,
            "tau_basis": f"calibrated: {of}, {self.date}",
        }


def packaged_questions() -> list[Question]:
    """The 24 calibration questions of the sample texts; no benchmark reports on them."""
    return [graded.question for graded in packaged_graded()]


def packaged_graded() -> list[GoldAnswer]:
    """The same with their answers."""
    folder = files("osler.sample")
    names = ("calibration_en.jsonl", "calibration_zh.jsonl")
    texts = ((folder.joinpath(name).read_text(encoding="utf-8"), name) for name in names)
    return [_gold_answer(one) for text, name in texts for one in parse_labeled(text, name)]


def read_questions(path: Path) -> list[Question]:
    """Questions of a file: JSON Lines with `question` and, if it has any, `options`.

    Raises `BadQuestion` naming file, line and fix.
    """
    return [one.question for one in read_labeled(path)]


def read_graded(path: Path) -> list[GoldAnswer]:
    """The same with `answer`, which each line must have: a text, or the letter of an option."""
    labeled = read_labeled(path)
    for one in labeled:
        if not one.answer:
            raise BadQuestion(f"{one.place}: no answer", fix='write "answer": "…" in each line')
    return [_gold_answer(one) for one in labeled]


def _gold_answer(one: LabeledQuestion) -> GoldAnswer:
    """A letter as the text of its option."""
    question, answer = one.question, one.answer
    return GoldAnswer(
        question, question.option_text(answer) if answer in question.letters else answer
    )


async def measure_state_values(
    settings: Settings, questions: Sequence[Question], *, progress: Progress | None = None
) -> StateValues:
    """The value of each question. Raises `BadConfig` unless the strategy is a monitored TC-RAG."""
    chosen, metric = _require_monitored(settings)
    parts = await live_parts(settings)
    machine = build_machine(settings, chosen, parts)
    found = parts.retriever("calibrate", parts.sources)
    values = []
    for number, question in enumerate(questions):
        if progress is not None:
            progress("questions", number, len(questions))
        run = Run(seed=settings.sampling.seed)
        hits = (await look_up(found, question.text, run, k=chosen.k)).hits
        value = await machine.first_value(question, hits, run) if hits else None
        values.append(QuestionValue(question, value))
    return StateValues(machine.model.name, metric, tuple(values))


async def measure_tau(
    settings: Settings, graded: Sequence[GoldAnswer], *, progress: Progress | None = None
) -> tuple[str, list[CalibrationAttempt]]:
    """The reader's identity, and its own answer to each question.

    Raises `BadConfig` unless the strategy is a KAG-Thinker whose boundary weighs likelihood.
    """
    chosen = settings.strategy
    if not isinstance(chosen, KagThinkerSettings) or chosen.boundary not in ("both", "likelihood"):
        raise BadConfig(
            "only a KAG-Thinker whose boundary weighs likelihood has a tau to calibrate",
            fix='set strategy.kind = "kag-thinker" and strategy.boundary = "both"',
        )
    parts = await live_parts(settings)
    boundary = thinking.own_knowledge(StrategyBuild.of(settings, parts), chosen)
    points = []
    for number, each in enumerate(graded):
        if progress is not None:
            progress("questions", number, len(graded))
        points.append(await attempt_question(boundary, each, Run(seed=settings.sampling.seed)))
    return boundary.speaker.model.name, points


def fit_tau(
    model: str, points: Sequence[CalibrationAttempt], *, share: float, questions: str, today: date
) -> TauFit:
    """Raises `BadConfig` where the model tried too few questions, or tells no probabilities."""
    told = [point for point in points if point.probability is not None]
    if len(told) < _LEAST:
        raise BadConfig(
            f"{model} answered {len(told)} of {len(points)} questions by itself with"
            f" probabilities; {_LEAST} are needed",
            fix="give questions that it may know, with --questions FILE",
        )
    found = tau_of(points, share)
    return TauFit(found, model, share, len(told), today.isoformat(), questions)


def _require_monitored(settings: Settings) -> tuple[TcRagSettings, Metric]:
    chosen = settings.strategy
    if not isinstance(chosen, TcRagSettings) or chosen.metric == "off":
        raise BadConfig(
            "only a monitored TC-RAG has a sigma to calibrate",
            fix='set strategy.kind = "tc-rag" and strategy.metric = "cppl" or "uct"',
        )
    # A sigma is fitted to one metric by name: the paper's first.
    metric: Metric = "cppl" if chosen.metric == "auto" else chosen.metric
    return chosen.model_copy(update={"metric": metric}), metric


def fit_sigma(measured: StateValues, *, quantile: float, questions: str, today: date) -> SigmaFit:
    """The quantile of the values, to three digits. Raises `BadConfig` for too few values."""
    known = measured.known_values()
    if len(known) < _LEAST:
        raise BadConfig(
            f"{len(known)} of {len(measured.values)} questions were answered from the knowledge"
            f" base; {_LEAST} are needed",
            fix="give questions that it answers, with --questions FILE",
        )
    return SigmaFit(
        float(f"{quantile_of(known, quantile):.3g}"),
        measured.metric,
        measured.model,
        quantile,
        len(known),
        today.isoformat(),
        questions,
    )


def quantile_of(known: Sequence[float], share: float) -> float:
    """By linear interpolation between the two values that stand around it; `known` not empty."""
    return float(np.quantile(known, share))


def refuse_hand_set(loaded: LoadedSettings) -> None:
    """Raises `BadConfig` where strategy.sigma or strategy.tau is set: it would go before any
    calibration."""
    chosen = loaded.settings.strategy
    for name in _HAND_SET:
        if (value := getattr(chosen, name, None)) is not None:
            raise BadConfig(
                f"{loaded.origins[f'strategy.{name}']}: strategy.{name} = {value:g} is set by"
                " hand, and goes before a calibrated one",
                fix="take it out, or let --force take it out of the settings file",
            )


def write_calibration(
    found: SigmaFit | TauFit | SurenessFit, path: Path, *, force: bool = False
) -> None:
    """Puts the fit into the file's [calibration], and keeps every other line as it is.

    `force` comments out a strategy.sigma or strategy.tau. Raises `BadConfig` where the file
    cannot be written.
    """
    write_keys(path, "calibration", found.settings, comment_out=_HAND_SET if force else ())


NEVER = 1.0
"""Tau when no lower value works: only answers of probability 1 are accepted."""
_ROUNDING = 1e-6
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """A question with its correct answer."""

    question: Question
    answer: str


@dataclass(frozen=True, slots=True)
class CalibrationAttempt:
    """The model's own answer to a labelled question."""

    question: Question
    answer: str
    """Empty where it refused."""
    probability: float | None
    """Probability of the least likely token in the box; `None` without a box or
    log-probabilities."""
    right: bool


async def attempt_question(
    boundary: GenerateThenAssess, graded: GoldAnswer, run: Run
) -> CalibrationAttempt:
    """Asks one question as a run would."""
    question = graded.question
    answer, sure = await boundary.attempt_answer(question.text, question.language, run)
    right = bool(answer) and agrees_with_gold(answer, graded.answer, question.language)
    return CalibrationAttempt(question, answer, sure.value if answer and sure else None, right)


def agrees_with_gold(answer: str, gold: str, language: Language) -> bool:
    """Whether an answer has all words of content and all numbers of the correct one.

    A rough judge: inflected forms count as different words, and additional text is ignored.
    """
    if not set(_NUMBER.findall(gold)) <= set(_NUMBER.findall(answer)):
        return False
    if language == "zh":
        return _strip_signs(gold) in _strip_signs(answer)
    wanted = set(content_terms(gold))
    return (
        wanted <= set(content_terms(answer))
        if wanted
        else _strip_signs(gold) == _strip_signs(answer)
    )


def tau_of(points: Sequence[CalibrationAttempt], share: float) -> float:
    """The lowest probability from which on `share` (0 to 1) of the answers are right, rounded up to
    three decimals; `NEVER` when there is none."""
    told = sorted(
        ((point.probability, point.right) for point in points if point.probability is not None),
        reverse=True,
    )
    best, right = NEVER, 0
    for n, (probability, holds) in enumerate(told, 1):
        right += holds
        # Equal probabilities stand or fall together: tau must not split them.
        tied = n < len(told) and told[n][0] == probability
        if not tied and right / n >= share:
            best = probability
    # Rounded up, so that the printed tau accepts no answer that the exact one rejects.
    return min(NEVER, ceil(best * 1000 - _ROUNDING) / 1000)


def _strip_signs(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()

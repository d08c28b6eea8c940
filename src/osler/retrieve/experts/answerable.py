"""`answerable`: does what was found answer this question at all?

Each passage that may be evidence becomes a row of numbers: how much of the question it covers, how
much of its subject, how near its best sentence is, and whether its heading is about something
else. A logistic regression makes a probability of them, in plain arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p
from statistics import fmean

from osler.retrieve.experts.answering import sigmoid
from osler.retrieve.experts.linear import LinearModel, open_linear
from osler.retrieve.experts.shelf import ShelvedExpert
from osler.retrieve.naming import has_no_one_subject, telling_words
from osler.types import Language

ANSWERABLE = "answerable"
FEATURES = (
    "coverage",
    "subject",
    "cosine",
    "cosine above the next",
    "one sentence",
    "other subject",
    "whole subject",
    "letter",
    "letter x cosine",
    "letter x coverage",
    "letter x subject",
    "telling words",
)
"""Names of a passage's numbers, in order."""
_WHOLE = 0.99
_NEXT = 3


@dataclass(frozen=True, slots=True)
class PassageSigns:
    """What is known of a passage for a question; shares lie in [0, 1]."""

    coverage: float
    """Of the question's words, by rarity."""
    subject: float
    """Of the question's subject, by heading and text."""
    heading: float
    """The same by the heading alone; 0 without one."""
    heading_asked: float
    """Share of the heading's own subject that the question has; of a path, by its best part."""
    cosines: tuple[float, ...]
    """Of its sentences to the question, highest first; not empty."""


def measure_passage(question: str, signs: PassageSigns) -> list[float]:
    """The numbers of a passage, as `FEATURES` names them."""
    # A heading that shares nothing with the question may be a file's name, or a number.
    extra = 1 - signs.heading_asked if signs.heading > 0 else 0.0
    letter = float(has_no_one_subject(question))
    best = signs.cosines[0]
    return [
        signs.coverage,
        signs.subject,
        best,
        best - fmean(signs.cosines[:_NEXT]),
        float(len(signs.cosines) == 1),
        # A look-alike: the heading names more than was asked, and part of the subject is missing.
        min(extra, 1 - signs.subject),
        float(signs.subject >= _WHOLE),
        letter,
        letter * best,
        letter * signs.coverage,
        letter * signs.subject,
        log1p(len(telling_words(question))),
    ]


class AnswerableExpert:
    """Probabilities that passages answer, and that any of them does; for English questions."""

    languages: frozenset[Language] = frozenset({"en"})

    def __init__(self, expert: ShelvedExpert) -> None:
        """Raises `ModelError` for an expert of another kind."""
        self.card = expert.card
        self._model: LinearModel = open_linear(expert, FEATURES)
        self.threshold = expert.card.parameters.get("threshold", 0.5)
        """Least probability of a passage that is evidence."""
        # Platt scaling of the best passage's logit, fitted on the dev part.
        self._slope = expert.card.parameters.get("slope", 1.0)
        self._intercept = expert.card.parameters.get("intercept", 0.0)

    @property
    def identity(self) -> str:
        """Name and weights: what a calibration was fitted to."""
        return f"{self.card.name}@{self.card.weights[:12]}"

    def weigh_passages(self, question: str, signs: Sequence[PassageSigns]) -> list[float]:
        """Logits of the passages, in order."""
        import numpy as np

        if not signs:
            return []
        rows = np.array([measure_passage(question, one) for one in signs])
        return [float(logit) for (logit,) in self._model.predict_logits(rows)]

    def judge_evidence(self, logits: Sequence[float]) -> float:
        """Calibrated probability that the evidence answers; 0 without any."""
        return sigmoid(self._slope * max(logits) + self._intercept) if logits else 0.0

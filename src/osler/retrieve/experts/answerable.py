"""`answerable`: does what was found answer this question at all?

Each passage found becomes a row of numbers: what the search thinks of it, what the expert `answers`
thinks of its sentences, how much of the question and of its subject it covers, and whether it has
the question's words side by side. A logistic regression makes a probability of them, in plain
arithmetic. Headings are read with the text, and have no number of their own: those of a textbook
name other things than those of a page about one disease.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, log1p

from osler.retrieve.experts.answering import sigmoid
from osler.retrieve.experts.linear import LinearModel, open_linear
from osler.retrieve.experts.shelf import ShelvedExpert
from osler.retrieve.naming import has_no_one_subject, telling_words
from osler.types import Language

ANSWERABLE = "answerable"
FEATURES = (
    "coverage",
    "subject",
    "whole subject",
    "letter",
    "letter x coverage",
    "letter x subject",
    "telling words",
    "search",
    "letter x search",
    "pairs of words",
    "no pairs asked",
    "answers",
    "judged",
)
"""Names of a passage's numbers, in order."""
_WHOLE = 0.99
_LEAST = 1e-3
"""Probabilities nearer than this to 0 or 1 are not told apart."""


@dataclass(frozen=True, slots=True)
class PassageSigns:
    """What is known of a passage for a question; all lie in [0, 1]."""

    coverage: float
    """Of the question's words, by rarity."""
    subject: float
    """Of the question's subject, by heading and text."""
    search: float
    """Probability by the expert `retrieve`."""
    pairs: float | None = None
    """Share of the question's pairs of words (`word_pairs`); `None` where it has none."""
    answers: float | None = None
    """Highest probability of a sentence by the expert `answers`; `None` where it cannot judge."""


def measure_passage(question: str, signs: PassageSigns) -> list[float]:
    """The numbers of a passage, as `FEATURES` names them."""
    letter = float(has_no_one_subject(question))
    return [
        signs.coverage,
        signs.subject,
        float(signs.subject >= _WHOLE),
        letter,
        letter * signs.coverage,
        letter * signs.subject,
        log1p(len(telling_words(question))),
        _log_odds(signs.search),
        letter * signs.search,
        signs.subject if signs.pairs is None else signs.pairs,
        float(signs.pairs is None),
        0.0 if signs.answers is None else _log_odds(signs.answers),
        float(signs.answers is not None),
    ]


def _log_odds(share: float) -> float:
    bounded = min(max(share, _LEAST), 1 - _LEAST)
    return log(bounded / (1 - bounded))


class AnswerableExpert:
    """Probabilities that passages answer, and that any of them does; for English questions."""

    languages: frozenset[Language] = frozenset({"en"})

    def __init__(self, expert: ShelvedExpert) -> None:
        """Raises `ModelError` for an expert of another kind."""
        self.card = expert.card
        self._model: LinearModel = open_linear(expert, FEATURES)
        parameters = expert.card.parameters
        self.threshold = parameters.get("threshold", 0.5)
        """Least probability of a passage that is evidence."""
        self.letter_threshold = parameters.get("letter_threshold", self.threshold)
        """The same for a question that has no one subject."""
        # Platt scaling of the best passage's logit, fitted on the dev part.
        self._slope = parameters.get("slope", 1.0)
        self._intercept = parameters.get("intercept", 0.0)

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

    def is_evidence(self, question: str, logit: float) -> bool:
        """Whether a passage of this logit may be quoted."""
        letter = has_no_one_subject(question)
        return sigmoid(logit) >= (self.letter_threshold if letter else self.threshold)

    def judge_evidence(self, logits: Sequence[float]) -> float:
        """Calibrated probability that the evidence answers; 0 without any."""
        return sigmoid(self._slope * max(logits) + self._intercept) if logits else 0.0

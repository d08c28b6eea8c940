"""`supports`: does the evidence say yes, no, or nothing definite of a yes/no question?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from osler.retrieve.experts.cues import FEATURES, measure_cues
from osler.retrieve.experts.linear import open_linear
from osler.retrieve.experts.shelf import ShelvedExpert
from osler.types import Language

Verdict = Literal["yes", "no", "maybe"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""In the order of the expert's classes."""


class SupportsExpert:
    """Probabilities of yes, no and maybe from the cues of the evidence; for English."""

    languages: frozenset[Language] = frozenset({"en"})

    def __init__(self, expert: ShelvedExpert) -> None:
        """Raises `ModelError` for an expert of another kind."""
        self.card = expert.card
        self._model = open_linear(expert, FEATURES)

    def judge_evidence(
        self, question: str, sentences: Sequence[str], *, maybe: bool = True
    ) -> dict[Verdict, float]:
        """Probability of each verdict; without `maybe`, of yes and no alone.

        Without sentences it is the share that the verdicts have among such questions.
        """
        (shares,) = self._model.predict_shares(measure_cues(question, sentences)[None])
        found = dict(zip(VERDICTS, map(float, shares), strict=True))
        if not maybe:
            del found["maybe"]
        total = sum(found.values())
        return {verdict: share / total for verdict, share in found.items()}

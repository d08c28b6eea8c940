"""`supports`: does the evidence say yes, no, or nothing definite of a yes/no question?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from osler.errors import ModelError
from osler.retrieve.experts.cards import ShelvedExpert
from osler.retrieve.experts.cues import FEATURES, CuedSentence, measure_cues
from osler.text import split_sentences
from osler.types import Hit, Language, Passage, Relevance

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Matrix: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class LinearModel:
    """Features of shape (n, features) to probabilities of shape (n,)."""

    mean: Matrix
    scale: Matrix
    weights: Matrix
    bias: Matrix

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, NDArray[Any]]) -> LinearModel:
        """Raises `ModelError` for tensors that are no linear model."""
        import numpy as np

        try:
            mean, scale, weights, bias = (
                tensors[name].astype(np.float64) for name in ("mean", "scale", "weights", "bias")
            )
        except KeyError as error:
            raise ModelError(f"the expert's weights lack {error}") from error
        if weights.shape != (1, len(mean)) or mean.shape != scale.shape or bias.shape != (1,):
            raise ModelError("the shapes of the expert's weights do not fit each other")
        return cls(mean, scale, weights, bias)

    def predict_shares(self, rows: Matrix) -> Matrix:
        """Probabilities by the logistic function."""
        import numpy as np

        logits = ((rows - self.mean) / self.scale) @ self.weights[0] + self.bias[0]
        return np.asarray(1 / (1 + np.exp(-np.clip(logits, -60, 60))))


def open_linear(expert: ShelvedExpert, features: Sequence[str]) -> LinearModel:
    """The model of an expert over these features.

    Raises `ModelError` for another family, and for an expert that was made for other features.
    """
    card = expert.card
    if card.family != "linear":
        raise ModelError(f"the expert {card.name!r} is not a linear model")
    if card.features != tuple(features):
        raise ModelError(
            f"the expert {card.name!r} was made for other features than this version computes",
            fix="train it again: research/experts/train_supports.py",
        )
    return LinearModel.of_tensors(expert.read_tensors())


SUPPORTS = "supports"
Verdict = Literal["yes", "no", "maybe"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
MAYBE_SHARE = "share_of_maybe"
"""The parameter on the card: the share of "maybe" among the questions that offer it."""
PASSAGES = 10
"""Passages that are read, as in training."""
_LABEL = re.compile(r"\s*([A-Z][A-Z/& ]{3,60}):\s")
_CONCLUSION = re.compile(r"conclu|interpretation|implication|clinical relevance", re.IGNORECASE)


class SupportsExpert:
    """Probabilities of yes, no and maybe from the cues of the evidence; for English.

    Of "maybe" it knows the share that it has among such questions: no model of it was right more
    often than none.
    """

    languages: frozenset[Language] = frozenset({"en"})

    def __init__(self, expert: ShelvedExpert) -> None:
        """Raises `ModelError` for an expert of another kind."""
        self.card = expert.card
        self._model = open_linear(expert, FEATURES)

    @property
    def identity(self) -> str:
        """Name and weights, as answers tell them."""
        return self.card.identity

    def judge_evidence(
        self, question: str, sentences: Sequence[CuedSentence], *, maybe: bool = True
    ) -> dict[Verdict, float]:
        """Probability of each verdict; without `maybe`, of yes and no alone.

        Without sentences it is about the share that the verdicts have among such questions.
        """
        row = measure_cues(question, sentences, maybe=maybe)
        no = float(self._model.predict_shares(row[None])[0])
        if not maybe:
            return {"yes": 1 - no, "no": no}
        unsure = self.card.parameters.get(MAYBE_SHARE, 0.0)
        return {"yes": (1 - unsure) * (1 - no), "no": (1 - unsure) * no, "maybe": unsure}

    def choose_verdict(self, shares: Mapping[Verdict, float]) -> Verdict:
        """The likeliest verdict."""
        return max(shares, key=lambda one: shares[one])


async def read_evidence(
    question: str, hits: Sequence[Hit], relevance: Relevance
) -> list[CuedSentence]:
    """The sentences of the first hits, with what the expert must know of each."""
    hits = hits[:PASSAGES]
    read = [(hit.passage, *one) for hit in hits for one in _labelled_sentences(hit.passage)]
    near = await relevance.relevance(question, [text for _, text, _ in read]) if read else ()
    return [
        CuedSentence(text, value, _document(passage) == _document(hits[0].passage), concludes)
        for (passage, text, concludes), value in zip(read, near, strict=True)
    ]


def _labelled_sentences(passage: Passage) -> list[tuple[str, bool]]:
    """Sentences, and whether each stands under a label "CONCLUSIONS:" or such a heading."""
    concludes = bool(_CONCLUSION.search(passage.locator.section))
    found = []
    for start, end in split_sentences(passage.text):
        text = passage.text[start:end]
        if label := _LABEL.match(text):
            concludes = bool(_CONCLUSION.search(label[1]))
        found.append((text, concludes))
    return found


def _document(passage: Passage) -> str:
    return passage.locator.code or passage.id.rpartition("#")[0] or passage.id

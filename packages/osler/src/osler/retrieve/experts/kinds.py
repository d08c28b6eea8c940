"""`kinds`: what a sentence of a medical text tells: a treatment, symptoms, causes, and so on.

A linear model over the packaged encoder's vector of the sentence alone, without its heading. It
learnt from MedQuAD, whose answers stand under questions of a stated type.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from osler.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from osler.kb.encoders.base import Encoder
    from osler.retrieve.experts.cards import ShelvedExpert

KINDS = "kinds"
"""Name of the expert, also on tapes."""
Kind = Literal["treatment", "symptoms", "diagnosis", "causes", "prevention"]
"""What a question may ask for; the model knows more (`features` of its card)."""


@dataclass(frozen=True)
class SentenceKinds:
    """Tells how much sentences are of a kind, as a `Relevance` whose query is the kind's name."""

    encoder: Encoder
    names: tuple[str, ...]
    weights: NDArray[Any]
    """Of shape (kinds, numbers of a vector)."""
    bias: NDArray[Any]

    @classmethod
    def of_expert(cls, expert: ShelvedExpert, encoder: Encoder) -> SentenceKinds:
        """Raises `ModelError` for weights that do not fit the card."""
        tensors, names = expert.read_tensors(), expert.card.features
        weights, bias = tensors.get("weights"), tensors.get("bias")
        if weights is None or bias is None or not len(weights) == len(names) == len(bias):
            raise ModelError(
                f"the weights of the expert {expert.card.name!r} do not fit its card",
                fix="train it again: research/experts/train_kinds.py",
            )
        return cls(encoder, names, weights.astype("float32"), bias.astype("float32"))

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Of each sentence the probability that it is of the kind `query`."""
        return await asyncio.to_thread(self._weigh, query, list(texts)) if texts else ()

    def _weigh(self, kind: str, sentences: list[str]) -> tuple[float, ...]:
        import numpy as np

        logits = self.encoder.encode(sentences, kind="passage") @ self.weights.T + self.bias
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return tuple(map(float, shares[:, self.names.index(kind)]))

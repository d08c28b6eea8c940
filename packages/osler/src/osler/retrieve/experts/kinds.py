"""`kinds`: what a sentence of a medical text tells: a treatment, symptoms, causes, and so on.

A linear model over the packaged encoder's vector of the sentence alone, without its heading. It
learnt from MedQuAD, whose answers stand under questions of a stated type. Chinese sentences have a
model of their own, over the multilingual encoder's vectors of the same English sentences.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from osler.errors import ModelError
from osler.text import language_of
from osler.types import Language

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from osler.kb.encoders.base import Encoder
    from osler.retrieve.experts.cards import ShelvedExpert

KINDS = "kinds"
"""Name of the expert, also on tapes."""
Kind = Literal["treatment", "symptoms", "diagnosis", "causes", "prevention"]
"""What a question may ask for; the model knows more (`features` of its card)."""


@dataclass(frozen=True, slots=True)
class KindModel:
    """The linear model of one language, over the vectors of its encoder."""

    encoder: Encoder
    weights: NDArray[Any]
    """Of shape (kinds, numbers of a vector)."""
    bias: NDArray[Any]

    @classmethod
    def of_expert(cls, expert: ShelvedExpert, encoder: Encoder, ending: str = "") -> KindModel:
        """The model of the tensors whose names end so. Raises `ModelError` for weights that do not
        fit the card."""
        tensors, kinds = expert.read_tensors(), len(expert.card.features)
        weights, bias = (tensors.get(f"{name}{ending}") for name in ("weights", "bias"))
        if weights is None or bias is None or not len(weights) == kinds == len(bias):
            raise unfit_error(expert)
        return cls(encoder, weights.astype("float32"), bias.astype("float32"))

    def share_kinds(self, vectors: NDArray[Any]) -> NDArray[Any]:
        """The probability of each kind, of one vector or of each row."""
        import numpy as np

        logits = vectors @ self.weights.T + self.bias
        shares: NDArray[Any] = np.exp(logits - logits.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return shares


def unfit_error(expert: ShelvedExpert) -> ModelError:
    name = expert.card.name
    return ModelError(
        f"the weights of the expert {name!r} do not fit its card",
        fix=f"train it again: research/experts/train_{name.replace('-', '_')}.py",
    )


@dataclass(frozen=True)
class SentenceKinds:
    """Tells how much sentences are of a kind, as a `Relevance` whose query is the kind's name."""

    names: tuple[str, ...]
    models: Mapping[Language, KindModel]

    @classmethod
    def of_expert(
        cls, expert: ShelvedExpert, encoders: Mapping[Language, Encoder]
    ) -> SentenceKinds:
        """Raises `ModelError` for weights that do not fit the card."""
        models = {
            language: KindModel.of_expert(expert, encoder, f"_{language}")
            for language, encoder in encoders.items()
        }
        return cls(expert.card.features, models)

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Of each sentence the probability that it is of the kind `query`; 0 where their language
        has no model. All are of the language of the first."""
        model = self.models.get(language_of(texts[0])) if texts else None
        if model is None:
            return (0.0,) * len(texts)
        return await asyncio.to_thread(self._weigh, model, query, list(texts))

    def _weigh(self, model: KindModel, kind: str, sentences: list[str]) -> tuple[float, ...]:
        shares = model.share_kinds(model.encoder.encode(sentences, kind="passage"))
        return tuple(map(float, shares[:, self.names.index(kind)]))

"""A linear expert: a logistic regression over standardised features, in plain numpy.

`weights.safetensors` holds `mean` and `scale` of the features, `weights` (1, features) and `bias`
(1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError
from osler.retrieve.experts.shelf import ShelvedExpert

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
        raise ModelError(f"the expert {card.name!r} is no linear model")
    if card.features != tuple(features):
        raise ModelError(
            f"the expert {card.name!r} was made for other features than this version computes",
            fix="train it anew (docs/guide/experts.md)",
        )
    return LinearModel.of_tensors(expert.read_tensors())

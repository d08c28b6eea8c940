"""A linear expert: standardised features, one row of weights a class, a softmax; in plain numpy.

`weights.safetensors` holds `mean` and `scale` of the features, `weights` (classes, features) and
`bias` (classes). With one class it is a logistic regression.
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
    """Features of shape (n, features) to probabilities of shape (n, classes)."""

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
        if weights.shape != (len(bias), len(mean)) or mean.shape != scale.shape:
            raise ModelError("the shapes of the expert's weights do not fit each other")
        return cls(mean, scale, weights, bias)

    def predict_logits(self, rows: Matrix) -> Matrix:
        """Logits of shape (n, classes)."""
        return ((rows - self.mean) / self.scale) @ self.weights.T + self.bias

    def predict_shares(self, rows: Matrix) -> Matrix:
        """Probabilities; of one class by the logistic function, of several by softmax."""
        import numpy as np

        logits = self.predict_logits(rows)
        if logits.shape[1] == 1:
            return np.asarray(1 / (1 + np.exp(-np.clip(logits, -60, 60))))
        raised = np.exp(logits - logits.max(1, keepdims=True))
        return np.asarray(raised / raised.sum(1, keepdims=True))


def open_linear(expert: ShelvedExpert, features: Sequence[str], *, part: str = "") -> LinearModel:
    """The model of an expert over these features; `part` names one of several.

    Raises `ModelError` for another family, and for an expert that was made for other features.
    """
    card = expert.card
    if card.family != "linear":
        raise ModelError(f"the expert {card.name!r} is no linear model")
    if card.features != tuple(features):
        raise ModelError(
            f"the expert {card.name!r} was made for other features than this version computes",
            fix=f"train it anew: osler experts train {card.name}",
        )
    tensors, prefix = expert.read_tensors(), f"{part}." if part else ""
    own = {
        name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)
    }
    return LinearModel.of_tensors(own)

"""Fitting of linear experts: a logistic regression with a ridge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from osler.retrieve.experts.supporting import LinearModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from osler.retrieve.experts.supporting import Matrix

_ROUNDS = 50


def fit_linear(
    rows: Matrix, classes: Sequence[int], *, ridge: float, weights: Matrix
) -> LinearModel:
    """Fits a logistic regression of class 1 against 0 by Newton's method.

    `rows` has the shape (n, features). `ridge` is the penalty on squared weights of standardised
    features, in the unit of one row; `weights` are those of the rows.
    """
    mean, spread = rows.mean(0), rows.std(0)
    scale = np.where(spread > 1e-9, spread, 1.0)
    design = np.hstack([(rows - mean) / scale, np.ones((len(rows), 1))])
    penalty = np.full(design.shape[1], ridge)
    # Without a row of one class the bias would be driven to infinity.
    penalty[-1] = 0.01
    theta = np.zeros(design.shape[1])
    for _ in range(_ROUNDS):
        found = 1 / (1 + np.exp(-np.clip(design @ theta, -60, 60)))
        gradient = design.T @ (weights * (found - classes)) + penalty * theta
        curve = weights * found * (1 - found)
        step = np.linalg.solve(design.T @ (design * curve[:, None]) + np.diag(penalty), gradient)
        theta -= step
        if np.abs(step).max() < 1e-8:
            break
    return LinearModel(mean, scale, theta[None, :-1], theta[-1:])


def tensors_of(model: LinearModel) -> dict[str, NDArray[np.float32]]:
    """The tensors of the weights file, float32."""
    named = {
        "mean": model.mean,
        "scale": model.scale,
        "weights": model.weights,
        "bias": model.bias,
    }
    return {name: np.ascontiguousarray(one, np.float32) for name, one in named.items()}

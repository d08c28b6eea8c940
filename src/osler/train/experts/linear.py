"""Fitting of linear experts: a logistic regression with a ridge; and files of weights."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from osler.llm.core.cache import write_whole
from osler.retrieve.experts.cards import MeasuredFigure, weights_name
from osler.retrieve.experts.linear import LinearModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from osler.retrieve.experts.linear import Matrix

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


def write_shards(
    tensors: Mapping[str, NDArray[Any]], folder: Path, most: int = 1_000_000
) -> list[str]:
    """Writes tensors into weights files of at most `most` bytes; gives their SHA-256 in order.

    A tensor that is larger stands in a file of its own.
    """
    shards: list[dict[str, NDArray[Any]]] = [{}]
    for name, one in sorted(tensors.items()):
        # What the header says of a tensor is some 120 bytes.
        if shards[-1] and sum(t.nbytes + 120 for t in (*shards[-1].values(), one)) > most:
            shards.append({})
        shards[-1][name] = one
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for number, shard in enumerate(shards):
        write_safetensors(shard, folder / weights_name(number))
        found.append(hashlib.sha256((folder / weights_name(number)).read_bytes()).hexdigest())
    return found


def write_safetensors(tensors: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Writes tensors of float16, float32 and uint8, whole or not at all; the same, same bytes."""
    import json
    import struct

    kinds = {np.dtype(np.float32): "F32", np.dtype(np.float16): "F16", np.dtype(np.uint8): "U8"}
    header: dict[str, object] = {}
    at = 0
    for name in sorted(tensors):
        one = tensors[name]
        header[name] = {
            "dtype": kinds[one.dtype],
            "shape": list(one.shape),
            "data_offsets": [at, at + one.nbytes],
        }
        at += one.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with write_whole(path) as draft, draft.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name in sorted(tensors):
            out.write(np.ascontiguousarray(tensors[name]).tobytes())


def figure_of(estimate: object) -> MeasuredFigure:
    """An estimate for a card, to four digits."""
    value, low, high = (round(float(getattr(estimate, key)), 4) for key in ("value", "low", "high"))
    return MeasuredFigure(value=value, low=low, high=high)

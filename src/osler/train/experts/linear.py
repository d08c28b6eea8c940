"""Fitting of linear experts: standardised features, softmax or logistic loss, a ridge."""

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
    rows: Matrix,
    classes: Sequence[int],
    *,
    count: int,
    ridge: float,
    weights: Matrix | None = None,
) -> LinearModel:
    """Fits a softmax regression of `count` classes by Newton's method.

    `rows` has the shape (n, features), `classes` are from 0; `count` = 1 fits a logistic
    regression of class 1 against 0. `ridge` is the penalty on squared weights of standardised
    features, in the unit of one row; `weights` are those of the rows.
    """
    mean, spread = rows.mean(0), rows.std(0)
    scale = np.where(spread > 1e-9, spread, 1.0)
    design = np.hstack([(rows - mean) / scale, np.ones((len(rows), 1))])
    # A logistic regression is a softmax whose other class has no weights.
    free = max(1, count - 1)
    gold = np.array(classes)[:, None] == (np.arange(free) if count > 1 else np.array([1]))
    share = np.ones(len(rows)) if weights is None else weights
    penalty = np.full(design.shape[1], ridge)
    # A class without a row would drive its bias to minus infinity.
    penalty[-1] = 0.01
    theta = np.zeros((free, design.shape[1]))
    for _ in range(_ROUNDS):
        step = _newton_step(theta, design, gold.astype(float), share, penalty)
        theta -= step
        if np.abs(step).max() < 1e-8:
            break
    if count > 1:
        # The last class had none; centred, no class is a special one.
        theta = np.vstack([theta, np.zeros(design.shape[1])])
        theta -= theta.mean(0)
    return LinearModel(mean, scale, theta[:, :-1], theta[:, -1])


def _newton_step(
    theta: Matrix, design: Matrix, gold: Matrix, share: Matrix, penalty: Matrix
) -> Matrix:
    logits = np.hstack([design @ theta.T, np.zeros((len(design), 1))])
    raised = np.exp(logits - logits.max(1, keepdims=True))
    found = (raised / raised.sum(1, keepdims=True))[:, :-1]
    gradient = (share[:, None] * (found - gold)).T @ design + penalty * theta
    free, width = theta.shape
    hessian = np.zeros((free, width, free, width))
    for a in range(free):
        for b in range(free):
            curve = share * found[:, a] * ((a == b) - found[:, b])
            hessian[a, :, b, :] = design.T @ (design * curve[:, None])
    flat = hessian.reshape(free * width, free * width) + np.diag(np.tile(penalty, free))
    return np.linalg.solve(flat, gradient.ravel()).reshape(theta.shape)


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

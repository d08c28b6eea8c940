"""The linear models of `answers`: its pair logit and its cues put together, on the dev part.

The order is learnt first: which of two texts of one question is right (RankNet's loss, linear).
Platt's scaling then makes probabilities of it. A task weighs as much as any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from osler.errors import ModelError
from osler.retrieve.experts.answer_cues import CUES, FEATURES, join_features, measure_cues
from osler.retrieve.experts.answering import CHEAP, JOINED
from osler.retrieve.experts.linear import LinearModel
from osler.train.experts.linear import fit_linear, tensors_of
from osler.train.experts.pair_evaluation import PairCase, Score, fit_platt

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from osler.retrieve.experts.linear import Matrix

_RIDGE = 1.0


def neutral_tensors() -> dict[str, NDArray[np.float32]]:
    """Models that pass on the logit, and the name, until others are fitted."""
    return _named(_pass_first(len(FEATURES)), _pass_first(len(CUES)))


def _pass_first(width: int) -> LinearModel:
    weights = np.eye(1, width)
    return LinearModel(np.zeros(width), np.ones(width), weights, np.zeros(1))


def _named(joined: LinearModel, cheap: LinearModel) -> dict[str, NDArray[np.float32]]:
    return {
        prefix + name: one
        for prefix, model in ((JOINED, joined), (CHEAP, cheap))
        for name, one in tensors_of(model).items()
    }


def fit_tensors(cases: Sequence[PairCase], score: Score) -> dict[str, NDArray[np.float32]]:
    """Fits both models; `score` gives the pair model's logits of texts as they stand."""
    cues = [measure_cues(case.question, [one.titled for one in case.texts]) for case in cases]
    rows = [
        join_features(
            score(case.question, case.texts),
            score(case.question, [one.passage for one in case.texts]),
            own,
        )
        for case, own in zip(cases, cues, strict=True)
    ]
    return _named(fit_order(cases, rows), fit_order(cases, cues))


def fit_order(cases: Sequence[PairCase], rows: Sequence[Matrix]) -> LinearModel:
    """Learns the order of texts of which the first is right, then probabilities.

    Raises `ModelError` for an order that is none.
    """
    counts = Counter(case.task for case in cases)
    apart, weights = [], []
    for case, one in zip(cases, rows, strict=True):
        if len(one) > 1:
            apart.append(one[:1] - one[1:])
            weights.append(np.full(len(one) - 1, 1 / (len(one) - 1) / counts[case.task]))
    better, share = np.vstack(apart), np.concatenate(weights) * len(apart) / len(counts)
    classes = [1] * len(better) + [0] * len(better)
    both = np.concatenate([share, share]) / 2
    model = fit_linear(np.vstack([better, -better]), classes, count=1, ridge=_RIDGE, weights=both)
    logits = np.vstack([model.predict_logits(one) for one in rows])[:, 0]
    right = [float(at == 0) for one in rows for at in range(len(one))]
    slope, intercept = fit_platt(list(zip(map(float, logits), right, strict=True)))
    if slope <= 0:
        raise ModelError("the order that was learnt is none on the dev part", fix="use more data")
    weights_of = model.weights * slope
    return LinearModel(model.mean, model.scale, weights_of, model.bias * slope + intercept)

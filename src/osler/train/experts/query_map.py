"""Fitting of a map of query vectors: each question against all passages at once, in numpy.

The loss of a question is the mean over its gold documents of log(1 + Σ exp(s) / Σ_gold exp(s)),
the sums being over the passages that are not gold and those of the document, with s the cosine
divided by the temperature. Passages are not encoded anew, so a step costs two matrix products and
every passage is a negative of every question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from osler.retrieve.experts.searching import QueryMap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from osler.jobs.runner import Progress
    from osler.kb.encoders.base import Vectors

_BETAS, _TINY = (0.9, 0.999), 1e-8


@dataclass(frozen=True, slots=True)
class MapRecipe:
    """What the weights depend on, beside the data."""

    rank: int = 64
    steps: int = 300
    rows: int = 64
    """Questions of a step."""
    rate: float = 2e-3
    """Adam's rate; it rises over the first 20 steps and falls to 0."""
    decay: float = 0.01
    temperature: float = 0.05
    seed: int = 0


@dataclass(frozen=True, slots=True)
class MapQuestion:
    """A question's row among the queries, and the rows of each gold document's passages."""

    row: int
    gold: tuple[tuple[int, ...], ...]


def fit_query_map(
    queries: Vectors,
    passages: Vectors,
    questions: Mapping[str, Sequence[MapQuestion]],
    shares: Mapping[str, float],
    recipe: MapRecipe,
    progress: Progress | None = None,
) -> QueryMap:
    """Fits a map to the questions of several sets, drawn by the sets' `shares`.

    `queries` and `passages` are unit vectors, a row each.
    """
    chance = np.random.default_rng(recipe.seed)
    size = queries.shape[1]
    bound = size**-0.5
    weights = {
        "down": chance.uniform(-bound, bound, (recipe.rank, size)).astype(np.float32),
        "up": np.zeros((size, recipe.rank), np.float32),
        "shift": np.zeros(size, np.float32),
    }
    moments = {name: (np.zeros_like(w), np.zeros_like(w)) for name, w in weights.items()}
    sets = [name for name in shares if questions.get(name)]
    drawn_by = np.array([shares[name] for name in sets]) / sum(shares[name] for name in sets)
    for step in range(1, recipe.steps + 1):
        chosen = [
            questions[name][int(chance.integers(len(questions[name])))]
            for name in (sets[at] for at in chance.choice(len(sets), recipe.rows, p=drawn_by))
        ]
        _, gradients = loss_and_gradients(queries, passages, chosen, weights, recipe.temperature)
        rate = recipe.rate * min(step / 20, (recipe.steps - step + 1) / max(1, recipe.steps - 20))
        for name, gradient in gradients.items():
            _adam_step(weights[name], moments[name], gradient, rate, recipe.decay, step)
        if progress is not None:
            progress("training", step, recipe.steps)
    return QueryMap(**weights)


def loss_and_gradients(
    queries: NDArray[Any],
    passages: NDArray[Any],
    chosen: Sequence[MapQuestion],
    weights: Mapping[str, NDArray[Any]],
    temperature: float,
) -> tuple[float, dict[str, NDArray[Any]]]:
    """The mean loss of these questions, and its gradient by each of `weights`."""
    x = queries[[one.row for one in chosen]]
    low = x @ weights["down"].T
    turned = x + low @ weights["up"].T + weights["shift"]
    norms = np.linalg.norm(turned, axis=1, keepdims=True)
    unit = turned / norms
    scores = unit @ passages.T / temperature
    loss = 0.0
    for row, one in enumerate(chosen):
        loss += _score_gradient(scores[row], one.gold) / len(chosen)
    by_unit = scores @ passages / (temperature * len(chosen))
    by_turned = (by_unit - unit * (by_unit * unit).sum(1, keepdims=True)) / norms
    return loss, {
        "down": (by_turned @ weights["up"]).T @ x,
        "up": by_turned.T @ low,
        "shift": by_turned.sum(0),
    }


def _score_gradient(scores: NDArray[np.float32], gold: Sequence[tuple[int, ...]]) -> float:
    """The loss of one question; its gradient by the scores takes their place."""
    of_gold = [scores[list(rows)] for rows in gold]
    scores[[row for rows in gold for row in rows]] = -np.inf
    top = scores.max()
    np.exp(scores - top, out=scores)
    total = float(scores.sum())
    others = float(top + np.log(total))
    scores /= total
    loss, pull = 0.0, 0.0
    found = []
    for rows, own in zip(gold, of_gold, strict=True):
        best = own.max()
        raised = np.exp(own - best)
        lead = others - float(best + np.log(raised.sum()))
        loss += float(np.logaddexp(0, lead)) / len(gold)
        share = 1 / (1 + np.exp(-lead)) / len(gold)
        pull += share
        found.append((list(rows), -share * raised / raised.sum()))
    scores *= pull
    for places, gradient in found:
        scores[places] += gradient
    return loss


def _adam_step(
    weights: NDArray[np.float32],
    moments: tuple[NDArray[np.float32], NDArray[np.float32]],
    gradient: NDArray[np.float32],
    rate: float,
    decay: float,
    step: int,
) -> None:
    """One step of AdamW (Loshchilov & Hutter 2019), in place."""
    for moment, beta, value in zip(moments, _BETAS, (gradient, gradient**2), strict=True):
        np.add(moment, (1 - beta) * (value - moment), out=moment)
    mean, square = (m / (1 - beta**step) for m, beta in zip(moments, _BETAS, strict=True))
    weights -= rate * (mean / (np.sqrt(square) + _TINY) + decay * weights)

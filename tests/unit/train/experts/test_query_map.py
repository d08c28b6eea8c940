"""The map of queries: gradients against finite differences, and what it learns."""

import numpy as np
import pytest
from numpy.typing import NDArray

from osler.train.experts.query_map import (
    MapQuestion,
    MapRecipe,
    fit_query_map,
    loss_and_gradients,
)

CHANCE = np.random.default_rng(3)


def unit(rows: int, size: int) -> NDArray[np.float32]:
    made = CHANCE.normal(size=(rows, size))
    scaled: NDArray[np.float32] = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(
        np.float32
    )
    return scaled


@pytest.mark.parametrize("name", ["down", "up", "shift"])
def test_gradients_are_those_of_the_loss(name: str) -> None:
    queries, passages = unit(3, 6).astype(np.float64), unit(9, 6).astype(np.float64)
    chosen = [MapQuestion(0, ((1,), (2, 3))), MapQuestion(2, ((8,),))]
    weights = {
        "down": CHANCE.normal(size=(2, 6)),
        "up": CHANCE.normal(size=(6, 2)),
        "shift": CHANCE.normal(size=6),
    }
    _, gradients = loss_and_gradients(queries, passages, chosen, weights, 0.5)
    flat = weights[name].reshape(-1)
    for place in range(0, flat.size, 3):
        kept, losses = flat[place], []
        for change in (1e-5, -1e-5):
            flat[place] = kept + change
            losses.append(loss_and_gradients(queries, passages, chosen, weights, 0.5)[0])
        flat[place] = kept
        slope = (losses[0] - losses[1]) / 2e-5
        assert gradients[name].reshape(-1)[place] == pytest.approx(slope, abs=1e-6)


def test_the_loss_is_worked_by_hand() -> None:
    """One passage is gold, the other not, cosines 1 and 0, temperature 1: log(1 + e^-1)."""
    axes = np.eye(2)
    still = {"down": np.zeros((1, 2)), "up": np.zeros((2, 1)), "shift": np.zeros(2)}
    loss, _ = loss_and_gradients(axes[:1], axes, [MapQuestion(0, ((0,),))], still, 1.0)
    assert loss == pytest.approx(np.log1p(np.exp(-1)))


def test_unseen_questions_are_turned_as_the_seen_ones_were() -> None:
    """Each passage's vector is its question's, read backwards."""
    queries = unit(200, 16)
    passages = queries[:, ::-1]
    seen = [MapQuestion(row, ((row,),)) for row in range(150)]
    recipe = MapRecipe(rank=16, steps=150, rows=32, rate=1e-2)
    turned = fit_query_map(queries, passages[:150], {"a": seen}, {"a": 1.0, "b": 1.0}, recipe)
    again = fit_query_map(queries, passages[:150], {"a": seen}, {"a": 1.0, "b": 1.0}, recipe)
    np.testing.assert_array_equal(turned.up, again.up)

    def firsts(vectors: np.ndarray) -> float:
        return float(np.mean((vectors[150:] @ passages.T).argmax(1) == np.arange(150, 200)))

    assert firsts(turned.turn_queries(queries)) > firsts(queries) + 0.5

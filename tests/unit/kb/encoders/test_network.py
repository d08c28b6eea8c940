"""The small network over an encoder's pieces: by hand, and as it is kept."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from osler.kb.encoders.network import PieceNetwork, read_network


def layer(weights: list[list[float]]) -> tuple[NDArray[Any], NDArray[Any]]:
    return np.array(weights), np.zeros(len(weights[0]))


def test_heads_weigh_the_pieces_and_units_pass_on_what_is_positive() -> None:
    network = PieceNetwork(
        layer([[log(3)], [0]]), layer([[1, -1], [2, 0]]), layer([[1, 0], [9, 9]])
    )
    # Shares 3/4 and 1/4: (3/4, 1/4) is brought, 3/4 + 2/4 passes on, -3/4 does not.
    assert network.judge(np.eye(2)) == pytest.approx((1.25, 0))
    assert network.judge(np.zeros((3, 2))) == pytest.approx((0, 0))


def test_two_heads_bring_what_each_looks_at() -> None:
    sharp = layer([[50, 0], [0, 50]])
    pieces = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    network = PieceNetwork(sharp, layer([[1], [0], [0], [1]]), layer([[1]]))
    assert network.judge(pieces) == pytest.approx((2,))


def test_it_is_read_from_bytes_with_the_scale_of_each_column() -> None:
    kept = {
        f"en_{name}{part}": values
        for name in ("heads", "units", "ends")
        for part, values in (
            ("", np.array([[2, -4]], np.int8)),
            ("_scale", np.array([0.5, 0.25], np.float32)),
            ("_bias", np.array([1.0, 0.0], np.float32)),
        )
    }
    network = read_network(kept, "en")
    for weights, bias in (network.heads, network.units, network.ends):
        assert weights.tolist() == [[1.0, -1.0]]
        assert bias.tolist() == [1.0, 0.0]

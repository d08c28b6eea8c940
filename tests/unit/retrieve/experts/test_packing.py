"""Changes of matrices in three bits a number."""

import numpy as np
import pytest

from osler.retrieve.experts.pair_graph import pack_delta, unpack_deltas

CHANCE = np.random.default_rng(5)


@pytest.mark.parametrize("size", [1e-4, 1e-2, 1.0])
def test_a_change_comes_back_within_a_twentieth_of_its_square(size: float) -> None:
    change = (CHANCE.normal(size=(32, 384)) * size).astype(np.float32)
    found = unpack_deltas(pack_delta("layer.weight", change))["layer.weight"]
    assert ((found - change) ** 2).sum() < 0.05 * (change**2).sum()


def test_each_row_has_a_step_of_its_own() -> None:
    change = np.stack([np.tile([1e-3, -1e-3], 8), np.tile([1.0, -1.0], 8)]).astype(np.float32)
    found = unpack_deltas(pack_delta("w", change))["w"]
    np.testing.assert_allclose(found, change, rtol=0.3)


def test_three_bits_and_a_step_a_row_are_kept() -> None:
    packed = pack_delta("w", np.ones((16, 64), np.float32))
    assert sum(one.nbytes for one in packed.values()) == 16 * 64 * 3 // 8 + 16 * 2


def test_a_vector_is_kept_in_16_bits_and_what_did_not_change_stays() -> None:
    bias = np.array([0.5, -0.25], np.float32)
    packed = pack_delta("b", bias) | pack_delta("w", np.zeros((8, 16), np.float32))
    found = unpack_deltas(packed | {"head.weight": bias})
    assert found.keys() == {"b", "w"}
    np.testing.assert_array_equal(found["b"], bias)
    assert np.abs(found["w"]).max() < 1e-6

"""Intervals against published values and against plain reckoning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler_lab.evaluate.intervals import difference, mean, proportion


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [  # Newcombe, Stat Med 1998;17:857-72, Table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_s_interval_is_the_published_one(hits: int, n: int, low: float, high: float) -> None:
    found = proportion(hits, n)
    assert [found.low, found.high] == pytest.approx([low, high], abs=5e-5)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_its_share_and_stays_within_0_and_1(pair: tuple[int, int]) -> None:
    found = proportion(*pair)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_the_bootstrap_of_a_mean_agrees_with_the_normal_interval() -> None:
    values = [0.0, 1.0] * 200
    found = mean(values)
    assert found.value == 0.5
    assert [found.low, found.high] == pytest.approx([0.451, 0.549], abs=0.01)
    assert mean(values) == found


def test_a_difference_is_taken_pair_by_pair() -> None:
    found = difference([1, 2, 3], [2, 3, 4])
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="pairs"):
        difference([1], [1, 2])


@pytest.mark.parametrize(("hits", "n"), [(1, 0), (3, 2), (-1, 4)])
def test_what_is_no_proportion_is_refused(hits: int, n: int) -> None:
    with pytest.raises(ValueError, match="not a proportion"):
        proportion(hits, n)

"""Laws of Reciprocal Rank Fusion."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.retrieve import rrf

names = st.text("abcdefgh", min_size=1, max_size=3)
rankings = st.lists(st.lists(names, unique=True, max_size=12), max_size=4)
weights = st.floats(0.01, 100)


def order(fused: list[tuple[str, float]]) -> list[str]:
    return [item for item, _ in fused]


@given(rankings)
def test_the_order_of_equal_rankings_does_not_matter(given_: list[list[str]]) -> None:
    expected = rrf(given_)
    for shuffled in permutations(given_):
        assert rrf(shuffled) == expected


@given(rankings, st.floats(0, 100))
def test_an_item_that_every_ranking_puts_before_another_is_never_below_it(
    given_: list[list[str]], k: float
) -> None:
    place = {item: i for i, item in enumerate(order(rrf(given_, k=k)))}
    for better in place:
        for worse in place:
            if better != worse and all(_before(r, better, worse) for r in given_):
                assert place[better] < place[worse]


def _before(ranking: list[str], better: str, worse: str) -> bool:
    if worse not in ranking:
        return better in ranking
    return better in ranking and ranking.index(better) < ranking.index(worse)


@given(st.lists(st.tuples(st.lists(names, unique=True, max_size=12), weights), max_size=4))
def test_doubling_all_weights_doubles_all_scores_and_keeps_the_order(
    weighted: list[tuple[list[str], float]],
) -> None:
    given_, single = [r for r, _ in weighted], [w for _, w in weighted]
    once = rrf(given_, weights=single)
    twice = rrf(given_, weights=[2 * w for w in single])
    assert twice == [(item, 2 * score) for item, score in once]


@given(st.lists(names, unique=True))
def test_a_ranking_alone_keeps_its_order(ranking: list[str]) -> None:
    assert order(rrf([ranking])) == ranking


@given(rankings)
def test_what_comes_out_is_what_went_in_once_each(given_: list[list[str]]) -> None:
    fused = order(rrf(given_))
    assert sorted(fused) == sorted({item for ranking in given_ for item in ranking})


@given(rankings)
def test_an_empty_ranking_changes_nothing(given_: list[list[str]]) -> None:
    assert rrf([*given_, []]) == rrf(given_)


@given(rankings)
def test_scores_fall_and_equal_ones_stand_in_the_items_order(given_: list[list[str]]) -> None:
    fused = rrf(given_)
    keys = [(-score, item) for item, score in fused]
    assert keys == sorted(keys)


def test_the_formula_worked_by_hand() -> None:
    """k = 60: a is 1st and 2nd, b is 2nd and 1st with half weight, c is 3rd once.

    a: 1/61 + 0.5/62; b: 1/62 + 0.5/61; c: 1/63.
    """
    fused = dict(rrf([["a", "b", "c"], ["b", "a"]], weights=[1.0, 0.5], k=60))
    assert fused == pytest.approx({"a": 1 / 61 + 0.5 / 62, "b": 1 / 62 + 0.5 / 61, "c": 1 / 63})
    assert list(fused) == ["a", "b", "c"]


def test_the_better_rank_of_a_double_counts() -> None:
    assert rrf([["a", "b", "a"]]) == rrf([["a", "b"]])


def test_each_ranking_wants_its_weight() -> None:
    with pytest.raises(ValueError, match="zip"):
        rrf([["a"], ["b"]], weights=[1.0])

"""Measures on plans, worked by hand, and the paper's own Table 6."""

from collections.abc import Sequence

import numpy as np
import pytest

from osler.methods.omni.plan import Query, SourcePlan
from osler.sources.catalogue import BOOK, GRAPH, WIKI
from osler.trace import Asked
from osler.types import Usage
from osler_lab.studies.plans import (
    StageCost,
    cost_per_stage,
    diversity_by_count,
    diversity_per_plan,
    queries_per_source,
    query_diversity,
    relative_drop,
    words_per_query,
)
from osler_lab.testing.scripted import HashingEncoder

PLANS = [
    SourcePlan((Query(BOOK, "warfarin dose"), Query(BOOK, "INR"), Query(GRAPH, "drugs", "gout"))),
    SourcePlan((Query(BOOK, "首选药物"),)),
]


class Compass(HashingEncoder):
    """North, east and south; longer than 1 on purpose."""

    def encode(self, texts: Sequence[str], *, kind: str) -> np.ndarray:
        ways = {"north": (0.0, 2.0), "east": (3.0, 0.0), "south": (0.0, -1.0)}
        return np.array([ways[text] for text in texts], dtype=np.float32)


def test_queries_are_counted_by_source_over_all_plans() -> None:
    assert queries_per_source(PLANS, [BOOK, WIKI, GRAPH]) == {BOOK: 1.5, WIKI: 0.0, GRAPH: 0.5}
    with pytest.raises(ValueError, match="no plans"):
        queries_per_source([], [BOOK])


def test_words_are_counted_a_chinese_character_each_and_separators_not() -> None:
    found = words_per_query(PLANS, [BOOK, WIKI, GRAPH])
    assert found == {BOOK: pytest.approx((2 + 1 + 4) / 3), WIKI: None, GRAPH: 2.0}


def test_diversity_is_the_mean_cosine_distance_of_all_pairs() -> None:
    """Equation 5: north-east 1, north-south 2, east-south 1; over three pairs 4/3."""
    assert query_diversity(["north", "east", "south"], Compass()) == pytest.approx(4 / 3)
    assert query_diversity(["north", "north"], Compass()) == pytest.approx(0.0)
    assert query_diversity(["north"], Compass()) is None


def test_diversity_by_count_is_of_the_first_queries_of_each_source() -> None:
    """Of books north-east 1 and south-north 2, and of three queries 4/3; of wiki north-south 2."""
    plans = [
        SourcePlan((Query(BOOK, "north"), Query(BOOK, "east"), Query(BOOK, "south"))),
        SourcePlan((Query(BOOK, "south"), Query(BOOK, "north"), Query(WIKI, "north"))),
        SourcePlan((Query(WIKI, "north"), Query(WIKI, "south"))),
    ]
    found = diversity_by_count(iter(plans), iter([BOOK, WIKI]), Compass())
    assert found[BOOK] == {2: pytest.approx(1.5), 3: pytest.approx(4 / 3)}
    assert found[WIKI] == {2: pytest.approx(2.0)}
    assert diversity_by_count([], [BOOK], Compass()) == {BOOK: {}}


def test_diversity_per_plan_leaves_out_plans_with_one_query() -> None:
    plans = [
        SourcePlan((Query(BOOK, "north"), Query(BOOK, "south"))),
        SourcePlan((Query(BOOK, "north"), Query(BOOK, "east"))),
        SourcePlan((Query(BOOK, "north"),)),
    ]
    assert diversity_per_plan(plans, [BOOK, WIKI], Compass()) == {
        BOOK: pytest.approx(1.5),
        WIKI: None,
    }


@pytest.mark.parametrize(
    ("accuracy", "whole", "percent"),
    [
        (70.38, 76.98, -8.57),
        (72.35, 76.98, -6.01),
        (52.60, 60.20, -12.62),
        (35.40, 60.20, -41.20),
        (51.20, 61.90, -17.29),
        (60.80, 76.98, -21.02),
        (51.00, 61.90, -17.61),
    ],
)
def test_the_drops_of_table_6_come_out_of_its_accuracies(
    accuracy: float, whole: float, percent: float
) -> None:
    drop = relative_drop(accuracy, whole)
    assert drop is not None
    assert round(100 * drop, 2) == pytest.approx(percent, abs=0.011)


def test_a_drop_from_nothing_is_none() -> None:
    assert relative_drop(0.1, 0.0) is None


def test_cost_is_summed_by_role() -> None:
    usage = Usage(calls=1, prompt_tokens=10, completion_tokens=5, seconds=0.5)
    events = [
        Asked("planner", "complete", "omni/plan@1", "x", usage),
        Asked("reader", "complete", "omni/read@1", "x", usage),
        Asked("planner", "complete", "omni/plan@1", "x", usage),
    ]
    assert cost_per_stage(events) == {
        "planner": StageCost(2, 30, 1.0),
        "reader": StageCost(1, 15, 0.5),
    }

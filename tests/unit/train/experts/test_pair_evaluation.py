"""Measures of the pair model: who is first, areas, and probabilities of logits."""

import numpy as np
import pytest

from osler.retrieve.experts.answering import TextPair, sigmoid
from osler.train.experts.pair_evaluation import (
    PairCase,
    ScoredCases,
    area_under_curve,
    compare_scores,
    fit_platt,
)

roc_auc_score = pytest.importorskip("sklearn.metrics").roc_auc_score
CHANCE = np.random.default_rng(0)


def cases(*scores: tuple[float, ...]) -> ScoredCases:
    made = [
        PairCase(str(n), "?", tuple(TextPair(str(i)) for i in range(len(one))), "page, passage")
        for n, one in enumerate(scores)
    ]
    return ScoredCases(made, scores)


def test_ties_share_the_first_place() -> None:
    assert cases((0.9, 0.1), (0.1, 0.9), (0.5, 0.5), (0.0,)).firsts == [1.0, 0.0, 0.5]


def test_the_area_is_scikit_learn_s_also_with_ties() -> None:
    gold = CHANCE.integers(0, 2, 200).astype(float)
    scores = np.round(gold * 0.3 + CHANCE.random(200), 1)
    flat = list(zip(scores.tolist(), gold.tolist(), strict=True))
    assert area_under_curve(flat) == pytest.approx(roc_auc_score(gold, scores))
    with pytest.raises(ValueError, match="right and wrong"):
        area_under_curve([(0.5, 1.0)])


@pytest.mark.parametrize("stretch", [0.1, 1.0, 25.0, 400.0])
def test_platt_s_scaling_gives_back_the_probabilities_whatever_the_scale(stretch: float) -> None:
    """Logits of a ranker may be far too large: Newton's whole steps then ran to 10^11."""
    true = CHANCE.normal(-3, 2, 4_000)
    gold = (CHANCE.random(4_000) < 1 / (1 + np.exp(-true))).astype(float)
    slope, intercept = fit_platt(
        list(zip((true * stretch + 5).tolist(), gold.tolist(), strict=True))
    )
    found = np.array([sigmoid(slope * (one * stretch + 5) + intercept) for one in true])
    wanted = np.array([sigmoid(one) for one in true])
    assert np.abs(found - wanted).mean() < 0.02


def test_logits_that_part_right_from_wrong_keep_a_finite_slope() -> None:
    flat = [(40.0, 1.0)] * 5 + [(-40.0, 0.0)] * 500
    slope, intercept = fit_platt(flat)
    assert 0 < slope < 1
    assert sigmoid(slope * 40 + intercept) < 1


def test_expert_and_rule_are_compared_on_the_same_cases() -> None:
    (figure,) = compare_scores(
        cases((0.9, 0.1), (0.8, 0.1), (0.1, 0.2)), cases((0.1, 0.9), (0.8, 0.1), (0.1, 0.2)), on="x"
    )
    assert figure.expert.value == pytest.approx(2 / 3, abs=1e-4)
    assert figure.rule_figure.value == pytest.approx(1 / 3, abs=1e-4)
    assert figure.gain is not None
    assert figure.gain.value == pytest.approx(1 / 3, abs=1e-4)
    assert (figure.on, figure.n) == ("x: page, passage", 3)

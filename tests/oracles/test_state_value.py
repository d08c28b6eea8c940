"""The state value of TC-RAG §5.2, worked by hand.

Three tokens with probabilities 1/2, 1/4 and 1/8.

Eq. 4: cppl = exp(-(ln 1/2 + ln 1/4 + ln 1/8) / 3) = exp(6 ln 2 / 3) = 2^2 = 4.

Eq. 5: uct = 1/2 ln 2 + 1/4 · 2 ln 2 + 1/8 · 3 ln 2 = (4 + 4 + 3)/8 ln 2 = 11/8 ln 2.
"""

from math import e, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.llm.core.base import TokenScore
from osler.llm.core.spans import least_probability
from osler.methods.tcrag.monitor import (
    cppl,
    entropy_estimate,
    low_probability,
    mean_uct,
    uct,
    unattended,
)

THREE = [log(1 / 2), log(1 / 4), log(1 / 8)]
LOGPROBS = st.lists(st.floats(-20, -1e-6), min_size=1, max_size=50)


def test_three_tokens_have_the_perplexity_of_equation_4() -> None:
    assert cppl(THREE) == pytest.approx(4.0, abs=1e-9)


def test_three_tokens_have_the_uncertainty_of_equation_5() -> None:
    assert uct(THREE) == pytest.approx(11 / 8 * log(2), abs=1e-9)


def test_the_mean_variant_is_equation_5_over_its_three_tokens() -> None:
    assert mean_uct(THREE) == pytest.approx(11 / 24 * log(2), abs=1e-9)
    assert mean_uct(THREE + THREE) == pytest.approx(mean_uct(THREE), abs=1e-9)


def test_equation_5_is_not_monotone() -> None:
    """p ln p is greatest at p = 1/e: a token of p = 1/1000 adds less than one of p = 1/2."""
    assert uct([log(1 / 1000)]) < uct([log(1 / 2)])
    assert uct([-1.0]) == pytest.approx(1 / e, abs=1e-12)
    assert max(uct([log(p / 100)]) for p in range(1, 100)) <= uct([-1.0])


def test_one_of_three_tokens_is_less_likely_than_a_fifth() -> None:
    assert low_probability(THREE, below=0.2) == pytest.approx(1 / 3)
    assert low_probability(THREE) == 0.0
    assert low_probability([log(0.1)]) == 0.0, "at the bound it is not below it"


def test_the_entropy_of_a_known_distribution() -> None:
    """1/2 ln 2 + 2 · 1/4 ln 4 = 3/2 ln 2; from its likeliest token alone 1/2 ln 2 + 1/2 ln 2."""
    whole = (("a", log(1 / 2)), ("b", log(1 / 4)), ("c", log(1 / 4)))
    assert entropy_estimate(whole) == pytest.approx(3 / 2 * log(2))
    assert entropy_estimate(whole[:1]) == pytest.approx(log(2))
    assert entropy_estimate(whole[:1]) <= entropy_estimate(whole)


def test_a_token_that_later_ones_hardly_attend_to_is_counted() -> None:
    """Received by token 0: mean(.9, .6) = .75; by token 1: .1. Their mean is .425, so the shares
    of it are 1.76 and .24: one of two lies below .6."""
    assert unattended(((), (0.9,), (0.6, 0.1))) == pytest.approx(1 / 2)
    assert unattended(((), (0.4,), (0.4, 0.4))) == 0.0
    assert unattended(((),)) == unattended(()) == 0.0


def test_uncertainty_is_a_sum_not_a_mean() -> None:
    assert uct(THREE + THREE) == pytest.approx(2 * uct(THREE), abs=1e-9)


def test_perplexity_does_not_grow_with_length() -> None:
    assert cppl(THREE + THREE) == pytest.approx(cppl(THREE), abs=1e-9)


def test_three_tokens_are_as_sure_as_their_least() -> None:
    """KAG-Thinker §3.2: min(1/2, 1/4, 1/8) = 1/8; of the first two alone 1/4."""
    tokens = [TokenScore("x", i, i + 1, value) for i, value in enumerate(THREE)]
    for span, least in (((0, 3), 1 / 8), ((0, 2), 1 / 4), ((0, 1), 1 / 2)):
        found = least_probability(tokens, span)
        assert found is not None
        assert found.value == pytest.approx(least, abs=1e-9)
        assert found.exact


@given(LOGPROBS)
def test_both_values_are_positive_and_perplexity_is_at_least_one(logprobs: list[float]) -> None:
    assert cppl(logprobs) >= 1
    assert uct(logprobs) > 0


@given(st.floats(0.001, 0.999))
def test_a_uniform_text_has_the_inverse_of_its_probability_as_perplexity(p: float) -> None:
    assert cppl([log(p)] * 7) == pytest.approx(1 / p, rel=1e-9)

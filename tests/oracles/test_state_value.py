"""The state value of TC-RAG §5.2, worked by hand.

Three tokens with probabilities 1/2, 1/4 and 1/8.

Eq. 4: cppl = exp(-(ln 1/2 + ln 1/4 + ln 1/8) / 3) = exp(6 ln 2 / 3) = 2^2 = 4.

Eq. 5: uct = 1/2 ln 2 + 1/4 · 2 ln 2 + 1/8 · 3 ln 2 = (4 + 4 + 3)/8 ln 2 = 11/8 ln 2.
"""

from math import e, isfinite, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.llm.core.base import TokenScore
from osler.llm.core.spans import least_probability
from osler.methods.tcrag.stack import cppl, uct

THREE = [log(1 / 2), log(1 / 4), log(1 / 8)]
LOGPROBS = st.lists(st.floats(-20, -1e-6), min_size=1, max_size=50)


def test_three_tokens_have_the_perplexity_of_equation_4() -> None:
    assert cppl(THREE) == pytest.approx(4.0, abs=1e-9)


def test_three_tokens_have_the_uncertainty_of_equation_5() -> None:
    assert uct(THREE) == pytest.approx(11 / 8 * log(2), abs=1e-9)


def test_equation_5_is_not_monotone() -> None:
    """p ln p is greatest at p = 1/e: a token of p = 1/1000 adds less than one of p = 1/2."""
    assert uct([log(1 / 1000)]) < uct([log(1 / 2)])
    assert uct([-1.0]) == pytest.approx(1 / e, abs=1e-12)
    assert max(uct([log(p / 100)]) for p in range(1, 100)) <= uct([-1.0])


def test_uncertainty_is_a_sum_not_a_mean() -> None:
    assert uct(THREE + THREE) == pytest.approx(2 * uct(THREE), abs=1e-9)


def test_a_token_that_the_server_does_not_tell_leaves_both_values_numbers() -> None:
    assert isfinite(cppl([-9999.0]))
    assert isfinite(uct([float("-inf")]))


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

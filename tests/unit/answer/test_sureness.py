"""How sure an answer is, in a word for each reader's language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.answer.extractive import describe_sureness, sureness_word
from osler.types import Language, Sureness


def sure(probability: float) -> Sureness:
    return Sureness(probability, "judge@1")


@pytest.mark.parametrize(
    ("probability", "word"),
    [
        (1.0, "very likely"),
        (0.8, "very likely"),
        (0.79, "likely"),
        (0.5, "likely"),
        (0.49, "uncertain"),
        (0.25, "uncertain"),
        (0.24, "probably not"),
        (0.0, "probably not"),
    ],
)
def test_a_probability_has_its_word(probability: float, word: str) -> None:
    assert sureness_word(sure(probability)) == word


def test_the_reader_gets_a_sentence_in_his_language_and_no_number() -> None:
    assert describe_sureness(sure(0.9), "en") == "These quotations very likely answer the question."
    assert describe_sureness(sure(0.9), "zh") == "这些原文很可能回答了该问题。"
    assert "uncertain" in describe_sureness(sure(0.3), "en")
    assert "尚不确定" in describe_sureness(sure(0.3), "zh")


@given(st.floats(0, 1), st.floats(0, 1))
def test_what_is_surer_never_sounds_less_sure(one: float, other: float) -> None:
    order = ["probably not", "uncertain", "likely", "very likely"]
    low, high = sorted((one, other))
    assert order.index(sureness_word(sure(low))) <= order.index(sureness_word(sure(high)))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_word_has_a_sentence_of_its_own_in_both_languages(language: Language) -> None:
    assert len({describe_sureness(sure(p), language) for p in (0.9, 0.6, 0.3, 0.1)}) == 4

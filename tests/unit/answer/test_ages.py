"""Bands of age in sentences, and the age that a question names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.answer.values import covers_age, read_ages


@pytest.mark.parametrize(
    ("asked", "ages"),
    [
        ("how much ORS should a 5 year old get", (5.0,)),
        ("my two-year-old, and his sister of 13 months", (2.0,)),
        ("she is aged 60", (60.0,)),
        ("a 72yo man", (72.0,)),
        ("18 months old", (1.5,)),
        ("一岁半娃娃", (1.5,)),
        ("六个月大的宝宝", (0.5,)),
        ("我女儿二十五岁", (25.0,)),
        ("for 5 years, 2 tablets", ()),
        ("吃了两个月药", ()),
    ],
)
def test_ages_are_read_and_durations_are_not(asked: str, ages: tuple[float, ...]) -> None:
    assert read_ages(asked) == ages


@pytest.mark.parametrize(
    ("sentence", "younger", "older"),
    [
        ("Under 2 years: 50 to 100 mL after each loose stool.", "one year old", "2 years old"),
        ("Children under the age of 16 must not have it.", "aged 15", "aged 16"),
        ("Infants up to 12 months old", "6 months old", "aged 2"),
        ("children from 6 months to 5 years", "a 5 year old", "6yo"),
        ("2岁以下50 mL", "一岁", "三岁"),
        ("未满16岁者禁用", "15岁", "16岁"),
    ],
)
def test_a_band_with_an_upper_end_leaves_out_who_is_older(
    sentence: str, younger: str, older: str
) -> None:
    assert covers_age(younger, sentence) is True
    assert covers_age(older, sentence) is False


@pytest.mark.parametrize(
    "sentence",
    [
        "10 years and over: 500 mg",
        "children over 10 years",
        "aged 10 or over",
        "10岁以上",
        "older than 10",
    ],
)
def test_a_band_without_an_upper_end_leaves_out_who_is_younger(sentence: str) -> None:
    assert covers_age("a 12 year old", sentence) is True
    assert covers_age("a 9 year old", sentence) is False
    assert covers_age("九岁的孩子", sentence) is False


@pytest.mark.parametrize(
    "sentence",
    [
        "Treat for 3 to 6 months.",
        "The risk over 5 years is small.",
        "children with fever for more than 5 days",
        "people with 3 to 6 months of symptoms",
        "adults take 3 to 4 tablets",
        "疗程3至6个月",
    ],
)
def test_durations_and_numbers_are_no_bands(sentence: str) -> None:
    assert covers_age("a 4 year old", sentence) is None


@given(st.integers(0, 90), st.integers(1, 9), st.integers(0, 100))
def test_a_band_has_its_ends_and_what_lies_between(least: int, width: int, age: int) -> None:
    sentence = f"From {least} to {least + width} years: 5 mL."
    assert covers_age(f"a {age} year old", sentence) is (least <= age <= least + width)

"""How well texts answer a query: overlap of words by hand, cosines, and the choice by language."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from osler.retrieve.asked import QuestionReader
from osler.retrieve.relevance import (
    CoverageRelevance,
    EncoderRelevance,
    MeaningRelevance,
    OverlapRelevance,
    RelevanceByLanguage,
    WordRelevance,
)
from osler.types import Language
from osler_lab.testing.scripted import HashingEncoder


class EnglishOnly(HashingEncoder):
    languages: frozenset[Language] = frozenset({"en"})


async def test_overlap_is_the_f_measure_worked_by_hand() -> None:
    """Query: iron, dose (2). Text: iron, tablets, daily (3), one shared.

    Precision 1/3, recall 1/2, beta 3: 10 * (1/3 * 1/2) / (9 * 1/3 + 1/2) = 10/21.
    """
    (score,) = await OverlapRelevance().relevance("What is the iron dose?", ["Iron tablets daily"])
    assert score == pytest.approx(10 / 21)


async def test_a_text_with_just_the_words_of_the_query_has_overlap_one() -> None:
    assert await OverlapRelevance().relevance("iron dose", ["The dose of iron."]) == (1.0,)


async def test_of_two_texts_with_the_same_words_the_shorter_wins() -> None:
    short, long = await OverlapRelevance().relevance(
        "iron dose", ["The iron dose.", "The iron dose, and much more on tablets and diet."]
    )
    assert short > long > 0


async def test_more_words_of_the_query_beat_a_shorter_text() -> None:
    both, one = await OverlapRelevance().relevance(
        "iron dose", ["Iron, in a daily dose of one tablet with water.", "Iron."]
    )
    assert both > one


async def test_a_chinese_character_counts_half_of_a_pair() -> None:
    """Query 血糖: 血 and 糖 (half each) and 血糖 (one), 2 in all.

    The pair in its text: 20 / (18 + 2) = 1. One of the two characters alone, with no
    other: 10 * 0.5 / (9 * 2 + 0.5) = 10/37.
    """
    whole, part = await OverlapRelevance().relevance("血糖", ["血糖。", "糖"])
    assert whole == 1.0
    assert part == pytest.approx(10 / 37)


@pytest.mark.parametrize("query", ["", "what is the", "是什么"])
async def test_a_query_without_content_has_no_overlap(query: str) -> None:
    assert await OverlapRelevance().relevance(query, ["Iron.", ""]) == (0.0, 0.0)


async def test_the_cosine_of_equal_texts_is_one() -> None:
    scores = await EncoderRelevance(HashingEncoder()).relevance("iron", ["Iron", "zinc"])
    assert scores == pytest.approx((1.0, 0.0))


@pytest.mark.parametrize("relevance", [OverlapRelevance(), EncoderRelevance(HashingEncoder())])
async def test_no_texts_have_no_scores(relevance: Any) -> None:
    assert await relevance.relevance("iron", []) == ()


async def test_the_querys_language_chooses() -> None:
    chosen = RelevanceByLanguage(EncoderRelevance(EnglishOnly()), OverlapRelevance())
    assert await chosen.relevance("血糖", ["血糖"]) == (1.0,)
    english = await chosen.relevance("iron iron zinc", ["iron"])
    assert english == pytest.approx((2 / 5**0.5,)), "a cosine, which counts a word twice"


async def test_words_are_weighed_as_bm25_worked_by_hand() -> None:
    """ "tablets" and "tablet" are one stem. Three words, the average being 120: length counts
    1.2 * (0.25 + 0.75 * 3 / 120); twice the word is 2 * 2.2 / (2 + that)."""
    scores = await WordRelevance(lambda terms: dict.fromkeys(terms, 2.0)).relevance(
        "Which iron tablet?", ["Tablets, iron tablet", "zinc", ""]
    )
    norm = 1.2 * (0.25 + 0.75 * 3 / 120)
    assert scores == pytest.approx((2 * (2 * 2.2 / (2 + norm) + 2.2 / (1 + norm)), 0, 0))
    assert await WordRelevance(lambda terms: {}).relevance("what is the", ["Iron."]) == (0.0,)


async def test_meaning_is_spread_from_what_is_unrelated_to_equal_texts() -> None:
    near, texts = EncoderRelevance(HashingEncoder()), ["糖尿病", "糖尿病患者", "哮喘"]
    scores = await MeaningRelevance(near, unrelated=0.5).relevance("糖尿病", texts)
    cosines = await near.relevance("糖尿病", texts)
    assert scores[0] == pytest.approx(1.0)
    assert scores == pytest.approx([2 * cosine - 1 for cosine in cosines])


async def test_in_chinese_a_name_is_covered_by_its_other_names() -> None:
    def rare(terms: Sequence[str]) -> dict[str, float]:
        return dict.fromkeys(terms, 1.0)

    asked, texts = "心梗怎么办", ["心肌梗死的处理", "哮喘的处理"]
    plain = await CoverageRelevance(rare).relevance(asked, texts)
    named = await CoverageRelevance(rare, QuestionReader()).relevance(asked, texts)
    assert plain[0] < named[0] == pytest.approx(await _cover_itself(rare, asked))
    assert plain[1] == named[1]


async def _cover_itself(rare: Callable[[Sequence[str]], dict[str, float]], asked: str) -> float:
    """The share that the name alone covers."""
    return (await CoverageRelevance(rare).relevance(asked, ["心梗"]))[0]

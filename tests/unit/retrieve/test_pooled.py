"""One order over what several searches found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.retrieve.pooled import FusedRelevance, PooledOrder, is_one_order
from osler.retrieve.relevance import OverlapRelevance, WordRelevance
from osler.types import Hit, Passage

QUESTION = "adrenaline for anaphylaxis"
ORDER = PooledOrder(
    FusedRelevance(OverlapRelevance(), WordRelevance(lambda terms: dict.fromkeys(terms, 1.0)))
)


def found(source: str, *texts: str) -> list[Hit]:
    """What a search of the source found, ranked from 1."""
    return [
        Hit(Passage(f"{source}:{text}", text, source, ""), 1 / rank, rank, "q", source)
        for rank, text in enumerate(texts, 1)
    ]


def texts_of(hits: Sequence[Hit]) -> list[str]:
    return [hit.passage.text for hit in hits]


async def test_the_passage_that_answers_is_first_whatever_its_source_and_its_turn() -> None:
    book = found("book", "Iron is a metal.", "Tea is a drink.")
    research = found("research", "Coffee.", "Adrenaline is given for anaphylaxis.")
    ordered = await ORDER.order_hits(QUESTION, [book, research])
    assert ordered[0].passage.text == "Adrenaline is given for anaphylaxis."
    assert [hit.rank for hit in ordered] == [1, 2, 3, 4]
    assert is_one_order(ordered)


async def test_a_second_passage_of_the_right_source_precedes_the_first_of_a_wrong_one() -> None:
    right = found("research", "Adrenaline for anaphylaxis.", "Anaphylaxis needs adrenaline.")
    wrong = found("book", "Iron is a metal.")
    ordered = await ORDER.order_hits(QUESTION, [wrong, right])
    assert [hit.passage.source for hit in ordered] == ["research", "research", "book"]


async def test_a_passage_that_several_searches_find_gains() -> None:
    a, b = "Anaphylaxis needs adrenaline.", "Anaphylaxis wants adrenaline."
    once = await ORDER.order_hits(QUESTION, [found("book", a, b)])
    again = await ORDER.order_hits(QUESTION, [found("book", a, b), found("book", b)])
    assert texts_of(once) == [a, b]
    assert texts_of(again) == [b, a]
    alone = await PooledOrder(ORDER.scorer, again=0.0).order_hits(
        QUESTION, [found("book", a, b), found("book", b)]
    )
    assert texts_of(alone) == [a, b]


async def test_the_best_are_kept_whichever_source_they_are_of() -> None:
    lists = [found("book", "Anaphylaxis.", "Adrenaline."), found("wiki", "Iron.", "Tea.")]
    ordered = await ORDER.order_hits(QUESTION, lists, most=2)
    assert [hit.passage.source for hit in ordered] == ["book", "book"]


async def test_nothing_found_is_nothing_and_asks_no_scorer() -> None:
    @dataclass(frozen=True)
    class Never:
        async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
            raise AssertionError("nothing is to be scored")

    assert await PooledOrder(FusedRelevance(Never(), Never())).order_hits(QUESTION, [[], []]) == ()


@dataclass(frozen=True)
class Table:
    """Scores by text."""

    scores: dict[str, float]

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return tuple(self.scores[text] for text in texts)


async def test_scores_are_reciprocal_ranks_worked_by_hand() -> None:
    near, words = Table({"a": 0.9, "b": 0.5}), Table({"a": 0.1, "b": 0.6})
    scores = await FusedRelevance(near, words).relevance("q", ["b", "a"])
    assert scores == pytest.approx([1 / 12 + 0.7 / 11, 1 / 11 + 0.7 / 12])
    swapped = FusedRelevance(near, words, weights=(0.7, 1.0))
    assert (await swapped.relevance("q", ["b", "a"]))[0] == pytest.approx(0.7 / 12 + 1 / 11)
    ordered = await PooledOrder(FusedRelevance(near, words)).order_hits("q", [found("s", "b", "a")])
    assert texts_of(ordered) == ["a", "b"]
    assert [hit.score for hit in ordered] == pytest.approx([1 / 11, 1 / 12])


@given(st.permutations(["a", "b", "c", "d"]))
async def test_the_order_of_the_searches_does_not_matter(texts: list[str]) -> None:
    lists = [found("book", *texts[:2]), found("wiki", *texts[2:]), found("web", *texts[1:3])]
    first = await ORDER.order_hits(QUESTION, lists)
    assert await ORDER.order_hits(QUESTION, lists[::-1]) == first


def test_hits_of_one_search_are_one_order_and_of_two_are_not() -> None:
    one = found("book", "a", "b")
    assert is_one_order([])
    assert is_one_order(one)
    assert not is_one_order([*one, *found("wiki", "c")])

"""What more rests on goes before what the search ranks alike."""

from __future__ import annotations

from dataclasses import replace

from osler.retrieve.authority import AuthorityRetriever, AuthorityWeights, order_by_authority
from osler.testing.scripted import ScriptedRetriever
from osler.types import Hit, Locator, Passage


def _hit(name: str, rank: int, *, kind: str = "", year: int | None = None) -> Hit:
    place = Locator(kind=kind, year=year)
    passage = Passage(f"research:{name}#0", "Text.", "research", name, place)
    return Hit(passage, 1.0 - 0.01 * rank, rank, "q", "x")


def _names(hits: list[Hit]) -> list[str]:
    return [hit.passage.title for hit in hits]


def test_a_guideline_goes_before_a_case_report_that_the_search_ranks_alike() -> None:
    hits = [_hit("case", 1, kind="Case Reports"), _hit("guide", 2, kind="Practice Guideline")]
    ordered = order_by_authority(hits, AuthorityWeights())
    assert _names(ordered) == ["guide", "case"]
    assert [hit.rank for hit in ordered] == [1, 2]
    assert ordered[0].score > ordered[1].score


def test_what_the_search_ranks_far_behind_stays_there() -> None:
    hits = [_hit(f"p{n}", n) for n in range(1, 20)] + [_hit("guide", 20, kind="Guideline")]
    assert _names(order_by_authority(hits, AuthorityWeights())).index("guide") > 10


def test_of_two_alike_the_younger_goes_first_where_recency_counts() -> None:
    hits = [_hit("old", 1, year=1990), _hit("undated", 2), _hit("young", 3, year=2020)]
    recent = AuthorityWeights(authority=0.0, recency=0.5)
    undated = AuthorityWeights(recency=0.0)
    assert _names(order_by_authority(hits, recent)) == ["young", "old", "undated"]
    assert _names(order_by_authority(hits, undated)) == ["old", "undated", "young"]


def test_without_weights_and_without_hits_nothing_changes() -> None:
    hits = [_hit("b", 1), _hit("a", 2, kind="Guideline")]
    none = AuthorityWeights(0.0, 0.0)
    assert _names(order_by_authority(hits, none)) == ["b", "a"]
    assert order_by_authority([], none) == []


def test_scores_below_zero_are_not_multiplied() -> None:
    hits = [replace(_hit("a", 1), score=-1.0), replace(_hit("b", 2, kind="Guideline"), score=-9.0)]
    assert _names(order_by_authority(hits, AuthorityWeights(0.2))) == ["b", "a"]
    assert _names(order_by_authority(hits, AuthorityWeights(0.01))) == ["a", "b"]


async def test_the_search_orders_among_more_than_it_gives() -> None:
    hits = [_hit("a", 1), _hit("b", 2), _hit("guide", 3, kind="Guideline")]
    search = AuthorityRetriever(
        ScriptedRetriever({"q": [hit.passage for hit in hits]}), AuthorityWeights(3.0)
    )
    assert _names(await search.search("q", k=1)) == ["guide"]

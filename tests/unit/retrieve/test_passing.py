"""What services find that cannot filter for themselves passes the same filter."""

import pytest

from osler.kb.search.base import PassageFilter
from osler.retrieve.web import PassingRetriever
from osler.types import Locator, Passage
from osler_lab.testing.scripted import ScriptedRetriever

PLACES = {
    "old-trial": Locator(year=2012, kind="Randomized Controlled Trial"),
    "new-trial": Locator(year=2021, kind="Randomized  controlled trial"),
    "new-review": Locator(year=2021, kind="Review"),
    "undated": Locator(),
}


@pytest.mark.parametrize(
    ("within", "found"),
    [
        (PassageFilter(years=(2020, None)), {"new-trial", "new-review"}),
        (PassageFilter(years=(None, 2012)), {"old-trial"}),
        (PassageFilter(days=(None, 20121230)), set()),
        (PassageFilter(days=(20120501, 20210101)), {"old-trial"}),
        (PassageFilter(kinds=("rct",)), {"old-trial", "new-trial"}),
        (PassageFilter(kinds=("Review",), years=(2021, 2021)), {"new-review"}),
    ],
)
async def test_a_hit_without_the_year_or_kind_that_is_asked_for_is_left_out(
    within: PassageFilter, found: set[str]
) -> None:
    passages = [
        Passage(f"web:{name}#0", name, "web", name, place) for name, place in PLACES.items()
    ]
    hits = await PassingRetriever(ScriptedRetriever({"q": passages}), within).search("q", k=9)
    assert {hit.passage.title for hit in hits} == found

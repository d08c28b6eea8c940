"""The medical library: several recipes as one, with a plan of disk and hours before anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from osler.sources.download.job import DownloadRecipe, find_recipe

LIBRARY = "medical-library"
_PARTS: Mapping[str, int | None] = {
    "medlineplus": None,
    "wikimed": None,
    "pubmed-baseline": 20,
    "openfda-labels": None,
    "retraction-watch": None,
}
"""Recipes in the order in which they are fetched, and how many files of each; `None` = all.
Twenty of PubMed's about 1,270 files are its oldest 600,000 citations."""
_FILES_OF = {"pubmed-baseline": 1_270}
_PASSAGES_OF = {"pubmed-baseline": 600_000}
_PASSAGE_BYTES = 6_500
"""On the disk, with its vector and its index (docs/guide/scale.md)."""
_FETCHED_A_SECOND, _ENCODED_A_SECOND = 5_000_000, 77
"""Bytes of a home's line; passages that MiniLM encodes on two cores (docs/guide/scale.md)."""


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A recipe of the library with what it will take, estimated."""

    name: str
    only: int | None
    source: str
    licence: str
    fetch_bytes: int
    passages: int
    disk_bytes: int
    """What is fetched, and its part of the knowledge base."""
    hours: float
    """Fetching at 5 MB/s, and encoding on two cores."""

    @property
    def recipe(self) -> DownloadRecipe:
        return find_recipe(self.name)


def plan_library() -> list[PlannedPart]:
    """The parts of the library, in order."""
    return [_plan_part(find_recipe(name), only) for name, only in _PARTS.items()]


def _plan_part(recipe: DownloadRecipe, only: int | None) -> PlannedPart:
    share = 1.0 if only is None else only / _FILES_OF[recipe.name]
    fetched = round(recipe.bytes * share)
    passages = recipe.passages if only is None else _PASSAGES_OF[recipe.name]
    seconds = fetched / _FETCHED_A_SECOND + passages / _ENCODED_A_SECOND
    return PlannedPart(
        recipe.name,
        only,
        recipe.source,
        recipe.licence,
        fetched,
        passages,
        fetched + passages * _PASSAGE_BYTES,
        round(seconds / 3600, 2),
    )

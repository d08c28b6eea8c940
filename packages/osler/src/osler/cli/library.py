"""What can be downloaded, and the medical library in one command: its plan, and carrying it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from osler.cli.kb import PATIENCE
from osler.cli.progress import show_progress
from osler.cli.session import CliSession
from osler.sources.download.job import DownloadJob, DownloadRecipe, find_recipe, load_recipes

LIBRARY = "medical-library"
_NOTICES = "retraction-watch"
"""No texts: it marks those of the parts before it."""
_PARTS: Mapping[str, int | None] = {
    "medlineplus": None,
    "wikimed": None,
    "pubmed-baseline": 20,
    "openfda-labels": None,
    _NOTICES: None,
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


def list_recipes(here: CliSession) -> None:
    """Shows every recipe with its size and licence."""
    recipes = list(load_recipes().values())
    names = ("name", "title", "source", "bytes", "licence")
    page = [{name: getattr(each, name) for name in names} for each in recipes]
    here.show([each.model_dump(mode="json") for each in recipes], page)


def fetch_library(here: CliSession, mirror: str, *, accepted: bool, begin: bool) -> None:
    """Shows what the library will take; with `begin` fetches, adds and builds it, from where it
    stopped. Raises what `DownloadJob.run`, `KnowledgeBase.mark_retractions` and `build` raise."""
    if not begin:
        _show_plan(here)
        return
    from osler.build.knowledge import open_or_create
    from osler.build.models import load_encoder

    settings = here.load_settings()
    with show_progress(here) as report, open_or_create(settings) as kb:
        kb.wait = PATIENCE
        for part in plan_library():
            folder = settings.home / "fetched" / part.name
            place = f"{mirror.rstrip('/')}/{part.name}" if mirror else ""
            job = DownloadJob(part.recipe, folder, place, part.only)
            done = job.run(accepted=accepted, progress=report)
            if part.name == _NOTICES:
                kb.mark_retractions(done.files[0])
            else:
                kb.add([folder], source=part.source, licence=part.licence, progress=report)
        built = kb.build(load_encoder(settings), progress=report)
    here.show(asdict(built))


def _show_plan(here: CliSession) -> None:
    from osler.cli.tables import format_size

    parts = plan_library()
    rows = [asdict(part) for part in parts]
    sizes = ("fetch_bytes", "disk_bytes")
    here.show(rows, [row | {name: format_size(row[name]) for name in sizes} for row in rows])
    disk, hours = sum(part.disk_bytes for part in parts), sum(part.hours for part in parts)
    here.print_line(
        f"together {format_size(disk)} of disk and about {hours:,.0f} hours;"
        f" to begin: osler kb fetch {LIBRARY} --accept-licence --yes"
    )

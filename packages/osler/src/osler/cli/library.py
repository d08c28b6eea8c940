"""What can be downloaded, and the medical library in one command: its plan, and carrying it out."""

from __future__ import annotations

from dataclasses import asdict

from osler.cli.kb import PATIENCE
from osler.cli.progress import show_progress
from osler.cli.session import CliSession


def list_recipes(here: CliSession) -> None:
    """Shows every recipe with its size and licence."""
    from osler.sources.download.job import load_recipes

    recipes = list(load_recipes().values())
    names = ("name", "title", "source", "bytes", "licence")
    page = [{name: getattr(each, name) for name in names} for each in recipes]
    here.show([each.model_dump(mode="json") for each in recipes], page)


def fetch_library(here: CliSession, mirror: str, *, accepted: bool, begin: bool) -> None:
    """Shows what the library will take; with `begin` fetches, adds and builds it, from where it
    stopped. Raises what `DownloadJob.run` and `KnowledgeBase.build` raise."""
    if not begin:
        _show_plan(here)
        return
    from osler.build.knowledge import open_or_create
    from osler.build.models import load_encoder
    from osler.sources.download.job import DownloadJob
    from osler.sources.download.library import plan_library

    settings = here.load_settings()
    with show_progress(here) as report, open_or_create(settings) as kb:
        kb.wait = PATIENCE
        for part in plan_library():
            folder = settings.home / "fetched" / part.name
            place = f"{mirror.rstrip('/')}/{part.name}" if mirror else ""
            DownloadJob(part.recipe, folder, place, part.only).run(
                accepted=accepted, progress=report
            )
            if not part.recipe.use:
                kb.add([folder], source=part.source, licence=part.licence, progress=report)
        built = kb.build(load_encoder(settings), progress=report)
    here.show(asdict(built))


def _show_plan(here: CliSession) -> None:
    from osler.cli.tables import format_size
    from osler.sources.download.library import LIBRARY, plan_library

    parts = plan_library()
    rows = [asdict(part) for part in parts]
    sizes = ("fetch_bytes", "disk_bytes")
    here.show(rows, [row | {name: format_size(row[name]) for name in sizes} for row in rows])
    disk, hours = sum(part.disk_bytes for part in parts), sum(part.hours for part in parts)
    here.print_line(
        f"together {format_size(disk)} of disk and about {hours:,.0f} hours;"
        f" to begin: osler kb fetch {LIBRARY} --accept-licence --yes"
    )

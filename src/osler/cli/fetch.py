"""`osler kb fetch`: public corpora and ontologies, downloaded and checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.progress import show_progress
from osler.cli.session import Json, Quiet, open_session

if TYPE_CHECKING:
    from rich.console import RenderableType

    from osler.sources.download.recipes import DownloadRecipe


def fetch(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="Which one; without it, all are listed.")
    ] = None,
    to: Annotated[Path | None, typer.Option(help="Folder (default: fetched/NAME in home).")] = None,
    accept: Annotated[
        bool, typer.Option("--accept-licence", help="You have read its licence and accept it.")
    ] = False,
    mirror: Annotated[
        str, typer.Option(help="Address of a copy, instead of the publisher's.", show_default=False)
    ] = "",
    only: Annotated[
        int | None, typer.Option(min=1, help="Only so many files of a list, the first ones.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Download a corpus or an ontology. What was interrupted goes on where it stopped."""
    here = open_session(context, as_json=as_json, quiet=quiet)
    from osler.sources.download.recipes import find_recipe, load_recipes

    if name is None:
        every = list(load_recipes().values())
        here.show_result(_recipe_table(every), [each.model_dump(mode="json") for each in every])
        return
    from osler.sources.download.job import DownloadJob

    chosen = find_recipe(name)
    folder = to or here.load_settings().home / "fetched" / name
    with show_progress(here) as report:
        done = DownloadJob(chosen, folder, mirror, only).run(accepted=accept, progress=report)
    if here.json:
        document = {"files": [str(path) for path in done.files], "bytes": done.bytes}
        here.show_result("", {"recipe": name, "folder": str(folder), **document})
    here.print_line(f"{len(done.files):,} files, {done.bytes:,} bytes in {folder}")
    here.print_line(
        f"next: {chosen.use}" if chosen.use else f"next: {_add_command(chosen, folder)}"
    )


def _add_command(recipe: DownloadRecipe, folder: Path) -> str:
    import shlex

    form = f" --format {recipe.format}" if recipe.format else ""
    return f"osler kb add {shlex.quote(str(folder))} --source {recipe.source}{form}"


def _recipe_table(every: list[DownloadRecipe]) -> RenderableType:
    from rich.table import Table

    table = Table("recipe", "what", "source", "about", "licence", box=None, pad_edge=False)
    for each in every:
        size = f"{each.bytes / 1e9:,.1f} GB" if each.bytes >= 1e8 else f"{each.bytes / 1e6:,.0f} MB"
        table.add_row(each.name, each.title, each.source, size if each.bytes else "", each.licence)
    return table

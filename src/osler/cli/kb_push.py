"""`osler kb push`: the knowledge base onto a Qdrant server."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from osler.cli.kb import open_kb
from osler.cli.progress import show_progress
from osler.cli.session import Json, Quiet, open_session


def push(
    context: typer.Context,
    to: Annotated[
        str | None,
        typer.Option("--to", help="The server, as http://HOST:6333; else kb.url.", metavar="URL"),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Replace the collections of another encoder.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a Qdrant server hold what the knowledge base holds; only what changed travels.

    A push that was cut short goes on where it stopped. Set kb.url to search there.
    """
    here = open_session(context, as_json=as_json, quiet=quiet)
    from osler.app.wiring.knowledge import search_backend
    from osler.cli.tables import pushed_page
    from osler.errors import BadConfig

    settings = here.load_settings({"kb.url": to})
    if not settings.kb.url:
        raise BadConfig("there is no server to push to", fix="give --to URL, or set kb.url")
    with open_kb(settings) as kb, show_progress(here) as report:
        pushed = kb.push(search_backend(settings), rebuild=rebuild, progress=report)
    if here.json or not here.quiet:
        here.show_result(pushed_page(pushed), asdict(pushed))

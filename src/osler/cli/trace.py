"""`osler trace …`: recorded runs, listed and looked at."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from osler.cli.session import Json, session

app = typer.Typer(no_args_is_help=True)


@app.command()
def ls(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 20,
    as_json: Json = False,
) -> None:
    """The recorded runs, newest first."""
    here = session(context, as_json=as_json)
    from osler.cli.runs import listed
    from osler.cli.tables import runs_page

    runs = listed(here.settings().runs.path, limit=limit)
    here.show(runs_page(runs), {"runs": [asdict(run) for run in runs]})


@app.command()
def show(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help='The start of a run\'s id, "last", or a file.')],
    as_json: Json = False,
) -> None:
    """A recorded run: answer, evidence and film. With --json: its events, as JSON Lines."""
    here = session(context, as_json=as_json)
    from osler.cli.runs import find, report

    found = report(find(run, here.settings().runs.path))
    if here.json:
        from osler.trace import to_line

        sys.stdout.writelines(f"{to_line(event)}\n" for event in found.events)
        return
    from osler.cli.render import page

    here.console().print(page(found))

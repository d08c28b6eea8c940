"""`osler trace …`: recorded runs, listed and looked at."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.session import Json, open_session

if TYPE_CHECKING:
    from osler.cli.render import RunPage

app = typer.Typer(no_args_is_help=True)


@app.command()
def ls(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, help="How many, the newest first.")] = 20,
    as_json: Json = False,
) -> None:
    """The recorded runs, newest first."""
    here = open_session(context, as_json=as_json)
    from osler.cli.runs import list_runs
    from osler.cli.tables import runs_page

    runs = list_runs(here.load_settings().runs.path, limit=limit)
    here.show_result(runs_page(runs), {"runs": [asdict(run) for run in runs]})


@app.command()
def show(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help='The start of a run\'s id, "last", or a file.')],
    html: Annotated[
        Path | None,
        typer.Option(help="Write one page that needs nothing else: no script, ready to print."),
    ] = None,
    as_json: Json = False,
) -> None:
    """A recorded run: answer, evidence and film. With --json: its events, as JSON Lines."""
    here = open_session(context, as_json=as_json)
    from osler.cli.runs import find_run, read_report

    found = read_report(find_run(run, here.load_settings().runs.path))
    if here.json:
        from osler.trace import to_line

        sys.stdout.writelines(f"{to_line(event)}\n" for event in found.events)
        return
    if html is not None:
        _write_page(html, found)
        here.make_console().print(f"written to {html}")
        return
    from osler.cli.render import run_page

    here.make_console().print(run_page(found))


def _write_page(path: Path, report: RunPage) -> None:
    """The page, wholly or not at all. Raises `BadConfig` where it cannot be written."""
    from osler.cli.page import render_page
    from osler.errors import BadConfig

    text = render_page(report)
    partial = path.with_name(f"{path.name}.part")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise BadConfig(
            f"{path} cannot be written: {error}", fix="choose another --html"
        ) from error

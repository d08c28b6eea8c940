"""`osler init`, `doctor`, `config …` and `download-models`: before the first question."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from osler.cli.session import ABSTAINED, Json, Quiet, open_session, write_json

config = typer.Typer(no_args_is_help=True)


def init(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("osler.toml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a file.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a commented osler.toml with every setting and its default."""
    here = open_session(context, as_json=as_json, quiet=quiet)
    from osler.app.config import write_template

    write_template(path, overwrite=force)
    if here.json:
        write_json({"path": str(path)})
    here.print_line(f"{path} written; next: osler doctor")


def doctor(context: typer.Context, as_json: Json = False, quiet: Quiet = False) -> None:
    """Check settings, knowledge base and models, and say how to mend them.

    Each model is really asked: what it can do stands in a table, and below it what would
    become of each strategy. Exit code 1: a check failed.
    """
    here = open_session(context, as_json=as_json, quiet=quiet)
    settings = here.load_settings()
    from osler.app.doctor import run_doctor
    from osler.cli.model_tables import doctor_page

    found = run_doctor(settings)
    here.show_result(doctor_page(found, short=here.quiet), {"ok": found.ok, **asdict(found)})
    if not found.ok:
        raise typer.Exit(ABSTAINED)


@config.command()
def show(
    context: typer.Context,
    origin: Annotated[
        bool, typer.Option("--origin", help="Also say where each value comes from.")
    ] = False,
    as_json: Json = False,
) -> None:
    """The settings in force."""
    here = open_session(context, as_json=as_json)
    from osler.app.config import flatten_settings, render_settings

    loaded = here.load_layers()
    if not here.json:
        sys.stdout.write(render_settings(loaded, origin=origin))
        return
    values = flatten_settings(loaded.settings)
    if origin:
        write_json({k: {"value": v, "origin": loaded.origins[k]} for k, v in values.items()})
    else:
        write_json(values)


@config.command()
def check(context: typer.Context, as_json: Json = False, quiet: Quiet = False) -> None:
    """Read all layers of settings. Exit code 3: something in them is wrong."""
    here = open_session(context, as_json=as_json, quiet=quiet)
    origins = here.load_layers().origins.values()
    from osler.app.config import DEFAULT

    count = sum(origin != DEFAULT for origin in origins)
    if here.json:
        write_json({"ok": True, "set": count})
    here.print_line(f"the settings are right; {count} are not defaults")

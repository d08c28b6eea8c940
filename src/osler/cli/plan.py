"""`osler plan`: which source would be asked, and in which words; a file to edit and to run."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from osler.cli.ask import read_question, watch_events
from osler.cli.options import Asked, Choices, Offered, Planner, Trace
from osler.cli.session import Json, Quiet, escape_controls, open_session
from osler.errors import OslerError


def plan(
    context: typer.Context,
    question: Asked = None,
    option: Choices = None,
    planner: Planner = None,
    sources: Offered = None,
    search: Annotated[
        bool, typer.Option("--search", help="Also search, so that readers need not.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write plan, question and what was found to this file, as JSON."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same plan.")] = None,
    trace: Trace = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a source plan, to be read, edited and run with `osler ask --plan FILE`."""
    here = open_session(context, as_json=as_json, quiet=quiet)
    settings = here.load_settings(
        {
            "strategy.kind": "omni-rag",
            "strategy.planner": planner,
            "kb.sources": sources,
            "sampling.seed": seed,
        }
    )
    from osler.app.runs import plan_question

    asked = read_question(question, tuple(option or ()))
    with watch_events(here, trace) as sink:
        made = asyncio.run(plan_question(settings, asked, search=search, sink=sink))
    if out is not None:
        _write_plan(out, made.document)
    if here.json:
        sys.stdout.write(f"{made.document}\n")
    elif out is None:
        sys.stdout.write(f"{escape_controls(made.plan)}\n")
    else:
        here.print_line(f"written to {out}; run it: osler ask --plan {out}")


def _write_plan(path: Path, text: str) -> None:
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise OslerError(
            f"cannot write {path}: {error.strerror}", fix="name another file with --out"
        ) from error

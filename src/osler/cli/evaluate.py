"""`osler eval …`: strategies compared on data sets, resumed, merged and reported."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.progress import progress
from osler.cli.session import Json, Quiet, Session, session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from osler.config import Settings
    from osler.trials import Load

app = typer.Typer(no_args_is_help=True)

LogDir = Annotated[
    Path, typer.Option("--log-dir", help="Folder of the log; it is also the checkpoint.")
]
Data = Annotated[
    Path | None, typer.Option(help="Folder with the files of the data sets, as published.")
]


@app.command()
def run(
    context: typer.Context,
    log_dir: LogDir,
    tasks: Annotated[
        str | None,
        typer.Option(help='Data sets, as in "medqa-us,bioasq"; NAME=FILE for a file elsewhere.'),
    ] = None,
    strategies: Annotated[
        str | None,
        typer.Option(
            help='Strategies or presets, with settings after colons: "rag,tc-rag:metric=uct".'
        ),
    ] = None,
    data: Data = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Samples of each data set, at most.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Which samples; same seed, same ones.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Samples at once.")] = 1,
    retry: Annotated[
        bool, typer.Option("--retry/--no-retry", help="Try samples again that failed before.")
    ] = True,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try strategies on data sets. What the log folder holds is not done again.

    Several processes and hosts may work on one log folder. Exit code 6: some samples failed.
    """
    here = session(context, as_json=as_json, quiet=quiet)
    from osler import trials
    from osler.cli.evaluate_pages import run_page, summary
    from osler.cli.session import PARTIAL

    made = trials.trial(
        _words(tasks, "--tasks"),
        _words(strategies, "--strategies"),
        _loader(here),
        data=data,
        limit=limit,
        seed=seed,
    )
    with progress(here) as report:
        asyncio.run(trials.run(made, log_dir, jobs=jobs, again=retry, progress=report))
    found = summary(log_dir)
    here.show(run_page(found), {"log": str(log_dir), "cells": found})
    here.say(f"next: osler eval report --log-dir {log_dir}")
    if any(cell["failed"] for cell in found):
        raise typer.Exit(PARTIAL)


def _words(given: str | None, option: str) -> list[str]:
    from osler.errors import BadConfig

    words = [word.strip() for word in (given or "").split(",") if word.strip()]
    if not words:
        raise BadConfig(f"nothing is given with {option}", fix="`osler eval tasks` lists data sets")
    return words


def _loader(here: Session) -> Load:
    """Settings of one strategy, over those of the call."""

    def load(flags: Mapping[str, object], preset: str | None) -> Settings:
        usual = here.preset
        here.preset = preset or usual
        try:
            return here.settings(flags)
        finally:
            here.preset = usual

    return load


@app.command()
def tasks(context: typer.Context, data: Data = None, as_json: Json = False) -> None:
    """The data sets that are known; with --data also what is there and what was dropped."""
    here = session(context, as_json=as_json)
    from osler.cli.evaluate_pages import task_rows, tasks_page

    rows = task_rows(data)
    here.show(tasks_page(rows), {"tasks": rows})

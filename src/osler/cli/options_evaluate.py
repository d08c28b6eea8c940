"""Groups of options of `osler eval run`: what is tried, and how the work is done."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from osler.cli.options import Data

Limit = Annotated[int | None, typer.Option(min=1, help="Most samples of each data set.")]


@dataclass(frozen=True)
class TriedOptions:
    """Strategies and samples. An option that is given wins over the experiment's."""

    tasks: Annotated[
        str | None,
        typer.Option(
            help='Data sets, as in "medqa-us,bioasq@test"; NAME=FILE for a file elsewhere,'
            " NAME=hub:OWNER/REPO@REVISION/FILE for one on the hub."
        ),
    ] = None
    strategies: Annotated[
        str | None,
        typer.Option(
            help='Strategies or presets, with settings after colons: "rag,tc-rag:metric=uct";'
            " all: every strategy that the model can serve."
        ),
    ] = None
    experiment: Annotated[
        str | None,
        typer.Option(help="An experiment by name or file; other options go before it."),
    ] = None
    ablation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME:ROW",
            help="Test a planner as the row of a training ablation says: on its data sets, with"
            " its sources alone on offer.",
        ),
    ] = None
    data: Data = None
    limit: Limit = None
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed that chooses the samples; 0 by default.")
    ] = None
    trained_on: Annotated[
        bool,
        typer.Option(
            "--trained-on",
            help="Measure also questions that a model was trained on; the report marks them.",
        ),
    ] = False


@dataclass(frozen=True)
class WorkOptions:
    """What is done at once, again, and kept."""

    jobs: Annotated[int, typer.Option(min=1, max=256, help="Concurrent samples.")] = 1
    retry: Annotated[
        bool, typer.Option("--retry/--no-retry", help="Try samples again that failed before.")
    ] = True
    tapes: Annotated[
        bool,
        typer.Option("--tapes", help="Keep each run with its tape, so that it can be replayed."),
    ] = False
    replies: Annotated[
        Path | None,
        typer.Option(help="File of replies; a request that it holds is not sent again."),
    ] = None
    plans: Annotated[
        Path | None,
        typer.Option(
            help="Folder of source plans: omni-rag plans and searches a question once, and every"
            " reader reads the same."
        ),
    ] = None

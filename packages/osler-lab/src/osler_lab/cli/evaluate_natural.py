"""`osler eval natural`: questions in people's own wording, beside simple rules."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.progress import show_progress
from osler.cli.session import CliSession

if TYPE_CHECKING:
    from osler_lab.natural.questions import Half


def natural(
    here: CliSession,
    log_dir: Annotated[Path, typer.Option(help="Folder of the log; a stopped run goes on there.")],
    data: Annotated[Path, typer.Option(help="Folder with the data sets and corpora.")],
    homes: Annotated[
        Path, typer.Option(help="Folder of the knowledge bases, made where they lack.")
    ],
    benchmarks: Annotated[
        Path, typer.Option(help="Folder with the plain questions and the split.")
    ] = Path("benchmarks"),
    sets: Annotated[str, typer.Option(help='Sets, as in "plain,kqa"; all: every one.')] = "all",
    ways: Annotated[
        str, typer.Option(help="Ways: default, off (no judge), cosine, bm25.")
    ] = "default,cosine,bm25",
    half: Annotated[
        str,
        typer.Option(
            help="dev may be tuned on; seen chooses; test is asked once, for what is reported."
        ),
    ] = "dev",
    limit: Annotated[int | None, typer.Option(min=1, help="Most questions of each set.")] = None,
    fit: Annotated[
        Path | None,
        typer.Option(help="Fit the judge's card in this folder on the log of dev and seen."),
    ] = None,
) -> None:
    """Ask natural questions of their own texts: right, first right, refused, and how sure."""
    from osler.errors import BadConfig
    from osler_lab.natural.asking import WAYS, NaturalLog, NaturalTrial
    from osler_lab.natural.questions import SETS, NaturalPlaces
    from osler_lab.natural.tables import measure_ways
    from osler_lab.train import choose_named

    names = list(SETS) if sets == "all" else sets.split(",")
    if unknown := [name for name in names if name not in SETS]:
        raise BadConfig(f"unknown sets {unknown}", fix=f"choose from {', '.join(SETS)}")
    halves: tuple[Half, ...] = ("dev", "seen", "test")
    part, log = choose_named(half, halves, "half"), NaturalLog(log_dir)
    asked = [choose_named(way, tuple(WAYS), "way") for way in ways.split(",")]
    if fit is None:
        answer = here.load_settings().answer
        at = NaturalPlaces(data, benchmarks, homes)
        trial = NaturalTrial(at, log, part, limit, part != "test", answer)
        with show_progress(here) as report:
            asyncio.run(trial.run(names, asked, report))
    else:
        from osler_lab.natural.fitting import fit_card

        fit_card(
            fit, [row for name in names for one in ("dev", "seen") for row in log.read(name, one)]
        )
    rows = [row for name in names for row in log.read(name, part) if row.way in asked]
    document = measure_ways(rows)
    here.show({"half": part, "rows": document})

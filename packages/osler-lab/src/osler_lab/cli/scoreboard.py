"""`osler scoreboard run|report`: every strategy on the same questions, and the page of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import Data, EstimateAlone
from osler.cli.progress import show_progress
from osler.cli.session import CliSession
from osler_lab.cli.evaluate_results import LogDir

if TYPE_CHECKING:
    from osler_lab.evaluate.scoreboard import Scoreboard
    from osler_lab.studies.evaluation import Trial


def run(
    here: CliSession,
    log_dir: LogDir,
    *,
    plan: Annotated[
        str, typer.Option(help="small, papers, full, or a file of your own; small needs no data.")
    ] = "small",
    data: Data = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Most questions of each data set.")
    ] = None,
    hours: Annotated[
        bool, typer.Option("--hours", help="Show how long it would take, and stop.")
    ] = False,
    estimate: EstimateAlone = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The model server to use, in place of the settings'."),
    ] = None,
    name: Annotated[str, typer.Option(help="The model's name there, if it has several.")] = "",
) -> None:
    """Run all strategies of a scoreboard on the same questions; it goes on where it was stopped.

    Replies are shared among strategies (a file beside the log folder), and questions that any
    expert was trained on are left out for all. How long it may take is said first. Exit code 6:
    some samples failed. With --model the server is first asked what its model can do, and the
    settings that follow hold for this run.
    """
    from osler.cli.session import PARTIAL
    from osler_lab.cli.evaluate import open_replies, show_trial_cost
    from osler_lab.cli.evaluate_pages import summarise_log
    from osler_lab.evaluate.scoreboard import read_scoreboard
    from osler_lab.studies import evaluation

    if model is not None:
        from osler.cli.model_probe import use_model

        use_model(here, model, name)
    board = read_scoreboard(plan)
    trial = _make_trial(here, board, data, limit or board.limit)
    if estimate:
        show_trial_cost(here, trial, log_dir)
        return
    for line in plan_lines(board, trial, log_dir):
        here.print_line(line)
    if hours:
        return
    with (
        show_progress(here) as report,
        open_replies(log_dir.with_suffix(".replies")) as known,
    ):
        asyncio.run(evaluation.run_trial(trial, log_dir, progress=report, replies=known))
    cells = summarise_log(log_dir)
    here.show({"log": str(log_dir), "cells": cells})
    here.print_line(f"next: osler scoreboard report {log_dir} --out FOLDER")
    if any(cell["failed"] for cell in cells):
        raise typer.Exit(PARTIAL)


def _make_trial(here: CliSession, board: Scoreboard, data: Path | None, limit: int | None) -> Trial:
    from osler_lab.cli.evaluate import settings_loader
    from osler_lab.studies import evaluation

    return evaluation.make_trial(
        board.tasks,
        board.labels,
        settings_loader(here),
        data=data,
        limit=limit,
        seed=board.seed,
        experiment=f"scoreboard {board.name}",
        unseen=True,
    )


def plan_lines(board: Scoreboard, trial: Trial, log_dir: Path) -> list[str]:
    """What is left to do under each strategy, and how long it may take; the whole last."""
    from osler_lab.evaluate.log import TriedSamples

    tried, lines, whole = TriedSamples(log_dir), [], 0.0
    tried.refresh()
    for label, counts in trial.plan.asked.items():
        done = sum(status == "done" for key, status in tried.status.items() if key[0] == label)
        left = max(0, sum(counts.values()) - done)
        seconds = left * board.expected_seconds(label)
        whole += seconds
        if left:
            lines.append(f"{label}: {left} questions, about {seconds / 60:.0f} min")
    return [*lines, f"in all about {whole / 3600:.1f} hours on two idle cores"]


def report(
    here: CliSession,
    scores: Annotated[
        list[Path],
        typer.Argument(help="Log folders or files of scores; all on one page."),
    ],
    out: Annotated[
        Path,
        typer.Option(help="Folder for scoreboard.md, its CSV and its pictures (extra plot)."),
    ],
    scores_out: Annotated[
        Path | None,
        typer.Option("--scores", help="Also write all scores, without any text, to this file."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(help="Published scores; exit code 6 where a row leaves their interval."),
    ] = None,
) -> None:
    """Make the scoreboard's page from logs, or from files of scores, without a model."""
    from osler.cli.session import PARTIAL
    from osler_lab.cli.evaluate_pages import write_page as write_text
    from osler_lab.evaluate.scoreboard.page import scored_strategies, write_page
    from osler_lab.evaluate.scoreboard.scores import format_scores, join_logs, read_scores
    from osler_lab.evaluate.scoreboard.tables import find_departures

    log = join_logs([read_scores(path) for path in scores])
    files = write_page(log, scored_strategies(log), out)
    if scores_out is not None:
        write_text(scores_out, format_scores(log))
        files.append(scores_out)
    departed = [] if against is None else find_departures(log, read_scores(against))
    here.show({"files": [str(path) for path in files], "departures": departed})
    if departed:
        raise typer.Exit(PARTIAL)

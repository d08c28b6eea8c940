"""`osler scoreboard`: every strategy on the same questions, and the page of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from osler.cli.options import Data, EstimateAlone
from osler.cli.progress import show_progress
from osler.cli.session import PARTIAL, CliSession

if TYPE_CHECKING:
    from osler_lab.evaluate.experiments import Experiment
    from osler_lab.studies.evaluation import Trial


@dataclass(frozen=True)
class TrialOptions:
    """What is run, with which model; or only what that would cost."""

    log_dir: Annotated[
        Path | None,
        typer.Option("--log-dir", help="Run the plan into this log; it is also the checkpoint."),
    ] = None
    plan: Annotated[
        str, typer.Option(help="small, papers, full, or a file of your own; small needs no data.")
    ] = "small"
    data: Data = None
    limit: Annotated[int | None, typer.Option(min=1, help="Most questions of each data set.")] = (
        None
    )
    estimate: EstimateAlone = False
    model: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The model server to use, in place of the settings'."),
    ] = None
    name: Annotated[str, typer.Option(help="The model's name there, if it has several.")] = ""


@dataclass(frozen=True)
class PageOptions:
    """What is written of the scores."""

    out: Annotated[
        Path | None,
        typer.Option(help="Folder for scoreboard.md and its CSV."),
    ] = None
    scores_out: Annotated[
        Path | None,
        typer.Option("--scores", help="Also write all scores, without any text, to this file."),
    ] = None
    against: Annotated[
        Path | None,
        typer.Option(help="Published scores; exit code 6 where a row leaves their interval."),
    ] = None


def scoreboard(
    here: CliSession,
    scores: Annotated[
        list[Path] | None,
        typer.Argument(help="Log folders or files of scores that the page has, too."),
    ] = None,
    *,
    trial: TrialOptions,
    page: PageOptions,
) -> None:
    """Run every strategy of a plan on the same questions; with --out, make the page of the scores.

    With --log-dir the plan is run: it goes on where it was stopped, replies are shared among
    strategies (a file beside the log folder), and questions that any expert was trained on are left
    out for all. With --model the server is first asked what its model can do, and the settings that
    follow hold for this run. The page needs no model. Exit code 6: some samples failed, or a row
    left its interval.
    """
    if trial.log_dir is None and not (scores and page.out):
        raise typer.BadParameter("give --log-dir to run a plan, or scores and --out for the page")
    document: dict[str, Any] = {}
    if trial.log_dir is not None:
        cells = _run_plan(here, trial, trial.log_dir)
        if cells is None:
            return
        document = {"log": str(trial.log_dir), "cells": cells}
    if page.out is not None:
        places = [*(scores or ()), *([trial.log_dir] if trial.log_dir else ())]
        document |= _write_board(places, page.out, page)
    here.show(document)
    if document.get("departures") or any(cell["failed"] for cell in document.get("cells", ())):
        raise typer.Exit(PARTIAL)


def _run_plan(here: CliSession, trial: TrialOptions, log_dir: Path) -> list[dict[str, Any]] | None:
    """The cells of the log; `None` where only the cost was asked for."""
    from osler_lab.cli.evaluate import open_replies, show_trial_cost
    from osler_lab.cli.evaluate_pages import summarise_log
    from osler_lab.evaluate.scoreboard import read_scoreboard
    from osler_lab.studies import evaluation

    if trial.model is not None:
        from osler.cli.model_probe import use_model

        use_model(here, trial.model, trial.name)
    board = read_scoreboard(trial.plan)
    made = _make_trial(here, board, trial.data, trial.limit or board.limit)
    if trial.estimate:
        show_trial_cost(here, made, log_dir)
        return None
    with (
        show_progress(here) as report,
        open_replies(log_dir.with_suffix(".replies")) as known,
    ):
        asyncio.run(evaluation.run_trial(made, log_dir, progress=report, replies=known))
    return summarise_log(log_dir)


def _write_board(places: list[Path], out: Path, options: PageOptions) -> dict[str, Any]:
    """The files that were written, and the rows that left their published interval."""
    from osler_lab.cli.evaluate_pages import write_page as write_text
    from osler_lab.evaluate.scoreboard.page import scored_strategies, write_page
    from osler_lab.evaluate.scoreboard.scores import format_scores, join_logs, read_scores
    from osler_lab.evaluate.scoreboard.tables import find_departures

    log = join_logs([read_scores(path) for path in places])
    files = write_page(log, scored_strategies(log), out)
    if options.scores_out is not None:
        write_text(options.scores_out, format_scores(log))
        files.append(options.scores_out)
    against = options.against
    departed = [] if against is None else find_departures(log, read_scores(against))
    return {"files": [str(path) for path in files], "departures": departed}


def _make_trial(here: CliSession, board: Experiment, data: Path | None, limit: int | None) -> Trial:
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

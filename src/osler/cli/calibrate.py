"""`osler calibrate`: sigma, or tau, fitted to the model that is configured."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from osler.cli.progress import show_progress
from osler.cli.session import CliSession, Json, Quiet, open_session

if TYPE_CHECKING:
    from osler.app.config import Settings


def calibrate(
    context: typer.Context,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Questions of your own, as JSON Lines; else those that come with Osler,"
            " which its sample texts answer. For tau each line needs an answer."
        ),
    ] = None,
    quantile: Annotated[
        float,
        typer.Option(
            min=0.01,
            max=0.99,
            help="Share of conclusions that may stand; for"
            " tau, of believed answers that are right.",
        ),
    ] = 0.9,
    metric: Annotated[
        Literal["cppl", "uct"] | None, typer.Option(help="As strategy.metric.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where strategy.sigma or tau is set: take it out.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit TC-RAG's sigma, or KAG-Thinker's tau, to the model; write it into the settings file.

    Which one says strategy.kind. It is used for this model (and metric) alone, and a run that
    rests on it says so.
    """
    here = open_session(context, as_json=as_json, quiet=quiet)
    loaded = here.load_layers({"strategy.metric": metric})
    from osler.app import calibrate as fitting
    from osler.app.config import KagThinkerSettings

    if not (force or dry_run):
        fitting.refuse_hand_set(loaded)
    today = datetime.now(UTC).date()
    named = str(questions) if questions else fitting.PACKAGED
    fit = (
        _calibrate_tau
        if isinstance(loaded.settings.strategy, KagThinkerSettings)
        else _calibrate_sigma
    )
    found, page, values = fit(here, loaded.settings, questions, quantile, named, today)
    path = Path.cwd() / (here.file or "osler.toml")
    if not dry_run:
        fitting.write_calibration(found, path, force=force)
    here.show_result(
        page, {**asdict(found), "values": values, "path": None if dry_run else str(path)}
    )
    if not dry_run:
        here.print_line(f"written to {path}")


def _calibrate_sigma(
    here: CliSession, settings: Settings, file: Path | None, share: float, named: str, today: date
) -> tuple[Any, Any, list[dict[str, object]]]:
    from osler.app import calibrate as fitting
    from osler.cli.model_tables import calibration_page

    asked = fitting.read_questions(file) if file else fitting.packaged_questions()
    with show_progress(here) as report:
        measured = asyncio.run(fitting.measure_state_values(settings, asked, progress=report))
    found = fitting.fit_sigma(measured, quantile=share, questions=named, today=today)
    values: list[dict[str, object]] = [
        {"question": v.question.text, "value": v.value} for v in measured.values
    ]
    return found, calibration_page(measured, found), values


def _calibrate_tau(
    here: CliSession, settings: Settings, file: Path | None, share: float, named: str, today: date
) -> tuple[Any, Any, list[dict[str, object]]]:
    from osler.app import calibrate as fitting
    from osler.cli.model_tables import tau_page

    asked = fitting.read_graded(file) if file else fitting.packaged_graded()
    with show_progress(here) as report:
        model, points = asyncio.run(fitting.measure_tau(settings, asked, progress=report))
    found = fitting.fit_tau(model, points, share=share, questions=named, today=today)
    values: list[dict[str, object]] = [
        {
            "question": point.question.text,
            "answer": point.answer,
            "probability": point.probability,
            "right": point.right,
        }
        for point in points
    ]
    return found, tau_page(points, found), values

"""`osler calibrate`: sigma fitted to the model that is configured."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from osler.cli.progress import progress
from osler.cli.session import Json, Quiet, session


def calibrate(
    context: typer.Context,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Questions of your own, as JSON Lines; else those that come with Osler,"
            " which its sample texts answer."
        ),
    ] = None,
    quantile: Annotated[
        float, typer.Option(min=0.01, max=0.99, help="Share of conclusions that may stand.")
    ] = 0.9,
    metric: Annotated[
        Literal["cppl", "uct"] | None, typer.Option(help="As strategy.metric.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where strategy.sigma is set: take it out.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit TC-RAG's sigma to the model, and write it into the settings file.

    It is used for this model and metric alone, and an answer that rests on it says so.
    """
    here = session(context, as_json=as_json, quiet=quiet)
    loaded = here.loaded({"strategy.metric": metric})
    from osler import calibrate as fitting
    from osler.cli.model_tables import calibration_page

    if not (force or dry_run):
        fitting.refuse_hand_set(loaded)
    asked = fitting.read_questions(questions) if questions else fitting.packaged_questions()
    with progress(here) as report:
        measured = asyncio.run(fitting.measure(loaded.settings, asked, progress=report))
    found = fitting.fit(
        measured,
        quantile=quantile,
        questions=str(questions) if questions else fitting.PACKAGED,
        today=datetime.now(UTC).date(),
    )
    path = Path.cwd() / (here.file or "osler.toml")
    if not dry_run:
        fitting.write(found, path, force=force)
    values = [{"question": v.question.text, "value": v.value} for v in measured.values]
    document = {**asdict(found), "values": values, "path": None if dry_run else str(path)}
    here.show(calibration_page(measured, found), document)
    if not dry_run:
        here.say(f"written to {path}")

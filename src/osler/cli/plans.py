"""`osler plans`: what each source is worth, and what plans are like, over many questions."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from osler.cli.options import Offered, Planner
from osler.cli.progress import show_progress
from osler.cli.session import Json, Quiet, open_session


def plans(
    context: typer.Context,
    questions: Annotated[
        Path,
        typer.Argument(
            help='JSON Lines of {"question", "options", "answer"}; open questions are left out.'
        ),
    ],
    planner: Planner = None,
    sources: Offered = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only so many questions, from the first.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure source plans: accuracy without each source in turn, queries, words, diversity, cost.

    Each question is planned and searched once, and read once for each row.
    """
    here = open_session(context, as_json=as_json, quiet=quiet)
    settings = here.load_settings(
        {"strategy.kind": "omni-rag", "strategy.planner": planner, "kb.sources": sources}
    )
    from osler.app.plans import study_plans
    from osler.cli.plan_tables import plans_page
    from osler.evaluate.labeled_questions import read_posed

    posed = read_posed(questions, marked=True)[:limit]
    with show_progress(here) as told:
        found = asyncio.run(study_plans(settings, posed, told))
    here.show_result(plans_page(found), asdict(found))

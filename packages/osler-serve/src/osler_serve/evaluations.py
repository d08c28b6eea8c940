"""Evaluation reports over HTTP: the figures of the log folders' own reports."""

from __future__ import annotations

import asyncio
from pathlib import Path as Folder
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from osler.errors import BadRun
from osler_lab.evaluate.measures import Measure
from osler_lab.evaluate.plan import PLAN, read_plan
from osler_lab.evaluate.report import (
    HEAD,
    EvaluationReport,
    describe_comparison,
    list_exclusions,
    opponent_facts,
    report_facts,
)
from osler_serve import evaluation_replies, schemas
from osler_serve.problems import RefusedRequest
from osler_serve.state import ServerState, current_state

At = Annotated[ServerState, Depends(current_state)]
Name = Annotated[
    str,
    Path(max_length=100, pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$", description="Of a log folder."),
]
# In `home`: where the log folders lie that are shown.
FOLDER = "eval"
_LISTED = 200

router = APIRouter(prefix="/api/v1", tags=["evaluation"], responses=schemas.PROBLEMS)


@router.get("/evaluations")
async def list_evaluations(site: At) -> evaluation_replies.EvaluationList:
    """The log folders of `osler eval` that lie in `eval` of home."""
    return evaluation_replies.EvaluationList(
        evaluations=await asyncio.to_thread(_list_folders, site.settings.home / FOLDER)
    )


@router.get("/evaluations/{name}")
async def get_evaluation(name: Name, site: At) -> evaluation_replies.EvaluationView:
    """The figures of one with their intervals, as `osler eval report` writes them."""
    return _evaluation_view(name, await _load_report(site, name))


@router.get("/evaluations/{name}/samples")
async def get_samples(
    name: Name,
    site: At,
    strategy: Annotated[str, Query(max_length=200)],
    task: Annotated[str, Query(max_length=200)],
) -> evaluation_replies.EvaluationSampleList:
    """Samples of one strategy on one task, failures first."""
    cell = (await _load_report(site, name)).cell_of(strategy, task)
    if cell is None:
        raise RefusedRequest(404, "unknown_evaluation", "no such strategy on such a task")
    return evaluation_replies.EvaluationSampleList(
        samples=[
            evaluation_replies.EvaluationSample.from_value(
                one, options=[f"{letter}. {text}" for letter, text in one.options]
            )
            for one in cell.shown
        ]
    )


async def _load_report(site: ServerState, name: str) -> EvaluationReport:
    folder = site.settings.home / FOLDER / name
    if not await asyncio.to_thread((folder / PLAN).is_file):
        raise RefusedRequest(404, "unknown_evaluation", f"there is no log folder {name!r}")
    try:
        return await site.reports.load_report(folder)
    except BadRun as error:
        raise RefusedRequest(
            409, "damaged_evaluation", _without_path(error, folder), fix=error.fix
        ) from error


def _list_folders(folder: Folder) -> list[evaluation_replies.EvaluationSummary]:
    if not folder.is_dir():
        return []
    plans = sorted(folder.glob(f"*/{PLAN}"))[:_LISTED]
    return [
        _summarise_folder(path.parent) for path in plans if not path.parent.name.startswith(".")
    ]


def _summarise_folder(folder: Folder) -> evaluation_replies.EvaluationSummary:
    plan, damaged = None, ""
    try:
        plan = read_plan(folder)
    except BadRun as error:
        damaged = _without_path(error, folder)
    return evaluation_replies.EvaluationSummary(
        name=folder.name,
        experiment=plan.experiment if plan else "",
        version=plan.version if plan else "",
        strategies=[*plan.entrants] if plan else [],
        tasks=[*plan.tasks] if plan else [],
        damaged=damaged,
    )


def _without_path(error: BadRun, folder: Folder) -> str:
    """Without the path, which is this machine's affair."""
    return error.message.replace(str(folder), folder.name)


def _evaluation_view(name: str, report: EvaluationReport) -> evaluation_replies.EvaluationView:
    wire = evaluation_replies
    return wire.EvaluationView(
        name=name,
        head=HEAD,
        strategies=list(report.strategies),
        tasks=list(report.tasks),
        measures=[_measure_view(report, one) for one in report.measures()],
        cells=[
            wire.EvaluationCell.from_value(one, figures=one.estimates, calibration_error=one.ece)
            for one in report.cells
        ],
        compared=[
            wire.EvaluationPair.from_value(one, verdict=describe_comparison(one))
            for one in report.compared
        ],
        printed=[wire.EvaluationPrinted.from_value(one) for one in report.printed],
        judged=[
            wire.EvaluationJudged.from_value(one, figures=one.estimates) for one in report.judged
        ],
        left_out=list_exclusions(report),
        facts=[*report_facts(report), *opponent_facts(report)],
    )


def _measure_view(report: EvaluationReport, one: Measure) -> evaluation_replies.EvaluationMeasure:
    means = {label: report.macro_mean(label, one.name) for label in report.strategies}
    return evaluation_replies.EvaluationMeasure.from_value(one, means=means)

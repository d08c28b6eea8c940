"""What evaluations found, out of their log folders: the report's own figures, and no others."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path as Folder
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from osler.errors import BadRun
from osler.evaluate.compare import Compared
from osler.evaluate.intervals import Estimate
from osler.evaluate.measures import Measure
from osler.evaluate.plan import PLAN, read
from osler.evaluate.report import Report
from osler.evaluate.report.build import Cell, Judged, Printed
from osler.evaluate.report.tables import HEAD, exclusions, facts, verdict
from osler.serve import schemas, schemas_evaluation
from osler.serve.problems import Refused
from osler.serve.state import Site, site_of

At = Annotated[Site, Depends(site_of)]
Name = Annotated[
    str,
    Path(max_length=100, pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$", description="Of a log folder."),
]
FOLDER = "eval"
"""In `home`: where the log folders lie that are shown."""
_LISTED = 200

router = APIRouter(prefix="/api/v1", tags=["evaluation"], responses=schemas.PROBLEMS)


@router.get("/evaluations")
async def list_evaluations(site: At) -> schemas_evaluation.Evaluations:
    """The log folders of `osler eval` that lie in `eval` of home."""
    return schemas_evaluation.Evaluations(
        evaluations=await asyncio.to_thread(_listed, site.settings.home / FOLDER)
    )


@router.get("/evaluations/{name}")
async def get_evaluation(name: Name, site: At) -> schemas_evaluation.Evaluation:
    """The figures of one with their intervals, as `osler eval report` writes them."""
    return _told(name, await _report(site, name))


@router.get("/evaluations/{name}/samples")
async def get_samples(
    name: Name,
    site: At,
    strategy: Annotated[str, Query(max_length=200)],
    task: Annotated[str, Query(max_length=200)],
) -> schemas_evaluation.EvaluationSamples:
    """Samples of one strategy on one task, failures first."""
    cell = (await _report(site, name)).cell(strategy, task)
    if cell is None:
        raise Refused(404, "unknown_evaluation", "no such strategy on such a task")
    return schemas_evaluation.EvaluationSamples(
        samples=[
            schemas_evaluation.EvaluationSample(
                strategy=one.strategy,
                task=one.task,
                id=one.id,
                question=one.question,
                options=[f"{letter}. {text}" for letter, text in one.options],
                gold=one.gold,
                answer=one.answer,
                score=one.score,
                why=one.why,
            )
            for one in cell.shown
        ]
    )


async def _report(site: Site, name: str) -> Report:
    folder = site.settings.home / FOLDER / name
    if not await asyncio.to_thread((folder / PLAN).is_file):
        raise Refused(404, "unknown_evaluation", f"there is no log folder {name!r}")
    try:
        return await site.reports.of(folder)
    except BadRun as error:
        raise Refused(409, "damaged_evaluation", _bare(error, folder), fix=error.fix) from error


def _listed(folder: Folder) -> list[schemas_evaluation.EvaluationListed]:
    if not folder.is_dir():
        return []
    plans = sorted(folder.glob(f"*/{PLAN}"))[:_LISTED]
    return [_line(path.parent) for path in plans if not path.parent.name.startswith(".")]


def _line(folder: Folder) -> schemas_evaluation.EvaluationListed:
    try:
        plan = read(folder)
    except BadRun as error:
        return schemas_evaluation.EvaluationListed(
            name=folder.name,
            experiment="",
            version="",
            strategies=[],
            tasks=[],
            damaged=_bare(error, folder),
        )
    return schemas_evaluation.EvaluationListed(
        name=folder.name,
        experiment=plan.experiment,
        version=plan.version,
        strategies=list(plan.entrants),
        tasks=list(plan.tasks),
        damaged="",
    )


def _bare(error: BadRun, folder: Folder) -> str:
    """Without the path, which is this machine's affair."""
    return error.message.replace(str(folder), folder.name)


def _figure(found: Estimate) -> schemas_evaluation.Figure:
    return schemas_evaluation.Figure(**asdict(found))


def _figures(found: dict[str, Estimate]) -> dict[str, schemas_evaluation.Figure]:
    return {name: _figure(one) for name, one in found.items()}


def _told(name: str, report: Report) -> schemas_evaluation.Evaluation:
    return schemas_evaluation.Evaluation(
        name=name,
        head=HEAD,
        strategies=list(report.strategies),
        tasks=list(report.tasks),
        measures=[_measure(report, one) for one in report.measures()],
        cells=[_cell(one) for one in report.cells],
        compared=[_pair(one) for one in report.compared],
        printed=[_printed(one) for one in report.printed],
        judged=[_judged(one) for one in report.judged],
        left_out=exclusions(report),
        facts=facts(report),
    )


def _measure(report: Report, one: Measure) -> schemas_evaluation.EvaluationMeasure:
    return schemas_evaluation.EvaluationMeasure(
        name=one.name,
        title=one.title,
        percent=one.percent,
        means={label: report.macro(label, one.name) for label in report.strategies},
    )


def _cell(one: Cell) -> schemas_evaluation.EvaluationCell:
    return schemas_evaluation.EvaluationCell(
        strategy=one.strategy,
        task=one.task,
        planned=one.planned,
        done=one.done,
        failed=one.failed,
        missing=one.missing,
        figures=_figures(one.estimates),
        calibration_error=one.ece,
    )


def _pair(one: Compared) -> schemas_evaluation.EvaluationPair:
    return schemas_evaluation.EvaluationPair(
        task=one.task,
        first=one.first,
        second=one.second,
        measure=one.measure,
        change=_figure(one.change),
        test=one.test,
        p=one.p,
        corrected=one.corrected,
        verdict=verdict(one),
        unpaired=one.unpaired,
    )


def _printed(one: Printed) -> schemas_evaluation.EvaluationPrinted:
    return schemas_evaluation.EvaluationPrinted(
        place=one.place,
        task=one.task,
        strategy=one.strategy,
        theirs=one.theirs,
        ours=_figure(one.ours),
        differs=one.differs,
    )


def _judged(one: Judged) -> schemas_evaluation.EvaluationJudged:
    return schemas_evaluation.EvaluationJudged(
        form=one.form,
        judge=one.judge,
        strategy=one.strategy,
        task=one.task,
        figures=_figures(one.estimates),
        unread=one.unread,
    )

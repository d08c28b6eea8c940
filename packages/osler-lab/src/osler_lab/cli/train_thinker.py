"""`osler train thinker-data` and `evaluate-data`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from osler.cli.options import DryRun
from osler.cli.progress import show_progress
from osler.cli.session import CliSession
from osler_lab.cli.options_train import (
    DataSet,
    JobFolder,
    TaughtOptions,
    TeachingOptions,
)

if TYPE_CHECKING:
    from osler_lab.evaluate.record import Sample
    from osler_lab.train.thinker.export import ExportedData, StageTally
    from osler_lab.train.thinker.rounds import TeachingConfig


def thinker_data(
    here: CliSession,
    log_dir: JobFolder,
    out: DataSet = None,
    *,
    asked: TaughtOptions,
    teaching: TeachingOptions,
    licence: Annotated[str, typer.Option(help="A word of the hub, for the card.")] = "other",
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same samples.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Concurrent questions.")] = 1,
    dry_run: DryRun = False,
) -> None:
    """Have the planner solve questions as KAG-Thinker, and keep what is right as training data.

    What the log folder holds is not done again; several processes and hosts may share it. Exit
    code 6: some tries failed.
    """
    settings = here.load_settings({"strategy.kind": "kag-thinker", "sampling.seed": seed})
    samples = _read_samples(asked, settings.sampling.seed)
    if dry_run:
        _say_load(here, log_dir, teaching, samples)
        return
    from osler_lab.build.teaching import teaching_config
    from osler_lab.train.thinker import export

    if samples:
        course = teaching_config(
            settings,
            teaching.stage,
            knows=teaching.boundary,
            rounds=teaching.rounds,
            by=teaching.inspect,
            grades=teaching.grade,
            restructure=teaching.restructure,
        )
        asyncio.run(_run_teaching(here, log_dir, course, jobs, samples))
    tallies, written = export.stage_tallies(log_dir), None
    if out is not None:
        written = export.export_data(log_dir, out, stages=(teaching.stage,), licence=licence)
    _show_tallies(here, log_dir, tallies, written)


async def _run_teaching(
    here: CliSession,
    folder: Path,
    course: Awaitable[TeachingConfig],
    jobs: int,
    samples: Sequence[Sample],
) -> None:
    from osler_lab.train.thinker.rounds import TeachingJob

    agreed = await course
    with show_progress(here) as report:
        await TeachingJob(folder, agreed, jobs, report).run(samples)


def _show_tallies(
    here: CliSession, folder: Path, tallies: Sequence[StageTally], written: ExportedData | None
) -> None:
    from osler.cli.session import PARTIAL

    here.show(
        {
            "log": str(folder),
            "stages": [asdict(tally) for tally in tallies],
            "written": asdict(written) if written else None,
        }
    )
    if written is not None:
        here.print_line(
            f"{written.lines:,} lines in {written.folder}; next: osler train evaluate-data"
        )
    if any(tally.failed for tally in tallies):
        raise typer.Exit(PARTIAL)


def _read_samples(asked: TaughtOptions, seed: int) -> list[Sample]:
    """The samples of the part. Raises `BadConfig` where the named data sets have none."""
    if not asked.tasks:
        return []
    from osler.errors import BadConfig
    from osler_lab.studies.tasks import read_training_task
    from osler_lab.train.spo.explore import part_of

    words = [word.strip() for word in asked.tasks.split(",") if word.strip()]
    every = (sample for word in words for sample in read_training_task(word, asked.data).samples)
    of_part = [
        sample
        for sample in every
        if asked.part in ("all", part_of(sample.question, seed=seed, held_out=asked.held_out))
    ]
    if samples := _limit_each(of_part, asked.limit, seed):
        return samples
    raise BadConfig(f"no question is in the part {asked.part}", fix="change --part or --held-out")


def _limit_each(samples: Sequence[Sample], limit: int | None, seed: int) -> list[Sample]:
    """Draws at most `limit` samples of each data set, by the seed."""
    from osler_lab.evaluate.plan import choose_samples

    names = dict.fromkeys(sample.task for sample in samples)
    return [
        one
        for name in names
        for one in choose_samples([s for s in samples if s.task == name], limit, seed)
    ]


def _say_load(
    here: CliSession, folder: Path, teaching: TeachingOptions, samples: Sequence[Sample]
) -> None:
    """Estimates what is left to do from the mean of what was done."""
    from osler_lab.train.thinker.rounds import load_of

    here.show(asdict(load_of(folder, teaching.stage, samples, teaching.rounds)))


def evaluate_data(
    here: CliSession,
    data: Annotated[Path, typer.Argument(help="A folder with data.jsonl, or the file itself.")],
    by: Annotated[
        Literal["rules", "model", "both"],
        typer.Option(help="Rules; the role judge; or rules first, and the judge for the rest."),
    ] = "rules",
    verdicts: Annotated[
        Path | None,
        typer.Option(help="Keep verdicts in this file; what it holds is not judged again."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--report", help="Write the report as Markdown here.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Most samples.")] = None,
) -> None:
    """Judge training data in six dimensions; against labels, where lines have them.

    Exit code 1: some sample is bad.
    """
    from osler.cli.session import ABSTAINED
    from osler_lab.build import teaching
    from osler_lab.train.thinker import tables
    from osler_lab.train.thinker.quality import InspectionRun, inspect_all, read_items

    items = read_items(data)[:limit]
    settings = here.load_settings()

    async def judge_items() -> InspectionRun:
        inspector = await teaching.build_data_inspector(settings, by)
        with show_progress(here) as report:
            return await inspect_all(items, inspector, verdicts, report)

    made = asyncio.run(judge_items())
    shares = tables.verdict_shares(made.found)
    labelled = any(item.labels for item in items)
    against = tables.validate_judge(items, made.found) if labelled else None
    text = tables.render_report(shares, against)
    if page is not None:
        _write_report(page, text)
    from rich.markdown import Markdown

    here.show_result(
        Markdown(text),
        {
            "shares": asdict(shares),
            "against": asdict(against) if against else None,
            "bad": {one.id: list(one.reasons) for one in made.found if one.good is False},
            "usage": asdict(made.usage),
        },
    )
    if shares.bad[tables.ALL]:
        raise typer.Exit(ABSTAINED)


def _write_report(path: Path, text: str) -> None:
    from osler.errors import BadRun, translate_os_errors

    with translate_os_errors(f"{path} cannot be written", BadRun):
        path.write_text(text, encoding="utf-8")

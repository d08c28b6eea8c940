"""`osler train make`, `thinker-data` and `evaluate-data`: records to learn from."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from osler.cli.options import DryRun
from osler.cli.progress import show_progress
from osler.cli.session import CliSession
from osler_lab.cli.options_train import (
    Ablation,
    CountOnly,
    DataSet,
    JobFolder,
    JudgedBy,
    JudgedFolder,
    Records,
    SelectionOptions,
    TaughtOptions,
    TeachingOptions,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from osler_lab.evaluate.record import Sample
    from osler_lab.train.record import Kind
    from osler_lab.train.spo.recipe import RecordRecipe
    from osler_lab.train.thinker.export import ExportedData, StageTally
    from osler_lab.train.thinker.rounds import TeachingConfig


def make(
    here: CliSession,
    kind: Annotated[
        Literal["sft", "dpo"],
        typer.Argument(help="sft: positive plans (Eq. 2); dpo: a better and a worse (Eq. 3-4)."),
    ],
    log_dir: JudgedFolder,
    out: Records,
    judged_by: JudgedBy = "",
    ablation: Ablation = None,
    negative: Annotated[
        bool,
        typer.Option("--negative", help="sft: learn the negative plans (Omni-RAG Table 10)."),
    ] = False,
    *,
    selection: SelectionOptions,
    dry_run: CountOnly = False,
) -> None:
    """Write prompts with plans, for supervised fine-tuning or for DPO (Omni-RAG Eq. 2-4)."""
    recipe = _record_recipe(log_dir, selection)
    if negative:
        recipe = replace(recipe, learns="negative")
    _make_records(here, kind, log_dir, out, judged_by, recipe, ablation, dry_run=dry_run)


def _record_recipe(log_dir: Path, selection: SelectionOptions) -> RecordRecipe:
    from osler_lab.train.spo.job import offers_of
    from osler_lab.train.spo.recipe import RecordRecipe

    offers = offers_of(log_dir)
    names = [offer.name for offer in offers]
    left_out = tuple(selection.without_source or ())
    _require_explored(left_out, names)
    return RecordRecipe(
        offers,
        seed=selection.seed,
        at_most=selection.queries,
        ratio=selection.ratio,
        without_tasks=tuple(selection.without_task or ()),
        without_sources=left_out,
        longest=selection.longest,
    )


def _require_explored(left_out: Sequence[str], names: Sequence[str]) -> None:
    """Raises `BadConfig` for a source that is to be left out and was never asked."""
    from osler.errors import BadConfig

    if unknown := [name for name in left_out if name not in names]:
        raise BadConfig(f"{unknown[0]!r} was not explored", fix=f"it has {', '.join(names)}")


def _make_records(
    here: CliSession,
    kind: Kind,
    log_dir: Path,
    out: Path,
    judged_by: str,
    recipe: RecordRecipe,
    ablation: str | None,
    *,
    dry_run: bool,
) -> None:
    from osler_lab.train import ablations
    from osler_lab.train.record import write_records
    from osler_lab.train.spo import recipe as recipes
    from osler_lab.train.spo.job import chosen_judge, exploration_of

    if ablation:
        recipe = ablations.read_variant(ablation).recipe(recipe, kind)
        _require_explored(recipe.without_sources, [offer.name for offer in recipe.offers])
    name, stage = chosen_judge(log_dir, judged_by)
    made = recipes.RecordTally()
    records = (recipes.sft_records if kind == "sft" else recipes.dpo_records)(
        recipe, stage.results(), made
    )
    lines = (record.line for record in records)
    # Records are made lazily and counted as they pass; a dry run lets them pass.
    if dry_run:
        for _ in lines:
            pass
    else:
        write_records(out, lines)
    document = _record_document(made)
    if not dry_run:
        explored = exploration_of(log_dir)
        facts = recipes.recipe_facts(recipe, made, explored, name, ablation or "")
        recipes.write_record_card(out, kind, made, facts)
    here.show({"out": str(out), "judge": name, **document})
    if not dry_run:
        here.print_line(f"written to {out}; next: osler train tune {kind} {out}")


def _record_document(made: Any) -> dict[str, Any]:
    size = made.size
    return {
        "questions": made.cases,
        "records": size.records,
        "left_out": dict(made.left_out),
        "tasks": dict(made.tasks),
        "queries": dict(made.queries),
        "prompt_tokens": size.prompt,
        "reply_tokens": size.reply,
        "longest": size.longest,
    }


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
        from osler_lab.train.thinker.rounds import load_of

        here.show(asdict(load_of(log_dir, teaching.stage, samples, teaching.rounds)))
        return
    from osler_lab.build.training import teaching_config
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
    limit: Annotated[int | None, typer.Option(min=1, help="Most samples.")] = None,
) -> None:
    """Judge training data in six dimensions; against labels, where lines have them.

    Exit code 1: some sample is bad.
    """
    from osler.cli.session import ABSTAINED
    from osler_lab.build import training as teaching
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
    here.show(
        {
            "shares": asdict(shares),
            "against": tables.validation_document(against) if against else None,
            "bad": {one.id: list(one.reasons) for one in made.found if one.good is False},
            "usage": asdict(made.usage),
        }
    )
    if shares.bad[tables.ALL]:
        raise typer.Exit(ABSTAINED)

"""`osler train …`: training data and training."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from osler.cli.options import DryRun, Offered
from osler.cli.progress import show_progress
from osler.cli.session import CliSession
from osler_lab.cli.options_train import (
    CaseOptions,
    JobFolder,
    JudgeOf,
    Least,
    Queries,
    SupportBy,
    Unit,
    WorkerOptions,
)

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder
    from osler_lab.build.training import ExploringWork, TrainingWork
    from osler_lab.train.spo.explore import ExploredCase, TrainingCase
    from osler_lab.train.spo.job import JobStage
    from osler_lab.train.spo.judge import JudgedCase
    from osler_lab.train.spo.judge import Unit as JudgedUnit


def explore(
    here: CliSession,
    log_dir: JobFolder,
    queries: Queries = 6,
    sources: Offered = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same split.")] = None,
    *,
    asked: CaseOptions,
    workers: WorkerOptions,
    dry_run: DryRun = False,
) -> None:
    """Propose diverse queries for each source, and search them (Omni-RAG §4.2.1).

    What the folder holds is not done again. Exit code 6: some questions failed.
    """
    flags = {"strategy.kind": "omni-rag", "kb.sources": sources, "sampling.seed": seed}
    settings = here.load_settings(flags)
    from osler.build.models import load_encoder
    from osler_lab.build import training
    from osler_lab.jobs.journal import require_agreement
    from osler_lab.train.spo.job import explored_in

    cases = tuple(_read_cases(asked, settings.sampling.seed))
    work = training.ExploringWork(settings, log_dir, cases, queries, workers.jobs)
    if dry_run:
        _say_exploring(here, work)
        return
    # What is judged here is learnt: held-out questions have a folder of their own.
    require_agreement(log_dir, "part", {"part": asked.part, "held-out": asked.held_out})
    _run_work(here, work, workers)

    summary = explored_summary(explored_in(log_dir), load_encoder(settings))
    here.show({"log": str(log_dir), **summary})
    here.print_line(f"next: osler train judge --log-dir {log_dir}")
    _exit_if_partial(summary)


def _read_cases(asked: CaseOptions, seed: int) -> list[TrainingCase]:
    from osler.errors import BadConfig
    from osler_lab.train import choose_named
    from osler_lab.train.spo.explore import PARTS, TrainingCase, of_part, read_cases

    wanted = choose_named(asked.part, PARTS, "part")
    if (asked.questions is None) == (asked.tasks is None):
        raise BadConfig("give either --questions or --tasks")
    if asked.questions is not None:
        cases = read_cases(asked.questions)
    else:
        from osler_lab.studies.tasks import read_training_task

        words = [word.strip() for word in (asked.tasks or "").split(",") if word.strip()]
        loaded = [read_training_task(word, asked.data) for word in words]
        # What they rest on is not named by documents of ours.
        cases = [TrainingCase(sample) for one in loaded for sample in one.samples]
    chosen = of_part(cases, wanted, seed=seed, held_out=asked.held_out)
    if not chosen:
        raise BadConfig(
            f"none of {len(cases)} questions is in the part {wanted}", fix="change --held-out"
        )
    return chosen[: asked.limit]


def judge(
    here: CliSession,
    log_dir: JobFolder,
    by: SupportBy = None,
    unit: Unit = "list",
    least: Least = None,
    ablation: JudgeOf = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Compare the verdicts (Omni-RAG Table 9) with those of another judge, by the"
            " beginning of its name, or with people's: CSV of case, source, query, verdict."
        ),
    ] = None,
    *,
    workers: WorkerOptions,
    dry_run: DryRun = False,
) -> None:
    """Judge which queries found support for the gold answer (Omni-RAG §4.2.2).

    What was judged is not judged again. Several judges may judge one folder. Exit code 6: some
    questions failed.
    """
    from osler.cli.session import parse_flags
    from osler_lab.build import training
    from osler_lab.train import ablations

    row = ablations.read_variant(ablation) if ablation else None
    settings = here.load_settings(
        {"strategy.kind": "omni-rag", **(parse_flags(row.settings) if row else {})}
    )
    named = training.parse_judge(by or (row.judge if row else "") or "model")
    work = training.JudgingWork(
        settings, log_dir, named, training.parse_unit(unit), least, workers.jobs
    )
    if dry_run:
        here.show(judging_load(log_dir, named, work.unit))
        return
    name = _run_work(here, work, workers)
    from osler_lab.train.spo.job import judged_in

    judged = judged_in(log_dir, name)
    summary = judged_summary(name, judged)
    if against is not None:
        summary["agreement"] = _compare_verdicts(log_dir, judged, against)
    here.show({"log": str(log_dir), **summary})
    here.print_line(f"next: osler train make sft --log-dir {log_dir} --out FOLDER")
    _exit_if_partial(summary)


def _compare_verdicts(
    folder: Path, judged: JobStage[JudgedCase], against: str
) -> dict[str, object]:
    from dataclasses import asdict

    from osler_lab.train.spo.job import chosen_judge
    from osler_lab.train.spo.judge import compare_judges, read_people, read_verdicts

    if Path(against).is_file():
        true = read_people(Path(against))
    else:
        against, other = chosen_judge(folder, against)
        true = read_verdicts(other.results())
    return {"reference": against, **asdict(compare_judges(read_verdicts(judged.results()), true))}


def _run_work(here: CliSession, work: TrainingWork, workers: WorkerOptions) -> str:
    """The name of who did it."""
    from osler.errors import BadConfig
    from osler_lab.build import training

    if workers.on not in ("processes", "ray"):
        raise BadConfig(f"unknown --on {workers.on!r}", fix="choose one of processes, ray")
    # One worker is this process: nothing to pickle, and its progress is shown.
    if workers.on == "ray" or (workers.workers or 1) > 1:
        kind: Literal["processes", "ray"] = "ray" if workers.on == "ray" else "processes"
        return training.run_on_workers(work, kind, workers.workers)
    with show_progress(here) as report:
        return asyncio.run(work.run(report))


def _exit_if_partial(summary: dict[str, Any]) -> None:
    from osler.cli.session import PARTIAL

    if summary["failed"]:
        raise typer.Exit(PARTIAL)


def _say_exploring(here: CliSession, work: ExploringWork) -> None:
    from osler_lab.build import training
    from osler_lab.train.spo.job import explored_in

    offers = training.offered_sources(work.settings)
    held = explored_in(work.folder).places() if work.folder.is_dir() else {}
    left = sum(case.key not in held for case in work.cases)
    load = {
        "questions": len(work.cases),
        "done": len(work.cases) - left,
        "sources": [offer.name for offer in offers],
        "calls": left,
        "searches": left * len(offers) * work.queries,
    }
    here.show(load)


# Questions whose queries' diversity is measured: it needs their vectors.
_DIVERSE = 200


def explored_summary(stage: JobStage[ExploredCase], encoder: Encoder) -> dict[str, Any]:
    """Questions, queries a source, their diversity (Eq. 5), and what it cost."""
    from osler.methods.omni.plan import SourcePlan
    from osler.types import Usage
    from osler_lab.studies.plans import (
        diversity_by_count,
        diversity_per_plan,
        queries_per_source,
    )

    plans, usage, seconds, names = [], Usage(), 0.0, dict[str, None]()
    for explored in stage.results():
        plans.append(SourcePlan.of(query.query for query in explored.queries))
        usage += explored.usage
        seconds += explored.searching_s
        names |= {query.source: None for query in explored.queries}
    failed = stage.failed_reasons()
    return {
        "questions": len(plans),
        "failed": failed,
        "queries": queries_per_source(plans, names) if plans else {},
        "diversity": diversity_per_plan(plans[:_DIVERSE], names, encoder),
        "diversity_by_queries": diversity_by_count(plans[:_DIVERSE], names, encoder),
        "calls": usage.calls,
        "tokens": usage.tokens,
        "inference_s": round(usage.seconds, 1),
        "searches": usage.searches,
        "search_s": round(seconds, 1),
        **seconds_a_question(len(plans), inference_s=usage.seconds, search_s=seconds),
    }


def seconds_a_question(questions: int, **seconds: float) -> dict[str, float]:
    """Seconds in the model and in searches, each a question (Omni-RAG Tables 11 and 14)."""
    each = seconds if questions else {}
    return {f"{name}_a_question": round(value / questions, 2) for name, value in each.items()}


def judged_summary(name: str, stage: JobStage[JudgedCase]) -> dict[str, Any]:
    """Verdicts by source, and what they cost."""
    from osler.types import Usage

    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    usage, asked, questions, positive, both = Usage(), 0, 0, 0, 0
    for judged in stage.results():
        questions += 1
        usage += judged.usage
        asked += judged.asked
        # `None` is a reply that could not be read: it is neither.
        signs = {verdict.positive for verdict in judged.verdicts}
        positive += True in signs
        both += {True, False} <= signs
        for verdict in judged.verdicts:
            verdicts[verdict.source][_WORD[verdict.positive]] += 1
    return {
        "judge": name,
        "questions": questions,
        "with_a_positive": positive,
        "with_both": both,
        "failed": stage.failed_reasons(),
        "verdicts": {source: dict(counts) for source, counts in verdicts.items()},
        "asked": asked,
        "calls": usage.calls,
        "tokens": usage.tokens,
        "inference_s": round(usage.seconds, 1),
        **seconds_a_question(questions, inference_s=usage.seconds),
    }


_WORD = {True: "positive", False: "negative", None: "unread"}


def judging_load(folder: Path, by: str, unit: JudgedUnit) -> dict[str, Any]:
    """What is there to judge. Raises `BadRun` for a folder that is not explored."""
    from osler_lab.train.spo.job import exploration_of, explored_in
    from osler_lab.train.spo.judge import most_calls

    exploration_of(folder)
    load = {"questions": 0, "queries": 0, "calls_at_most": 0}
    for explored in explored_in(folder).results():
        load["questions"] += 1
        load["queries"] += len(explored.queries)
        if by == "model" and explored.case.gold:
            load["calls_at_most"] += most_calls(explored, unit)
    return load

"""`osler eval …`: strategies compared on data sets, resumed, merged and reported."""

from __future__ import annotations

import asyncio
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from osler.cli.options import Data, EstimateAlone, JsonSession
from osler.cli.progress import show_progress
from osler.cli.session import CliSession
from osler_lab.cli.evaluate_results import LogDir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from osler.build import Parts
    from osler.llm.recording.tape import Tape
    from osler.runs.estimates import CostEstimate
    from osler.settings import Settings
    from osler_lab.evaluate.experiments import Experiment
    from osler_lab.evaluate.runner import SolvedRun
    from osler_lab.studies.evaluation import KeepRun, Load, Trial
    from osler_lab.studies.replies import ResponseCache

Limit = Annotated[int | None, typer.Option(min=1, help="Most samples of each data set.")]


@dataclass(frozen=True)
class TriedOptions:
    """Strategies and samples. An option that is given wins over the experiment's."""

    tasks: Annotated[
        str | None,
        typer.Option(
            help='Data sets, as in "medqa-us,bioasq@test"; NAME=FILE for a file elsewhere.'
        ),
    ] = None
    strategies: Annotated[
        str | None,
        typer.Option(
            help='Strategies or presets, with settings after colons: "rag,tc-rag:metric=uct";'
            " all: every strategy that the model can serve."
        ),
    ] = None
    experiment: Annotated[
        str | None,
        typer.Option(help="An experiment by name or file; other options go before it."),
    ] = None
    ablation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME:ROW",
            help="Test a planner as the row of a training ablation says: on its data sets, with"
            " its sources alone on offer.",
        ),
    ] = None
    data: Data = None
    limit: Limit = None
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed that chooses the samples; 0 by default.")
    ] = None
    trained_on: Annotated[
        bool,
        typer.Option(
            "--trained-on",
            help="Measure also questions that a model was trained on; the report marks them.",
        ),
    ] = False
    unseen: Annotated[
        bool,
        typer.Option(
            "--unseen",
            help="Leave out, for all strategies alike, questions that any model was trained on.",
        ),
    ] = False


@dataclass(frozen=True)
class WorkOptions:
    """What is done at once, again, and kept."""

    jobs: Annotated[int, typer.Option(min=1, max=256, help="Concurrent samples.")] = 1
    retry: Annotated[
        bool, typer.Option("--retry/--no-retry", help="Try samples again that failed before.")
    ] = True
    tapes: Annotated[
        bool,
        typer.Option("--tapes", help="Keep each run with its tape, so that it can be replayed."),
    ] = False
    replies: Annotated[
        Path | None,
        typer.Option(help="File of replies; a request that it holds is not sent again."),
    ] = None
    plans: Annotated[
        Path | None,
        typer.Option(
            help="Folder of source plans: omni-rag plans and searches a question once, and every"
            " reader reads the same."
        ),
    ] = None
    on: Annotated[
        Literal["processes", "ray"] | None,
        typer.Option("--on", help="Try samples on worker processes, or on a Ray cluster."),
    ] = None
    workers: Annotated[
        int | None, typer.Option(min=1, help="Workers, with --on; by default one per core.")
    ] = None
    estimate: EstimateAlone = False


def run(here: CliSession, log_dir: LogDir, *, tried: TriedOptions, work: WorkOptions) -> None:
    """Run strategies on data sets. Samples that the log folder holds are not run again.

    Several processes and hosts may work on one log folder. Exit code 6: some samples failed.
    """
    from osler.cli.session import PARTIAL
    from osler_lab.cli.evaluate_pages import summarise_log

    if work.workers is not None and work.on is None:
        raise typer.BadParameter("it goes with --on", param_hint="--workers")
    trial, left_out = _make_trial(here, tried)
    if work.plans and "omni-rag" not in {one.strategy.kind for one in trial.settings.values()}:
        raise typer.BadParameter("no strategy here is omni-rag", param_hint="--plans")
    if work.estimate:
        show_trial_cost(here, trial, log_dir)
        return
    if work.on is not None:
        _run_on_workers(trial, log_dir, work)
    else:
        _run_here(here, trial, log_dir, work)
    cells = summarise_log(log_dir)
    here.show({"log": str(log_dir), "cells": cells, "left_out": left_out})
    here.print_line(f"next: osler eval report --log-dir {log_dir}")
    if any(cell["failed"] for cell in cells):
        raise typer.Exit(PARTIAL)


def _run_on_workers(trial: Trial, log_dir: Path, work: WorkOptions) -> None:
    """Raises `BadConfig` for what one process alone keeps."""
    from osler.build.knowledge import bulk_runner
    from osler.errors import BadConfig
    from osler_lab.studies.evaluation import SharedTrial

    if work.tapes or work.replies is not None:
        said = "workers share neither tapes nor a file of replies"
        raise BadConfig(said, fix="leave out --tapes and --replies, or --on")
    assert work.on is not None  # noqa: S101  the caller looked
    shared = SharedTrial(trial, log_dir.resolve(), work.jobs, work.retry, work.plans)
    pool = bulk_runner(work.on, work.workers)
    shared.run_on(pool, pool.workers)


def _run_here(here: CliSession, trial: Trial, log_dir: Path, work: WorkOptions) -> None:
    from osler_lab.studies import evaluation

    with show_progress(here) as report, open_replies(work.replies) as known:
        if report is not None:  # the first sample may take minutes
            report("opening models and data", 0, None)
        asyncio.run(
            evaluation.run_trial(
                trial,
                log_dir,
                jobs=work.jobs,
                again=work.retry,
                progress=report,
                keep=_run_keeper(log_dir) if work.tapes else None,
                replies=known,
                plans=work.plans,
            )
        )


def show_trial_cost(here: CliSession, trial: Trial, log_dir: Path) -> None:
    """Tells the cost of what the log folder lacks, by strategy and in all; no model is asked."""
    from dataclasses import asdict

    from osler.build.privacy import open_runs
    from osler.runs.estimates import combine_estimates

    opens = open_runs(here.load_settings())
    found = asyncio.run(estimate_trial(trial, log_dir, opens=opens))
    whole = combine_estimates([*found.values()])
    document = {label: asdict(one) for label, one in found.items()}
    here.show(
        {"strategies": document, "in_all": whole and asdict(whole)},
        {**document, "in all": asdict(whole)} if whole else {"left to do": "nothing"},
    )


async def estimate_trial(
    trial: Trial, folder: Path, *, opens: Callable[[Path], bool] = lambda _: True
) -> dict[str, CostEstimate]:
    """What each strategy may cost on the samples that its log folder lacks."""
    from osler.runs.estimates import estimate_cost
    from osler_lab.evaluate.log import TriedSamples
    from osler_lab.evaluate.record import SampleKey

    tried = TriedSamples(folder)
    tried.refresh()
    found = {}
    for label, settings in trial.settings.items():
        left = [
            sample.question
            for cell in trial.cells
            if cell.strategy == label
            for sample in cell.samples
            if not tried.is_done(SampleKey(label, cell.task, sample.question.id), again=True)
        ]
        if left:
            found[label] = await estimate_cost(settings, left, opens=opens)
    return found


def _make_trial(here: CliSession, tried: TriedOptions) -> tuple[Trial, dict[str, str]]:
    """What is asked for, and which strategies of `all` are left out, with the reason."""
    from osler_lab.studies import evaluation
    from osler_lab.train.ablations import read_variant

    given = _find_experiment(tried.experiment) if tried.experiment else None
    wanted: Sequence[str] = given.labels if given else ()
    if tried.strategies or not wanted:
        wanted = _split_words(tried.strategies, "--strategies")
    row = read_variant(tried.ablation) if tried.ablation else None
    if row:
        wanted = [row.tested_label(label) for label in wanted]
    labels, left_out = _read_labels(here, wanted)
    usual = (row and row.tested_on) or (given and given.tasks)
    trial = evaluation.make_trial(
        usual if usual and not tried.tasks else _split_words(tried.tasks, "--tasks"),
        labels,
        settings_loader(here),
        data=tried.data,
        limit=tried.limit or (given.limit if given else None),
        seed=tried.seed if tried.seed is not None else (given.seed if given else 0),
        experiment=f"{given.name}: {given.repeats}" if given else "",
        trained_on=tried.trained_on,
        unseen=tried.unseen,
    )
    return trial, left_out


def _read_labels(here: CliSession, wanted: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The strategies' labels, and who is not in `all` and why, which is said."""
    from osler_lab.studies import evaluation

    labels, left_out = evaluation.labels_of(wanted, settings_loader(here))
    for kind, reason in left_out.items():
        here.print_line(f"left out: {kind}, {reason}")
    return labels, left_out


@contextmanager
def open_replies(path: Path | None) -> Iterator[ResponseCache | None]:
    from osler_lab.studies.replies import ResponseCache

    if path is None:
        yield None
        return
    with closing(ResponseCache(path)) as cache:
        yield cache


def _find_experiment(name: str) -> Experiment:
    """Raises `BadConfig` for one that another command runs."""
    from osler.errors import BadConfig
    from osler_lab.evaluate.experiments import read_experiment

    experiment = read_experiment(name)
    if experiment.command:
        raise BadConfig(f"{experiment.name} is run by another command", fix=experiment.command)
    return experiment


def _split_words(given: str | None, option: str) -> list[str]:
    from osler.errors import BadConfig

    # A comma at the end, as shells' completions leave one, names nothing.
    words = [word.strip() for word in (given or "").split(",") if word.strip()]
    if not words:
        raise BadConfig(f"nothing is given with {option}", fix="`osler eval tasks` lists data sets")
    return words


def _run_keeper(folder: Path) -> KeepRun:
    """Runs below the log folder, each as `osler ask` keeps one."""
    from datetime import datetime

    from osler.runs.answering import save_run
    from osler_lab.evaluate.log import RUNS

    def keep_run(settings: Settings, parts: Parts, tape: Tape, done: SolvedRun) -> str:
        when = datetime.fromisoformat(done.when)
        return save_run(
            folder / RUNS,
            settings,
            parts,
            tape,
            done.run,
            done.question,
            when,
            done.seconds,
            done.solution,
        )

    return keep_run


def settings_loader(here: CliSession) -> Load:
    """Settings of one strategy, over those of the call."""

    # A label may name a preset; the call's own preset holds for the others.
    def load_strategy(flags: Mapping[str, object], preset: str | None) -> Settings:
        usual = here.preset
        here.preset = preset or usual
        try:
            return here.load_settings(flags)
        finally:
            here.preset = usual

    return load_strategy


def tasks(here: JsonSession, data: Data = None) -> None:
    """List the data sets and the experiments, and the tables and figures that these repeat.

    With --data also how much of each data set is there, and what was dropped.
    """
    from dataclasses import asdict

    from osler_lab.cli.evaluate_pages import task_rows, tasks_page
    from osler_lab.evaluate.datasets import DATA_SETS
    from osler_lab.evaluate.experiments import experiment_names, read_experiment

    rows, known = task_rows(data), [read_experiment(name) for name in experiment_names()]
    brief = [{"name": one.name, "repeats": one.repeats, "about": one.about} for one in known]
    document = {"tasks": rows, "experiments": [asdict(one) for one in known]}
    here.show(document, {**tasks_page(rows), "experiments": brief})
    if data is not None and not any(
        row["samples"] for row in rows if not DATA_SETS[row["name"]].packaged
    ):
        here.print_line(f"{data} holds the files of no data set")

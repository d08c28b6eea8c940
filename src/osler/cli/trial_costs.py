"""What an evaluation may cost, told before it is run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group

from osler.app.estimates import CostEstimate, combine_estimates, estimate_cost
from osler.app.reach import open_runs
from osler.cli.costs import format_paid, format_range
from osler.cli.tables import make_table, plain_text
from osler.evaluate.log import TriedSamples
from osler.evaluate.record import SampleKey

if TYPE_CHECKING:
    from osler.app.evaluation import Trial
    from osler.cli.session import CliSession


def show_trial_cost(here: CliSession, trial: Trial, log_dir: Path) -> None:
    """Tells the cost of what the log folder lacks, by strategy and in all; no model is asked."""
    opens = open_runs(here.load_settings())
    found = asyncio.run(estimate_trial(trial, log_dir, opens=opens))
    whole = combine_estimates([*found.values()])
    document = {label: asdict(one) for label, one in found.items()}
    told = {"strategies": document, "in_all": whole and asdict(whole)}
    here.show_result(trial_cost_page(found, whole), told)


async def estimate_trial(
    trial: Trial, folder: Path, *, opens: Callable[[Path], bool] = lambda _: True
) -> dict[str, CostEstimate]:
    """What each strategy may cost on the samples that its log folder lacks."""
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


def trial_cost_page(found: Mapping[str, CostEstimate], whole: CostEstimate | None) -> Group:
    """A row for each strategy, and on what its figures rest."""
    if whole is None:
        return Group(plain_text("nothing is left to do"))
    rows = [(label, *_trial_cells(one)) for label, one in found.items()]
    names = ("strategy", "questions", "model calls", "tokens read", "tokens written", "money")
    table = make_table(names, [*rows, ("in all", *_trial_cells(whole))], numeric=names[1:])
    return Group(table, *(plain_text(f"{label}: {one.basis}") for label, one in found.items()))


def _trial_cells(one: CostEstimate) -> tuple[str, ...]:
    ranges = (one.calls, one.prompt_tokens, one.completion_tokens)
    return (f"{one.questions:,}", *map(format_range, ranges), format_paid(one))

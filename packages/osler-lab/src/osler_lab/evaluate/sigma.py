"""Sigma sensitivity (TC-RAG §6.5): the cost of a threshold, and what it lets through.

With a large sigma the first conclusion stands ("overconfident"); with a small one the run
goes on until its steps are spent ("overcautious").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from osler.questions import LabeledQuestion
from osler.trace import Event, Popped, Pushed, StateValued
from osler.types import Halt, Solution
from osler_lab.evaluate.intervals import Estimate, mean, proportion

Metric = Literal["cppl", "uct"]
METRICS: tuple[Metric, ...] = get_args(Metric)


@dataclass(frozen=True, slots=True)
class SigmaOutcome:
    """Outcome of one run under one sigma."""

    id: str
    metric: Metric
    sigma: float
    halt: Halt
    steps: int
    """The last action that was pushed, popped or valued."""
    calls: int
    tokens: int
    values: tuple[float, ...]
    """State values of Thoughts and Conclusions, in order."""
    right: bool | None
    """Whether the option is the right one; `None` where there is no gold answer."""


@dataclass(frozen=True, slots=True)
class SigmaPoint:
    """Summary of all runs under one sigma: a row of the table, a point of the figure."""

    metric: Metric
    sigma: float
    converged: Estimate
    halts: dict[str, int]
    steps: Estimate
    calls: Estimate
    tokens: Estimate
    state: Estimate | None
    """Mean of the last state value of each run that has one."""
    em: Estimate | None
    """Exact match over the runs that have a gold answer."""


def record_outcome(
    posed: LabeledQuestion,
    metric: Metric,
    sigma: float,
    solution: Solution,
    events: Sequence[Event],
) -> SigmaOutcome:
    """Extracts the outcome of a finished run."""
    # `i` counts actions from 1; the last one that touched the stack is the length of the run.
    moved = [e.i for e in events if isinstance(e, Pushed | Popped | StateValued)]
    right = solution.answer.option == posed.gold if posed.gold else None
    return SigmaOutcome(
        posed.question.id,
        metric,
        sigma,
        solution.halt,
        max(moved, default=0),
        solution.usage.calls,
        solution.usage.tokens,
        tuple(e.value for e in events if isinstance(e, StateValued)),
        right,
    )


def summarize_points(outcomes: Sequence[SigmaOutcome]) -> list[SigmaPoint]:
    """Summarises the runs by metric and sigma, in order of both."""
    keys = sorted({(o.metric, o.sigma) for o in outcomes})
    return [
        _summarize_point(*key, [o for o in outcomes if (o.metric, o.sigma) == key]) for key in keys
    ]


def _summarize_point(metric: Metric, sigma: float, runs: Sequence[SigmaOutcome]) -> SigmaPoint:
    judged = [run.right for run in runs if run.right is not None]
    last = [run.values[-1] for run in runs if run.values]
    halts = {halt.value: sum(run.halt is halt for run in runs) for halt in Halt}
    return SigmaPoint(
        metric,
        sigma,
        proportion(halts[Halt.CONVERGED], len(runs)),
        halts,
        mean([run.steps for run in runs]),
        mean([run.calls for run in runs]),
        mean([run.tokens for run in runs]),
        mean(last) if last else None,
        proportion(sum(judged), len(judged)) if judged else None,
    )

"""Plans of many questions: what they are like, and what each source is worth (Omni-RAG Table 6).

Each question is planned and searched once. The reader then reads what was found, what was
found without each source, and nothing, so that all rows differ in the documents alone.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from osler.app import wiring
from osler.app.config import Settings
from osler.app.runs import planning
from osler.evaluate.intervals import Estimate, difference, proportion
from osler.evaluate.labeled_questions import Posed
from osler.evaluate.planning import (
    Cost,
    cost_per_stage,
    diversity_per_plan,
    queries_per_source,
    relative_drop,
    words_per_query,
)
from osler.kb.base import Progress
from osler.methods.omni.dossier import Dossier, dossier
from osler.methods.omni.plan import SourcePlan
from osler.methods.omni.solver import OmniRag
from osler.trace import Event, Run, Spent

ALL, NONE = "all", "none"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of Table 6."""

    sources: str
    """"all", "none", or the one that was left out."""
    accuracy: Estimate
    drop: float | None
    """Relative to all; `None` for all itself, and where all is 0."""
    change: Estimate | None
    """Accuracy minus that of all, paired."""


@dataclass(frozen=True, slots=True)
class PlanReport:
    rows: tuple[Row, ...]
    queries: dict[str, float]
    """Mean queries of a plan, by source (Fig. 7)."""
    words: dict[str, float | None]
    """Mean words of a query (Table 12)."""
    diversity: dict[str, float | None]
    """Mean of Eq. 5 over the plans (Table 13)."""
    costs: dict[str, Cost]
    """Per question, by role, of a run with all sources."""
    seconds: dict[str, float]
    """Wall clock per question, by stage (Table 11)."""
    planner: str
    n: int


@dataclass
class _Kept:
    plans: list[SourcePlan] = field(default_factory=list)
    right: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    events: list[Event] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))


async def report(
    settings: Settings, posed: Sequence[Posed], progress: Progress | None = None
) -> PlanReport:
    """Plans, searches and reads every question, as often as there are sources, and twice more.

    Raises `BadConfig` where the strategy is not Omni-RAG.
    """
    solver, parts = await planning(settings)
    kept = _Kept()
    for number, one in enumerate(posed, 1):
        await _one(settings, solver, parts.sources, one, kept)
        if progress:
            progress("questions", number, len(posed))
    return PlanReport(
        _rows(kept),
        queries_per_source(kept.plans, parts.sources),
        words_per_query(kept.plans, parts.sources),
        diversity_per_plan(kept.plans, parts.sources, wiring.encoder(settings)),
        {role: _share(cost, len(posed)) for role, cost in cost_per_stage(kept.events).items()},
        {stage: seconds / len(posed) for stage, seconds in kept.seconds.items()},
        wiring.planned_by(settings, parts),
        len(posed),
    )


async def _one(
    settings: Settings, solver: OmniRag, sources: tuple[str, ...], one: Posed, kept: _Kept
) -> None:
    run = Run("plans", settings.sampling.seed, wiring.budget(settings))
    plan, found = SourcePlan(), {}
    began = time.perf_counter()
    try:
        proposal = await solver.propose(one.question, run)
        kept.seconds["plan"] += time.perf_counter() - began
        began = time.perf_counter()
        plan, found = proposal.plan, await solver.search(proposal, run)
        kept.seconds["search"] += time.perf_counter() - began
    except Spent:
        kept.seconds["plan"] += time.perf_counter() - began
    kept.plans.append(plan)
    kept.events += run.events
    whole = dossier(plan, sources, found, question=one.question)
    began, reading = time.perf_counter(), _run(settings)
    kept.right[ALL].append(await _right(solver, one, whole, reading))
    kept.seconds["read"] += time.perf_counter() - began
    kept.events += reading.events
    for source in sources:
        left = whole.without(source)
        kept.right[source].append(await _right(solver, one, left, _run(settings)))
    alone = await solver.answer(one.question, {}, _run(settings), alone=True)
    kept.right[NONE].append(alone.answer.option == one.gold)


def _run(settings: Settings) -> Run:
    """Every reading has the same chance and the same bounds."""
    return Run("plans", settings.sampling.seed, wiring.budget(settings))


async def _right(solver: OmniRag, one: Posed, held: Dossier, run: Run) -> bool:
    alone = not held.reading.plan.queries
    solution = await solver.answer(one.question, held.found, run, alone=alone)
    return solution.answer.option == one.gold


def _rows(kept: _Kept) -> tuple[Row, ...]:
    whole = kept.right[ALL]
    accuracy = sum(whole) / len(whole)
    rows = [Row(ALL, proportion(sum(whole), len(whole)), None, None)]
    for name, right in kept.right.items():
        if name != ALL:
            share = proportion(sum(right), len(right))
            change = difference(list(map(float, whole)), list(map(float, right)))
            rows.append(Row(name, share, relative_drop(share.value, accuracy), change))
    return tuple(rows)


def _share(cost: Cost, n: int) -> Cost:
    return Cost(round(cost.calls / n), round(cost.tokens / n), cost.seconds / n)

"""Plans of many questions: what they are like, and what each source is worth (Omni-RAG Table 6).

Each question is planned and searched once. The reader then reads what was found, what was
found without each source, and nothing, so that all rows differ in the documents alone.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from osler.build import Parts
from osler.build.bounds import make_run
from osler.build.models import load_encoder
from osler.build.planning import planner_name
from osler.kb.base import Progress
from osler.methods.omni.dossier import SavedPlan, save_plan
from osler.methods.omni.plan import SourcePlan
from osler.methods.omni.solver import OmniRag
from osler.questions import LabeledQuestion
from osler.runs.answering import open_planning
from osler.settings import Settings
from osler.trace import BudgetExceeded, Event, Run
from osler_lab.evaluate.intervals import Estimate, difference, proportion
from osler_lab.evaluate.planning import (
    StageCost,
    cost_per_stage,
    diversity_per_plan,
    queries_per_source,
    relative_drop,
    words_per_query,
)

ALL, NONE = "all", "none"


@dataclass(frozen=True, slots=True)
class SourceAblation:
    """A row of Table 6."""

    sources: str
    """"all", "none", or the one that was left out."""
    accuracy: Estimate
    drop: float | None
    """Relative to all; `None` for all itself, and where all is 0."""
    change: Estimate | None
    """Accuracy minus that of all, paired."""


@dataclass(frozen=True, slots=True)
class PlanStudyReport:
    rows: tuple[SourceAblation, ...]
    queries: dict[str, float]
    """Mean queries of a plan, by source (Fig. 7)."""
    words: dict[str, float | None]
    """Mean words of a query (Table 12)."""
    diversity: dict[str, float | None]
    """Mean of Eq. 5 over the plans (Table 13)."""
    costs: dict[str, StageCost]
    """Per question, by role, of a run with all sources."""
    seconds: dict[str, float]
    """Wall clock per question, by stage (Table 11)."""
    planner: str
    n: int


@dataclass
class _PlanOutcomes:
    plans: list[SourcePlan] = field(default_factory=list)
    right: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    events: list[Event] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))


async def study_plans(
    settings: Settings, posed: Sequence[LabeledQuestion], progress: Progress | None = None
) -> PlanStudyReport:
    """Plans, searches and reads every question, as often as there are sources, and twice more.

    Raises `BadConfig` where the strategy is not Omni-RAG.
    """
    solver, parts = await open_planning(settings)
    kept = _PlanOutcomes()
    for number, one in enumerate(posed, 1):
        await _study_question(settings, solver, parts, one, kept)
        if progress:
            progress("questions", number, len(posed))
    return PlanStudyReport(
        _ablation_rows(kept),
        queries_per_source(kept.plans, parts.sources),
        words_per_query(kept.plans, parts.sources),
        diversity_per_plan(kept.plans, parts.sources, load_encoder(settings)),
        {role: _mean_cost(cost, len(posed)) for role, cost in cost_per_stage(kept.events).items()},
        {stage: seconds / len(posed) for stage, seconds in kept.seconds.items()},
        planner_name(settings, parts),
        len(posed),
    )


async def _study_question(
    settings: Settings,
    solver: OmniRag,
    parts: Parts,
    one: LabeledQuestion,
    kept: _PlanOutcomes,
) -> None:
    run, sources = _new_run(settings, parts), parts.sources
    plan, found = SourcePlan(), {}
    began = time.perf_counter()
    try:
        proposal = await solver.propose_plan(one.question, run)
        kept.seconds["plan"] += time.perf_counter() - began
        began = time.perf_counter()
        plan, found = proposal.plan, await solver.search_plan(proposal, run)
        kept.seconds["search"] += time.perf_counter() - began
    except BudgetExceeded:
        kept.seconds["plan"] += time.perf_counter() - began
    kept.plans.append(plan)
    kept.events += run.events
    whole = save_plan(plan, sources, found, question=one.question)
    began, reading = time.perf_counter(), _new_run(settings, parts)
    kept.right[ALL].append(await _reads_correctly(solver, one, whole, reading))
    kept.seconds["read"] += time.perf_counter() - began
    kept.events += reading.events
    for source in sources:
        left = whole.without_source(source)
        again = _new_run(settings, parts)
        kept.right[source].append(await _reads_correctly(solver, one, left, again))
    alone = await solver.answer_from(one.question, {}, _new_run(settings, parts), alone=True)
    kept.right[NONE].append(alone.answer.option == one.gold)


def _new_run(settings: Settings, parts: Parts) -> Run:
    """Every reading has the same chance and the same bounds."""
    return make_run(settings, parts.names, "plans")


async def _reads_correctly(
    solver: OmniRag, one: LabeledQuestion, held: SavedPlan, run: Run
) -> bool:
    alone = not held.plan_reading.plan.queries
    solution = await solver.answer_from(one.question, held.results_by_query, run, alone=alone)
    return solution.answer.option == one.gold


def _ablation_rows(kept: _PlanOutcomes) -> tuple[SourceAblation, ...]:
    whole = kept.right[ALL]
    accuracy = sum(whole) / len(whole)
    rows = [SourceAblation(ALL, proportion(sum(whole), len(whole)), None, None)]
    for name, right in kept.right.items():
        if name != ALL:
            share = proportion(sum(right), len(right))
            change = difference(list(map(float, whole)), list(map(float, right)))
            rows.append(SourceAblation(name, share, relative_drop(share.value, accuracy), change))
    return tuple(rows)


def _mean_cost(cost: StageCost, n: int) -> StageCost:
    return StageCost(round(cost.calls / n), round(cost.tokens / n), cost.seconds / n)

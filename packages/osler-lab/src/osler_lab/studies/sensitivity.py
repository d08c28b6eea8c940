"""The studies of TC-RAG over a configured model: sigma sensitivity (§6.5), noise (App. 8.6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args

from osler.build import Parts, make_run, no_retriever, roles_of
from osler.build.hub import open_judges
from osler.build.knowledge import pool_relevance
from osler.build.live import live_parts, record_parts, replay_parts
from osler.build.models import encoder_relevance, load_encoder, load_roles
from osler.build.tc_rag import build_machine
from osler.errors import BadConfig, BadQuestion, OslerError, require_extra
from osler.kb.base import Progress
from osler.llm.recording.tape import Tape
from osler.methods.tcrag.machine import TuringMachine
from osler.questions import LabeledQuestion
from osler.retrieve import content_terms
from osler.retrieve.relevance import CoverageRelevance
from osler.settings import Settings, TcRagSettings
from osler.sources.catalogue import RESEARCH, WIKI
from osler.trace import Event, Popped, Pushed, StateValued
from osler.types import Halt, Retriever, Solution
from osler_lab.evaluate.attacks import (
    CELLS,
    AttackCell,
    Target,
    read_targets,
    run_attack,
    summarize_cell,
)
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


def read_noise(path: Path, *, limit: int, seed: int) -> list[Target]:
    """At most `limit` noise sets that have relevant noise, sampled by the seed, in their order.

    Raises `MalformedSource`, and `BadQuestion` if there is no question.
    """
    try:
        every = [target for target in read_targets(path) if target.relevant and target.irrelevant]
    except (OSError, UnicodeDecodeError) as error:
        raise BadQuestion(f"{path} cannot be read: {error}", fix="name JSON Lines") from error
    if not every:
        raise BadQuestion(f"{path} has no noise set with both kinds of noise", fix="name another")
    chosen = Random(seed).sample(range(len(every)), min(limit, len(every)))
    return [every[n] for n in sorted(chosen)]


def parse_sigmas(**written: str) -> dict[Metric, list[float]]:
    """Values of sigma by metric, from "5,10,20". Raises `BadConfig` for what is no such list."""
    found: dict[Metric, list[float]] = {}
    for metric in METRICS:
        try:
            values = [float(part) for part in written[metric].split(",") if part.strip()]
        except ValueError as error:
            raise BadConfig(f"--{metric}: {error}", fix='write numbers, as "5,10,20"') from error
        if any(not 0 < value < inf for value in values):
            raise BadConfig(f"--{metric}: sigma lies above 0", fix='write numbers, as "5,10,20"')
        if values:
            found[metric] = sorted(set(values))
    return found


async def sigma_sweep(
    settings: Settings,
    posed: Sequence[LabeledQuestion],
    sigmas: Mapping[Metric, Sequence[float]],
    *,
    progress: Progress | None = None,
) -> list[SigmaOutcome]:
    """Every question under every sigma.

    A run is the same under two sigmas until a conclusion lies between them. So each question is
    run once, under the least sigma, and goes through the others from its tape. Raises `BadConfig`
    unless the strategy is TC-RAG.
    """
    chosen = _require_tc_rag(settings)
    parts = await live_parts(settings)
    outcomes: list[SigmaOutcome] = []
    for metric, levels in sigmas.items():
        for number, one in enumerate(posed):
            if progress is not None:
                progress(f"questions under {metric}", number, len(posed))
            outcomes += await _run_levels(settings, chosen, parts, one, metric, sorted(levels))
    return outcomes


async def _run_levels(
    settings: Settings,
    chosen: TcRagSettings,
    parts: Parts,
    posed: LabeledQuestion,
    metric: Metric,
    levels: Sequence[float],
) -> list[SigmaOutcome]:
    tape, found = Tape(), []
    for sigma in levels:
        strategy = chosen.model_copy(update={"metric": metric, "sigma": sigma})
        under = settings.model_copy(update={"strategy": strategy})
        # The least sigma halts last, so its tape holds the steps of all others.
        if sigma == levels[0]:
            given = record_parts(parts, tape)
        else:
            given = replay_parts(tape, parts.names, parts.sources, parts.snapshot, parts.carriers)
        run = make_run(settings, parts.names, posed.question.id)
        solution = await build_machine(under, strategy, given).solve(posed.question, run)
        found.append(record_outcome(posed, metric, sigma, solution, run.events))
    return found


async def run_attacks(
    settings: Settings, targets: Sequence[Target], *, progress: Progress | None = None
) -> list[AttackCell]:
    """The six cells of Table 3 for the configured model, after the clean one; no knowledge base is
    needed.

    Two tools find each target's passages: after a Backtrack there is one left to ask. Raises
    `BadConfig` unless the strategy is TC-RAG.
    """
    chosen = _require_tc_rag(settings)
    parts = await open_attacked_parts(settings, targets)

    def machine_over(retriever: Retriever) -> TuringMachine:
        return build_machine(settings, chosen, replace(parts, retriever=lambda *_: retriever))

    cells, seed = [], settings.sampling.seed
    for number, (kind, noise) in enumerate(CELLS):
        if progress is not None:
            progress(f"{kind} attack, {noise} noise", number, len(CELLS))
        outcomes = await run_attack(machine_over, targets, kind, noise, seed=seed)
        if outcomes:
            cells.append(summarize_cell(kind, noise, outcomes))
    return cells


async def open_attacked_parts(settings: Settings, targets: Iterable[Target]) -> Parts:
    """Parts whose words are rare by how few passages of the targets hold them, with the experts
    that a run over a knowledge base has."""
    every = [p for t in targets for p in (*t.passages, *t.relevant, *t.irrelevant)]
    held = Counter(term for passage in every for term in content_terms(passage.text))

    def term_rarity(asked: Sequence[str]) -> dict[str, float]:
        """As `KnowledgeBase.rarity` has it."""
        return {t: log(1 + (len(every) - held[t] + 0.5) / (held[t] + 0.5)) for t in asked}

    encoder = load_encoder(settings)
    judge, match, faults = open_judges(settings)
    return Parts(
        await load_roles(settings, roles_of(settings)),
        no_retriever,
        encoder_relevance(encoder),
        CoverageRelevance(term_rarity),
        (RESEARCH, WIKI),
        pool=pool_relevance(settings, term_rarity, encoder, None),
        judge=judge,
        match=match,
        faults=faults,
    )


def _require_tc_rag(settings: Settings) -> TcRagSettings:
    if not isinstance(settings.strategy, TcRagSettings):
        raise BadConfig("this study is for TC-RAG only", fix='set strategy.kind = "tc-rag"')
    return settings.strategy


_Row = tuple[str, Callable[[SigmaPoint], Estimate | None]]
_ROWS: tuple[_Row, ...] = (
    ("share converged", lambda point: point.converged),
    ("exact match", lambda point: point.em),
    ("steps", lambda point: point.steps),
)


def sigma_figure(points: Sequence[SigmaPoint], paths: Sequence[Path]) -> None:
    """Draws the effect of a threshold (TC-RAG Fig. 3): a column per metric, 95 % intervals.

    The same points give the same SVG, byte for byte, under one version of matplotlib.
    Raises `OslerError` without the extra, and `BadConfig` for a file that cannot be written.
    """
    groups = [[p for p in points if p.metric == metric] for metric in METRICS]
    columns = [column for column in groups if column]
    with require_extra("plot", "figures need the package matplotlib", OslerError):
        import matplotlib
        from matplotlib.figure import Figure
    # A fixed salt makes the ids in the SVG repeat; text stays text, so fonts do not matter.
    with matplotlib.rc_context({"svg.hashsalt": "osler", "svg.fonttype": "none"}):
        figure = Figure(figsize=(4.2 * len(columns), 7.5), layout="constrained")
        grid = figure.subplots(len(_ROWS), len(columns), squeeze=False, sharex="col")
        for axes, column in zip(grid.T, columns, strict=True):
            _draw_points(axes, column)
        for path in paths:
            _save_figure(figure, path)


def _draw_points(axes: Sequence[Any], column: Sequence[SigmaPoint]) -> None:
    for each, (label, estimate) in zip(axes, _ROWS, strict=True):
        known = [(point.sigma, found) for point in column if (found := estimate(point))]
        if known:
            sigmas = [sigma for sigma, _ in known]
            values = [one.value for _, one in known]
            below = [one.value - one.low for _, one in known]
            above = [one.high - one.value for _, one in known]
            each.errorbar(sigmas, values, yerr=(below, above), marker="o", capsize=3)
        each.set_ylabel(label)
        if label != "steps":
            each.set_ylim(-0.05, 1.05)
        else:
            each.set_ylim(bottom=0)
    axes[0].set_title(f"{column[0].metric}, n = {column[0].converged.n}")
    axes[-1].set_xlabel("sigma")


_UNSAID = dict.fromkeys(("Creator", "Date", "Format", "Type"))
"""Left out of a picture: the moment would change it each time, and the page names no other host."""


def _save_figure(figure: Any, path: Path) -> None:
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise BadConfig(f"{path}: a figure is .svg or .png", fix="choose another --figure")
    options: dict[str, Any] = {"metadata": _UNSAID} if kind == ".svg" else {"dpi": 150}
    try:
        figure.savefig(path, **options)
    except OSError as error:
        raise BadConfig(
            f"{path} cannot be written: {error}", fix="choose another --figure"
        ) from error

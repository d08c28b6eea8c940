"""The studies of TC-RAG over a configured model: sigma sensitivity (§6.5), noise (App. 8.6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf, log
from pathlib import Path
from random import Random

from osler.app import wiring
from osler.app.config import Settings, TcRag
from osler.errors import BadConfig, BadQuestion
from osler.evaluate.attacks import KINDS, NOISES, Cell, Target, attack, cell, read_targets
from osler.evaluate.labeled_questions import Posed
from osler.evaluate.sigma import METRICS, Metric, Outcome, outcome
from osler.kb.base import Progress
from osler.llm.recording.tape import Tape
from osler.methods.tcrag.machine import TuringMachine
from osler.retrieve.relevance import Coverage
from osler.retrieve.words import terms
from osler.trace import Run
from osler.types import RESEARCH, WIKI, Retriever


def read_noise(path: Path, *, limit: int, seed: int) -> list[Target]:
    """At most so many noise sets that have relevant noise, by chance of the seed, in their order.

    Raises `MalformedSource`, and `BadQuestion` where there is none.
    """
    try:
        every = [target for target in read_targets(path) if target.relevant and target.irrelevant]
    except (OSError, UnicodeDecodeError) as error:
        raise BadQuestion(f"{path} cannot be read: {error}", fix="name JSON Lines") from error
    if not every:
        raise BadQuestion(f"{path} has no noise set with both kinds of noise", fix="name another")
    chosen = Random(seed).sample(range(len(every)), min(limit, len(every)))
    return [every[n] for n in sorted(chosen)]


def levels(**written: str) -> dict[Metric, list[float]]:
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
    posed: Sequence[Posed],
    sigmas: Mapping[Metric, Sequence[float]],
    *,
    progress: Progress | None = None,
    done: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Every question under every sigma; `done` is told each outcome as it comes.

    A run is the same under two sigmas until a conclusion lies between them. So each question is
    run once, under the least sigma, and goes through the others from its tape. Only where the
    model sees sigma (`strategy.visible`) is every run made anew. Raises `BadConfig` unless
    the strategy is TC-RAG.
    """
    chosen = _tc_rag(settings)
    parts = await wiring.live(settings)
    outcomes: list[Outcome] = []
    for metric, levels in sigmas.items():
        for number, one in enumerate(posed):
            if progress is not None:
                progress(f"questions under {metric}", number, len(posed))
            for found in await _under(settings, chosen, parts, one, metric, sorted(levels)):
                outcomes.append(found)
                if done is not None:
                    done(found)
    return outcomes


async def _under(
    settings: Settings,
    chosen: TcRag,
    parts: wiring.Parts,
    posed: Posed,
    metric: Metric,
    levels: Sequence[float],
) -> list[Outcome]:
    tape, found = Tape(), []
    for sigma in levels:
        strategy = chosen.model_copy(update={"metric": metric, "sigma": sigma})
        under = settings.model_copy(update={"strategy": strategy})
        if sigma == levels[0] or chosen.visible:
            given = wiring.recorded(parts, tape)
        else:
            given = wiring.replayed(
                tape, parts.names, parts.sources, parts.snapshot, parts.carriers
            )
        run = Run(posed.question.id, settings.sampling.seed, wiring.budget(settings))
        solution = await wiring.machine(under, strategy, given).solve(posed.question, run)
        found.append(outcome(posed, metric, sigma, solution, run.events))
    return found


async def attacked(
    settings: Settings, targets: Sequence[Target], *, progress: Progress | None = None
) -> list[Cell]:
    """The six cells of Table 3 for the configured model; no knowledge base is needed.

    Two tools find each target's passages: after a Backtrack there is one left to ask. Raises
    `BadConfig` unless the strategy is TC-RAG.
    """
    chosen = _tc_rag(settings)
    parts = await _without_knowledge(settings, targets)

    def build(retriever: Retriever) -> TuringMachine:
        return wiring.machine(settings, chosen, replace(parts, retriever=lambda *_: retriever))

    cells, seed = [], settings.sampling.seed
    for number, (kind, noise) in enumerate((k, n) for k in KINDS for n in NOISES):
        if progress is not None:
            progress(f"{kind} attack, {noise} noise", number, len(KINDS) * len(NOISES))
        outcomes = await attack(build, targets, kind, noise, seed=seed)
        if outcomes:
            cells.append(cell(kind, noise, outcomes))
    return cells


async def _without_knowledge(settings: Settings, targets: Iterable[Target]) -> wiring.Parts:
    """Parts whose words are rare by how few passages of the targets hold them."""
    every = [p for t in targets for p in (*t.passages, *t.relevant, *t.irrelevant)]
    held = Counter(term for passage in every for term in terms(passage.text))

    def rarity(asked: Sequence[str]) -> dict[str, float]:
        """As `KnowledgeBase.rarity` has it."""
        return {t: log(1 + (len(every) - held[t] + 0.5) / (held[t] + 0.5)) for t in asked}

    return wiring.Parts(
        await wiring.cast(settings, wiring.roles_of(settings)),
        wiring.no_retriever,
        wiring.relevance(wiring.encoder(settings)),
        Coverage(rarity),
        (RESEARCH, WIKI),
    )


def _tc_rag(settings: Settings) -> TcRag:
    if not isinstance(settings.strategy, TcRag):
        raise BadConfig("only TC-RAG is studied so", fix='set strategy.kind = "tc-rag"')
    return settings.strategy

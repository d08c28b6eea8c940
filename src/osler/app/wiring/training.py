"""Who explores and who judges, as the settings say, in this process or in workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, assert_never, get_args

from osler.app.config import OmniRag, Settings
from osler.app.wiring.hub import reranker
from osler.app.wiring.knowledge import knowledge_base, offers, runner, searched
from osler.app.wiring.live import live, with_knowledge
from osler.app.wiring.models import cast, encoder
from osler.app.wiring.strategies import solver
from osler.errors import BadConfig
from osler.llm.core.base import Sampling
from osler.llm.core.speaker import Speaker
from osler.methods.omni import solver as omni
from osler.methods.omni.describe import Offer
from osler.methods.omni.retriever import PlannedRetriever
from osler.retrieve.relevance import Coverage
from osler.train.journal import Progress
from osler.train.named import named
from osler.train.spo import job
from osler.train.spo.case import Case
from osler.train.spo.explore import QUERIES, Expert, Exploration, Explorer
from osler.train.spo.judge import Likely, SaysSo, Signal
from osler.train.spo.signals import (
    COVERED,
    THRESHOLD,
    Covers,
    Either,
    GoldDocuments,
    Improves,
    Reranks,
)
from osler.train.spo.units import Unit
from osler.train.spo.wording import Rarity, Wording

if TYPE_CHECKING:
    from osler.kb.base import KnowledgeBase

By = Literal["expert", "wording"]
Judges = Literal["gold", "answer", "gold-or-answer", "model", "likelihood", "improvement", "rerank"]
JUDGES: tuple[Judges, ...] = get_args(Judges)

_REPLY = 1000
"""Tokens of an explorer's reply: five sources of six queries."""
_NOWHERE = "x" * 40
"""A word that no text holds; it is as rare as a word can be."""


class Work(Protocol):
    """What one process does, and others may do beside it."""

    async def run(self, progress: Progress | None = None) -> str: ...


def by_named(word: str) -> By:
    """Raises `BadConfig`."""
    return named(word, get_args(By), "explorer")


def judge_named(word: str) -> Judges:
    """Raises `BadConfig`."""
    return named(word, JUDGES, "judge")


def unit_named(word: str) -> Unit:
    """Raises `BadConfig`."""
    return named(word, get_args(Unit), "unit")


@dataclass(frozen=True)
class Exploring:
    """All that a worker needs; it travels to other processes and hosts."""

    settings: Settings
    folder: Path
    cases: tuple[Case, ...]
    by: By = "expert"
    queries: int = QUERIES
    jobs: int = 1

    async def run(self, progress: Progress | None = None) -> str:
        """The explorer's name. Raises `BadRun` as the job does, and what knowledge base and model
        raise."""
        seed = self.settings.sampling.seed
        working = job.Working(self.folder, self.jobs, seed, progress)
        made, snapshot = await exploration(self.settings, self.by, self.queries)
        await job.explore(working, made, self.cases, snapshot)
        return made.explorer.name


@dataclass(frozen=True)
class Judging:
    """The same of a judge."""

    settings: Settings
    folder: Path
    by: Judges = "model"
    unit: Unit = "list"
    least: float | None = None
    """The threshold of `likelihood`, `answer` and `rerank`; `None` = theirs."""
    jobs: int = 1

    async def run(self, progress: Progress | None = None) -> str:
        """The signal's name. Raises as `Exploring.run`."""
        seed = self.settings.sampling.seed
        working = job.Working(self.folder, self.jobs, seed, progress)
        judges = await signal(self.settings, self.by, self.unit, self.least)
        await job.judge(working, judges)
        return judges.name


def on_workers(work: Work, on: Literal["processes", "ray"], workers: int | None) -> str:
    """The same work by many, who share the folder: what one has claimed, no other does.

    On Ray the folder must be one that all hosts see. Raises what a worker raises.
    """
    names = list(runner(on, workers).map(partial(_worker, work), range(workers or 1)))
    return str(names[0])


def _worker(work: Work) -> Callable[[int], str]:
    return lambda _: asyncio.run(work.run())


def sources_on_offer(settings: Settings) -> tuple[Offer, ...]:
    """Those that are searched. Raises `KnowledgeBaseError`."""
    with knowledge_base(settings) as kb:
        return offers(kb, searched(settings, kb))


async def exploration(settings: Settings, by: By, queries: int) -> tuple[Exploration, str]:
    """Who proposes, and what is searched; with the snapshot of the knowledge base.

    Raises `KnowledgeBaseError`, and `ModelError` where a model explores.
    """
    chosen = _omni(settings)
    kb, encodes = knowledge_base(settings), encoder(settings)
    parts = with_knowledge(settings, {}, kb, encodes, reranker(settings, encodes))
    held = {name: parts.retriever(f"omni:{name}", (name,)) for name in parts.sources}
    found = PlannedRetriever(held, chosen.k)
    explorer = await _explorer(settings, by, queries, kb)
    return Exploration(explorer, parts.offers, found), parts.snapshot


async def _explorer(settings: Settings, by: By, queries: int, kb: KnowledgeBase) -> Explorer:
    match by:
        case "wording":
            return Wording(_rarity(kb), queries)
        case "expert":
            ready = (await cast(settings, ["planner"]))["planner"]
            sampling = _sampling(settings, max(_REPLY, settings.sampling.max_tokens))
            return Expert(Speaker(ready.model, "planner", sampling, ready.constrains), queries)
        case _ as never:
            assert_never(never)


def _rarity(kb: KnowledgeBase) -> Rarity:
    """How much a word tells; one that no text holds tells nothing, and is often misspelt."""

    def rarity(terms: Sequence[str]) -> dict[str, float]:
        found = kb.rarity([*terms, _NOWHERE])
        most = found.pop(_NOWHERE)
        return {term: value if value < most else 0.0 for term, value in found.items()}

    return rarity


async def signal(
    settings: Settings, by: Judges, unit: Unit = "list", least: float | None = None
) -> Signal:
    """Who judges. Raises `BadConfig` and `ModelError`."""
    match by:
        case "gold":
            return GoldDocuments()
        case "answer":
            return _covers(settings, least)
        case "gold-or-answer":
            return Either(GoldDocuments(), _covers(settings, least))
        case "model" | "likelihood":
            ready = (await cast(settings, ["judge"]))["judge"]
            sampling = replace(_sampling(settings, 300), temperature=0.0)
            speaker = Speaker(ready.model, "judge", sampling, ready.constrains)
            if by == "model":
                return SaysSo(speaker, unit)
            # No number can be asked for by the probability of one word.
            single: Literal["set", "document"] = "set" if unit == "set" else "document"
            return Likely(speaker, single, 0.5 if least is None else least)
        case "improvement":
            made = solver(settings, await live(settings))
            assert isinstance(made, omni.OmniRag), "the settings name it"  # noqa: S101
            return Improves(made.reader)
        case "rerank":
            return _reranks(settings, THRESHOLD if least is None else least)
        case _ as never:
            assert_never(never)


def _covers(settings: Settings, least: float | None) -> Covers:
    kb = knowledge_base(settings)
    return Covers(Coverage(_rarity(kb)), COVERED if least is None else least)


def _reranks(settings: Settings, least: float) -> Reranks:
    second = reranker(settings, encoder(settings))
    if second is None:
        raise BadConfig(
            "no reranker is configured", fix='set reranker.kind, as in --set "reranker.kind=hub"'
        )
    chosen = settings.reranker
    return Reranks(second, f"{chosen.kind} {chosen.name or chosen.path or ''}".strip(), least)


def _sampling(settings: Settings, most: int) -> Sampling:
    chosen = settings.sampling
    return Sampling(chosen.temperature, most, seed=chosen.seed, top=0)


def _omni(settings: Settings) -> OmniRag:
    if not isinstance(settings.strategy, OmniRag):
        raise BadConfig(
            f"{settings.strategy.kind} makes no source plan", fix="add --strategy omni-rag"
        )
    return settings.strategy

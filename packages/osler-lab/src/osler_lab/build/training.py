"""Builds explorers, teachers and judges from the settings, and runs them here or in workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, Protocol, assert_never, get_args

from osler.build import Parts
from osler.build.hub import open_reranker
from osler.build.knowledge import (
    bulk_runner,
    describe_sources,
    open_knowledge_base,
    searched_sources,
)
from osler.build.live import live_parts, with_knowledge, without_knowledge
from osler.build.models import LoadedModel, load_encoder, load_roles
from osler.build.strategies import build_solver
from osler.build.strategy_build import StrategyBuild
from osler.build.thinking import boundary_tau, form_lookup, make_speaker
from osler.errors import BadConfig
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Sampling
from osler.methods.omni import solver as omni
from osler.methods.omni.planners import SourceDescription
from osler.methods.omni.retriever import PlannedRetriever
from osler.settings import KagThinkerSettings, OmniRagSettings, Role, Settings
from osler_lab.evaluate.judges import Judge, judge_sampling
from osler_lab.jobs.runner import Progress
from osler_lab.train import choose_named
from osler_lab.train.spo import job
from osler_lab.train.spo.explore import (
    QUERIES,
    ExpertExplorer,
    Exploration,
    TrainingCase,
)
from osler_lab.train.spo.judge import (
    THRESHOLD,
    GoldDocuments,
    JudgingSignal,
    LLMJudge,
    ReaderGain,
    RerankSignal,
    Unit,
)
from osler_lab.train.thinker.dialogue import Stage
from osler_lab.train.thinker.quality import Inspector, InspectorChain, ModelInspector
from osler_lab.train.thinker.rounds import TeachingConfig
from osler_lab.train.thinker.rules import RuleInspector
from osler_lab.train.thinker.teacher import Knows, Teacher

Judges = Literal["gold", "model", "improvement", "rerank"]
JUDGES: tuple[Judges, ...] = get_args(Judges)

# Tokens of an explorer's reply: five sources of six queries.
_REPLY = 1000


class TrainingWork(Protocol):
    """Work that several processes may share."""

    async def run(self, progress: Progress | None = None) -> str: ...


def parse_judge(word: str) -> Judges:
    """Raises `BadConfig`."""
    return choose_named(word, JUDGES, "judge")


def parse_unit(word: str) -> Unit:
    """Raises `BadConfig`."""
    return choose_named(word, get_args(Unit), "unit")


@dataclass(frozen=True)
class ExploringWork:
    """All that a worker needs; it travels to other processes and hosts."""

    settings: Settings
    folder: Path
    cases: tuple[TrainingCase, ...]
    queries: int = QUERIES
    jobs: int = 1

    async def run(self, progress: Progress | None = None) -> str:
        """The explorer's name. Raises `BadRun` as the job does, and what knowledge base and model
        raise."""
        seed = self.settings.sampling.seed
        working = job.SharedFolder(self.folder, self.jobs, seed, progress)
        made, snapshot = await build_exploration(self.settings, self.queries)
        await job.explore_cases(working, made, self.cases, snapshot)
        return made.explorer.name


@dataclass(frozen=True)
class JudgingWork:
    """The same of a judge."""

    settings: Settings
    folder: Path
    by: Judges = "model"
    unit: Unit = "list"
    least: float | None = None
    """The threshold of `rerank`; `None` = the paper's."""
    jobs: int = 1

    async def run(self, progress: Progress | None = None) -> str:
        """The signal's name. Raises as `ExploringWork.run`."""
        seed = self.settings.sampling.seed
        working = job.SharedFolder(self.folder, self.jobs, seed, progress)
        judges = await build_signal(self.settings, self.by, self.unit, self.least)
        await job.judge_cases(working, judges)
        return judges.name


def run_on_workers(work: TrainingWork, on: Literal["processes", "ray"], workers: int | None) -> str:
    """The same work by many, who share the folder: what one has claimed, no other does.

    On Ray the folder must be one that all hosts see. Raises what a worker raises.
    """
    names = list(bulk_runner(on, workers).map(partial(_run_worker, work), range(workers or 1)))
    return str(names[0])


def _run_worker(work: TrainingWork) -> Callable[[int], str]:
    return lambda _: asyncio.run(work.run())


def offered_sources(settings: Settings) -> tuple[SourceDescription, ...]:
    """Descriptions of the searched sources. Raises `KnowledgeBaseError`."""
    with open_knowledge_base(settings) as kb:
        return describe_sources(kb, searched_sources(settings, kb))


async def build_exploration(settings: Settings, queries: int) -> tuple[Exploration, str]:
    """Builds the explorer and its retriever, with the snapshot of the knowledge base.

    Raises `KnowledgeBaseError` and `ModelError`.
    """
    chosen = _require_omni(settings)
    kb, encodes = open_knowledge_base(settings), load_encoder(settings)
    parts = with_knowledge(settings, {}, kb, encodes, open_reranker(settings))
    held = {name: parts.retriever(f"omni:{name}", (name,)) for name in parts.sources}
    found = PlannedRetriever(held, chosen.k)
    ready = (await load_roles(settings, ["planner"]))["planner"]
    sampling = _sampling_of(settings, max(_REPLY, settings.sampling.max_tokens))
    speaker = Speaker(ready.model, "planner", sampling, ready.constrains)
    return Exploration(ExpertExplorer(speaker, queries), parts.offers, found), parts.snapshot


async def build_signal(
    settings: Settings, by: Judges, unit: Unit = "list", least: float | None = None
) -> JudgingSignal:
    """Builds the judging signal. Raises `BadConfig` and `ModelError`."""
    match by:
        case "gold":
            return GoldDocuments()
        case "model":
            ready = (await load_roles(settings, ["judge"]))["judge"]
            chosen = settings.sampling
            sampling = judge_sampling(chosen.max_tokens, seed=chosen.seed)
            return LLMJudge(Speaker(ready.model, "judge", sampling, ready.constrains), unit)
        case "improvement":
            made = build_solver(settings, await live_parts(settings))
            assert isinstance(made, omni.OmniRag), "the settings name it"  # noqa: S101
            return ReaderGain(made.reader)
        case "rerank":
            return _reranker_signal(settings, THRESHOLD if least is None else least)
        case _ as never:
            assert_never(never)


def _reranker_signal(settings: Settings, least: float) -> RerankSignal:
    second = open_reranker(settings)
    if second is None:
        raise BadConfig(
            "no reranker is configured", fix='set reranker.kind, as in --set "reranker.kind=hub"'
        )
    chosen = settings.reranker
    return RerankSignal(second, f"{chosen.kind} {chosen.name or chosen.path or ''}".strip(), least)


def _sampling_of(settings: Settings, most: int) -> Sampling:
    chosen = settings.sampling
    return Sampling(chosen.temperature, most, seed=chosen.seed, top=0)


def _require_omni(settings: Settings) -> OmniRagSettings:
    if not isinstance(settings.strategy, OmniRagSettings):
        raise BadConfig(
            f"{settings.strategy.kind} makes no source plan", fix="add --strategy omni-rag"
        )
    return settings.strategy


# Who inspects quality.
InspectedBy = Literal["rules", "model", "both", "none"]


async def teaching_config(
    settings: Settings,
    stage: Stage,
    *,
    knows: Knows = "both",
    rounds: int = 3,
    by: InspectedBy = "rules",
    grades: bool = False,
    restructure: bool = True,
) -> TeachingConfig:
    """`grades`: whether the judge grades answers that no formula can.

    Raises `BadConfig` for a strategy other than kag-thinker, and what models and the knowledge
    base raise. A plan alone needs no knowledge base.
    """
    chosen = settings.strategy
    if not isinstance(chosen, KagThinkerSettings):
        raise BadConfig("a teacher is KAG-Thinker", fix='set strategy.kind = "kag-thinker"')
    judging = grades or by in ("model", "both")
    models = await load_roles(settings, ("planner", "reader", *(("judge",) if judging else ())))
    judge = models.get("judge")
    parts = _teaching_parts(settings, stage, models)
    return TeachingConfig(
        _build_teacher(settings, chosen, parts, stage, knows, restructure),
        stage,
        rounds,
        settings.sampling.seed,
        judge=Judge(judge.model, judge.constrains) if judge and grades else None,
        inspector=build_inspector(by, judge),
    )


def _teaching_parts(settings: Settings, stage: Stage, models: dict[Role, LoadedModel]) -> Parts:
    if stage == "logical-form":
        return without_knowledge(models)
    kb, embedded = open_knowledge_base(settings), load_encoder(settings)
    return with_knowledge(settings, models, kb, embedded, open_reranker(settings))


def _build_teacher(
    settings: Settings,
    chosen: KagThinkerSettings,
    parts: Parts,
    stage: Stage,
    knows: Knows,
    restructure: bool,
) -> Teacher:
    build = StrategyBuild.of(settings, parts)
    student = make_speaker(build, "reader")
    # Held to a grammar a teacher would have no room to think, which is what is to be learnt.
    teaching = replace(make_speaker(build, "planner"), constrains=False)
    alone = stage == "logical-form"
    return Teacher(
        teaching,
        teaching,
        student,
        None if alone else parts.retriever("kag-thinker", parts.sources),
        graph=None if alone else form_lookup(chosen.retriever, parts),
        sources=parts.sources,
        knows=knows,
        tau=boundary_tau(settings, chosen, student.model.name)[0],
        k=chosen.k,
        turns=chosen.turns,
        restructure=restructure,
    )


def build_inspector(by: InspectedBy, judge: LoadedModel | None) -> Inspector | None:
    """`None` = no inspection. Raises `BadConfig` if a model is needed and none is set."""
    if by == "none":
        return None
    if by == "rules":
        return RuleInspector()
    if judge is None:
        raise BadConfig(f"--inspect {by} needs a judge", fix="set [roles.judge]")
    model = ModelInspector(judge.model, judge.constrains)
    return model if by == "model" else InspectorChain((RuleInspector(), model))


async def build_data_inspector(settings: Settings, by: InspectedBy) -> Inspector:
    """Builds the inspector of an existing data set. Raises `BadConfig` for "none"."""
    judge = (await load_roles(settings, ("judge",)))["judge"] if by in ("model", "both") else None
    found = build_inspector(by, judge)
    if found is None:
        raise BadConfig("no inspector is chosen", fix="choose one of rules, model, both")
    return found

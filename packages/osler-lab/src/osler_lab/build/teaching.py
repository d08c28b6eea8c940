"""KAG-Thinker's teacher and the judges of its data, as the settings ask for them.

The role planner teaches, the role reader is the student whose boundary is determined, the role
judge grades answers and inspects quality.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from osler.build import Parts
from osler.build.hub import open_reranker
from osler.build.knowledge import open_knowledge_base
from osler.build.live import with_knowledge, without_knowledge
from osler.build.models import LoadedModel, load_encoder, load_roles
from osler.build.strategy_build import StrategyBuild
from osler.build.thinking import boundary_tau, form_lookup, make_speaker
from osler.errors import BadConfig
from osler.settings import KagThinkerSettings, Role, Settings
from osler_lab.evaluate.judges import Judge
from osler_lab.train.thinker.dialogue import Stage
from osler_lab.train.thinker.quality import Inspector, InspectorChain, ModelInspector
from osler_lab.train.thinker.rounds import TeachingConfig
from osler_lab.train.thinker.rules import RuleInspector
from osler_lab.train.thinker.teacher import Knows, Teacher

# Who inspects quality.
By = Literal["rules", "model", "both", "none"]


async def teaching_config(
    settings: Settings,
    stage: Stage,
    *,
    knows: Knows = "both",
    rounds: int = 3,
    by: By = "rules",
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


def build_inspector(by: By, judge: LoadedModel | None) -> Inspector | None:
    """`None` = no inspection. Raises `BadConfig` if a model is needed and none is set."""
    if by == "none":
        return None
    if by == "rules":
        return RuleInspector()
    if judge is None:
        raise BadConfig(f"--inspect {by} needs a judge", fix="set [roles.judge]")
    model = ModelInspector(judge.model, judge.constrains)
    return model if by == "model" else InspectorChain((RuleInspector(), model))


async def build_data_inspector(settings: Settings, by: By) -> Inspector:
    """Builds the inspector of an existing data set. Raises `BadConfig` for "none"."""
    judge = (await load_roles(settings, ("judge",)))["judge"] if by in ("model", "both") else None
    found = build_inspector(by, judge)
    if found is None:
        raise BadConfig("no inspector is chosen", fix="choose one of rules, model, both")
    return found

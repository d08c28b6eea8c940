"""KAG-Thinker's teacher and the judges of its data, as the settings ask for them.

The role planner teaches, the role reader is the student whose boundary is determined, the role
judge grades answers and inspects quality.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from osler.app.config import KagThinker, Role, Settings
from osler.app.wiring.hub import reranker
from osler.app.wiring.knowledge import knowledge_base
from osler.app.wiring.live import with_knowledge, without_knowledge
from osler.app.wiring.models import Ready, cast, encoder
from osler.app.wiring.parts import Parts
from osler.app.wiring.thinking import forms, speaker, tau
from osler.errors import BadConfig
from osler.evaluate.judges import Judge
from osler.llm.core.base import Sampling
from osler.train.thinker.dialogue import Stage
from osler.train.thinker.inspector import ByModel, Together
from osler.train.thinker.quality import Inspector
from osler.train.thinker.rounds import Course
from osler.train.thinker.rules import Rules
from osler.train.thinker.teacher import Knows, Teacher

By = Literal["rules", "model", "both", "none"]
"""Who inspects quality."""
BYS: tuple[By, ...] = get_args(By)


async def course(
    settings: Settings,
    stage: Stage,
    *,
    knows: Knows = "both",
    rounds: int = 3,
    by: By = "rules",
    grades: bool = False,
    restructure: bool = True,
) -> Course:
    """`grades`: whether the judge grades answers that no formula can.

    Raises `BadConfig` for a strategy other than kag-thinker, and what models and the knowledge
    base raise. A plan alone needs no knowledge base.
    """
    chosen = settings.strategy
    if not isinstance(chosen, KagThinker):
        raise BadConfig("a teacher is KAG-Thinker", fix='set strategy.kind = "kag-thinker"')
    judging = grades or by in ("model", "both")
    models = await cast(settings, ("planner", "reader", *(("judge",) if judging else ())))
    judge = models.get("judge")
    parts = _parts(settings, stage, models)
    return Course(
        _teacher(settings, chosen, parts, stage, knows, restructure),
        stage,
        rounds,
        settings.sampling.seed,
        judge=Judge(judge.model, judge.constrains) if judge and grades else None,
        inspector=inspector(by, judge),
    )


def _parts(settings: Settings, stage: Stage, models: dict[Role, Ready]) -> Parts:
    if stage == "logical-form":
        return without_knowledge(models)
    kb, embedded = knowledge_base(settings), encoder(settings)
    return with_knowledge(settings, models, kb, embedded, reranker(settings, embedded))


def _teacher(
    settings: Settings,
    chosen: KagThinker,
    parts: Parts,
    stage: Stage,
    knows: Knows,
    restructure: bool,
) -> Teacher:
    asked = settings.sampling
    sampling = Sampling(asked.temperature, asked.max_tokens, seed=asked.seed)
    student = speaker(settings, parts, "reader", sampling)
    # Held to a grammar a teacher would have no room to think, which is what is to be learnt.
    teaching = replace(speaker(settings, parts, "planner", sampling), constrains=False)
    alone = stage == "logical-form"
    return Teacher(
        teaching,
        teaching,
        student,
        None if alone else parts.retriever("kag-thinker", parts.sources),
        graph=None if alone else forms(chosen.retriever, parts),
        sources=parts.sources,
        knows=knows,
        tau=tau(settings, chosen, student.model.name)[0],
        k=chosen.k,
        turns=chosen.turns,
        restructure=restructure,
    )


def inspector(by: By, judge: Ready | None) -> Inspector | None:
    """`None` = nobody inspects. Raises `BadConfig` where a model is asked for and there is none."""
    if by == "none":
        return None
    if by == "rules":
        return Rules()
    if judge is None:
        raise BadConfig(f"--inspect {by} needs a judge", fix="set [roles.judge]")
    model = ByModel(judge.model, judge.constrains)
    return model if by == "model" else Together((Rules(), model))


async def data_inspector(settings: Settings, by: By) -> Inspector:
    """Who judges a data set that is there. Raises `BadConfig` for "none"."""
    judge = (await cast(settings, ("judge",)))["judge"] if by in ("model", "both") else None
    found = inspector(by, judge)
    if found is None:
        raise BadConfig("nobody judges", fix="choose of rules, model, both")
    return found

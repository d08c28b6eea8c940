"""The strategy that the settings name, over the parts it is given."""

from __future__ import annotations

from typing import assert_never

from osler.app.config import (
    Baseline,
    Cot,
    Direct,
    KagThinker,
    OmniRag,
    Rag,
    Settings,
    TcRag,
    Unified,
)
from osler.app.wiring.baselines import baseline
from osler.app.wiring.composers import composer, sampling_of
from osler.app.wiring.parts import Parts
from osler.app.wiring.planning import planner_and_reader
from osler.app.wiring.tc_rag import machine
from osler.app.wiring.thinking import thinker
from osler.app.wiring.unified import unified
from osler.errors import BadConfig
from osler.methods.omni.dossier import Dossier
from osler.trace import Budget, Solver


def solver(settings: Settings, parts: Parts, plan: Dossier | None = None) -> Solver:
    """The configured strategy over these parts; `plan`: this one, and nobody else plans.

    Raises `BadConfig` for a plan where the strategy runs none.
    """
    from osler.methods.baselines import cot, direct, rag

    if plan is not None and not isinstance(settings.strategy, OmniRag):
        raise BadConfig(
            f"{settings.strategy.kind} runs no source plan", fix="add --strategy omni-rag"
        )
    sampling, compose, reader = (
        sampling_of(settings),
        composer(settings, parts),
        parts.model("reader"),
    )
    match settings.strategy:
        case Direct():
            return direct.Direct(reader, compose, sampling)
        case Cot():
            return cot.ChainOfThought(reader, compose, sampling)
        case Rag(k=k):
            found = parts.retriever("rag", parts.sources)
            return rag.RetrieveAndRead(reader, found, compose, parts.sources, k, sampling)
        case TcRag() as chosen:
            return machine(settings, chosen, parts)
        case Baseline() as method:
            return baseline(method, parts, compose, sampling)
        case KagThinker() as thinking:
            return thinker(settings, thinking, parts, compose, sampling)
        case OmniRag() as planned:
            return planner_and_reader(settings, planned, parts, compose, sampling, plan)
        case Unified() as whole:
            return unified(settings, whole, parts, compose, sampling)
        case _ as never:
            assert_never(never)


def budget(settings: Settings) -> Budget:
    chosen = settings.budget
    return Budget(chosen.calls, chosen.tokens, chosen.searches, chosen.seconds)

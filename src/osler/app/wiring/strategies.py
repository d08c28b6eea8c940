"""The strategy that the settings name, over the parts it is given."""

from __future__ import annotations

from typing import assert_never

from osler.app.config import (
    BaselineSettings,
    CotSettings,
    DirectSettings,
    KagThinkerSettings,
    OmniRagSettings,
    RagSettings,
    Settings,
    TcRagSettings,
    UnifiedSettings,
)
from osler.app.wiring import Parts
from osler.app.wiring.baselines import baseline
from osler.app.wiring.composers import build_composer, sampling_of
from osler.app.wiring.planning import planner_and_reader
from osler.app.wiring.tc_rag import build_machine
from osler.app.wiring.thinking import build_thinker
from osler.app.wiring.unified import build_unified
from osler.errors import BadConfig
from osler.methods.omni.dossier import SavedPlan
from osler.trace import Budget, Solver


def build_solver(settings: Settings, parts: Parts, plan: SavedPlan | None = None) -> Solver:
    """The configured strategy over these parts; `plan`: this one, and nobody else plans.

    Raises `BadConfig` for a plan where the strategy runs none.
    """
    from osler.methods.baselines.episode import MethodDeps
    from osler.methods.baselines.fixed_schedule import RetrieveAndRead
    from osler.methods.baselines.single_pass import ChainOfThought, Direct

    if plan is not None and not isinstance(settings.strategy, OmniRagSettings):
        raise BadConfig(
            f"{settings.strategy.kind} runs no source plan", fix="add --strategy omni-rag"
        )
    sampling, compose, reader = (
        sampling_of(settings),
        build_composer(settings, parts),
        parts.model_for("reader"),
    )
    match settings.strategy:
        case DirectSettings():
            return Direct(reader, compose, sampling)
        case CotSettings():
            return ChainOfThought(reader, compose, sampling)
        case RagSettings(k=k):
            found = parts.retriever("rag", parts.sources)
            return RetrieveAndRead(MethodDeps(reader, found, compose, parts.sources, k, sampling))
        case TcRagSettings() as chosen:
            return build_machine(settings, chosen, parts)
        case BaselineSettings() as method:
            return baseline(method, parts, compose, sampling)
        case KagThinkerSettings() as thinking:
            return build_thinker(settings, thinking, parts, compose, sampling)
        case OmniRagSettings() as planned:
            return planner_and_reader(settings, planned, parts, compose, sampling, plan)
        case UnifiedSettings() as whole:
            return build_unified(settings, whole, parts, compose, sampling)
        case _ as never:
            assert_never(never)


def run_budget(settings: Settings) -> Budget:
    chosen = settings.budget
    return Budget(chosen.calls, chosen.tokens, chosen.searches, chosen.seconds)

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
from osler.app.wiring.baselines import build_baseline
from osler.app.wiring.build import StrategyBuild
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
    build = StrategyBuild.of(settings, parts)
    match settings.strategy:
        case DirectSettings():
            return Direct(build.reader, build.composer, build.sampling)
        case CotSettings():
            return ChainOfThought(build.reader, build.composer, build.sampling)
        case RagSettings(k=k):
            found = parts.retriever("rag", parts.sources)
            return RetrieveAndRead(
                MethodDeps(build.reader, found, build.composer, parts.sources, k, build.sampling)
            )
        case TcRagSettings() as chosen:
            return build_machine(settings, chosen, parts)
        case BaselineSettings() as method:
            return build_baseline(build, method)
        case KagThinkerSettings() as thinking:
            return build_thinker(build, thinking)
        case OmniRagSettings() as planned:
            return planner_and_reader(build, planned, plan)
        case UnifiedSettings() as whole:
            return build_unified(build, whole)
        case _ as never:
            assert_never(never)


def run_budget(settings: Settings) -> Budget:
    chosen = settings.budget
    return Budget(chosen.calls, chosen.tokens, chosen.searches, chosen.seconds)

"""The strategy that the settings name, over the parts it is given."""

from __future__ import annotations

from typing import assert_never

from osler.build import Parts
from osler.build.plugins import load_maker
from osler.build.strategy_build import StrategyBuild, rule_routes
from osler.errors import BadConfig
from osler.methods.auto import AutoRoute, AutoSolver
from osler.methods.omni.dossier import SavedPlan
from osler.settings import (
    AutoSettings,
    CotSettings,
    DirectSettings,
    KagThinkerSettings,
    OmniRagSettings,
    PluginSettings,
    RagSettings,
    Settings,
    TcRagSettings,
    UnifiedSettings,
)
from osler.trace import Solver

_QUOTED_FROM = 2
"""Passages that quotes are chosen from, as a multiple of what a writing model is shown: over large
texts 295 of 491 first quotes are right, with half as many passages 278; elsewhere none is lost."""


def build_rag(build: StrategyBuild, k: int) -> Solver:
    """One search, then the answer."""
    from osler.methods.episode import MethodDeps
    from osler.methods.single_pass import RetrieveAndRead

    parts, found = build.parts, build.parts.retriever("rag", build.parts.sources)
    return RetrieveAndRead(
        MethodDeps(build.reader, found, build.composer, parts.sources, k, build.sampling)
    )


def build_auto(build: StrategyBuild, k: int) -> AutoSolver:
    """The routes in the order in which they are asked."""

    routes = [
        AutoRoute(kind, "kag-thinker", route)
        for kind, found in rule_routes(build).items()
        for route in found
    ]
    once = build_rag(build, k)
    wide = once if build.may_write("reader") else build_rag(build, k * _QUOTED_FROM)
    for kind, found in (("verdict", once), ("options", once), ("fact", wide)):
        routes.append(AutoRoute(kind, "rag", found))
    return AutoSolver(tuple(routes))


def build_solver(settings: Settings, parts: Parts, plan: SavedPlan | None = None) -> Solver:
    """The configured strategy over these parts; `plan`: run this plan, without a planner.

    Raises `BadConfig` for a plan where the strategy runs none.
    """
    from osler.methods.single_pass import ChainOfThought, Direct

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
            return build_rag(build, k)
        case TcRagSettings() as chosen:
            from osler.build.tc_rag import build_machine

            return build_machine(settings, chosen, parts)
        case PluginSettings() as method:
            return load_maker(type(method)).make_solver(build, method)
        case KagThinkerSettings() as thinking:
            from osler.build.thinking import build_thinker

            return build_thinker(build, thinking)
        case OmniRagSettings() as planned:
            from osler.build.planning import planner_and_reader

            return planner_and_reader(build, planned, plan)
        case UnifiedSettings() as whole:
            from osler.build.unified import build_unified

            return build_unified(build, whole)
        case AutoSettings(k=k):
            return build_auto(build, k)
        case _ as never:
            assert_never(never)

"""Answers by rule: verified formulas, and the concept graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from osler.build.strategy_build import StrategyBuild
from osler.methods.kag.computed import QuestionCalculator
from osler.methods.kag.graph_route import GRAPH_SETS, GraphRoute
from osler.settings import KagThinkerSettings
from osler.sources.catalogue import GRAPH

if TYPE_CHECKING:
    from osler.methods.kag.solver import QuestionRoute


def rule_routes(build: StrategyBuild) -> dict[str, tuple[QuestionRoute, ...]]:
    """KAG-Thinker's routes without a model, by the kind of question that each is for; what they
    cannot answer whole they leave to others."""
    formula, *steps = question_routes(build, KagThinkerSettings())
    return {"formula": (formula,), "steps": tuple(steps)}


def question_routes(build: StrategyBuild, chosen: KagThinkerSettings) -> Iterator[QuestionRoute]:
    """What answers without a plan by a model: verified formulas, and the concept graph where there
    is one."""
    if chosen.formulas:
        yield QuestionCalculator()
    yield from graph_route(build, chosen)


def graph_route(build: StrategyBuild, chosen: KagThinkerSettings) -> Iterator[GraphRoute]:
    parts = build.parts
    is_asked = chosen.decompose and chosen.graph_sets and chosen.retriever == "hybrid"
    if is_asked and GRAPH_SETS in parts.carriers and GRAPH in parts.sources:
        yield GraphRoute(parts.retriever(GRAPH_SETS, (GRAPH,)))

"""Parts that every strategy is built from, and what answers by rule: formulas, the graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from osler.answer import Composer
from osler.build import Parts
from osler.build.composers import build_composer, may_write, sampling_of
from osler.build.hub import read_tokens
from osler.llm.core.ask import Speaker
from osler.llm.core.base import LanguageModel, Sampling
from osler.methods.kag.computed import QuestionCalculator
from osler.methods.kag.graph_route import GRAPH_SETS
from osler.settings import KagThinkerSettings, Role, Settings
from osler.sources.catalogue import GRAPH

if TYPE_CHECKING:
    from osler.methods.kag.graph_route.answering import GraphRoute
    from osler.methods.kag.solver import QuestionRoute


@dataclass(frozen=True)
class StrategyBuild:
    """The settings in force, the parts, and how models decode."""

    settings: Settings
    parts: Parts
    sampling: Sampling

    @classmethod
    def of(cls, settings: Settings, parts: Parts) -> StrategyBuild:
        return cls(settings, parts, sampling_of(settings))

    @cached_property
    def composer(self) -> Composer:
        return build_composer(self.settings, self.parts)

    @property
    def reader(self) -> LanguageModel:
        return self.parts.model_for("reader")

    def may_write(self, role: Role) -> bool:
        """Whether the role's model may word medicine."""
        return may_write(self.settings, role)

    def make_speaker(self, role: Role) -> Speaker:
        ready = self.parts.models[role]
        return Speaker(ready.model, role, self.sampling, ready.constrains)


def rule_routes(build: StrategyBuild) -> dict[str, tuple[QuestionRoute, ...]]:
    """KAG-Thinker's routes without a model, by the kind of question that each is for; what they
    cannot answer whole they leave to others."""
    formula, *steps = question_routes(build, KagThinkerSettings())
    return {"formula": (formula,), "steps": tuple(steps)}


def question_routes(build: StrategyBuild, chosen: KagThinkerSettings) -> Iterator[QuestionRoute]:
    """What answers without a plan by a model: verified formulas, and the concept graph where there
    is one."""
    if chosen.formulas:
        packaged = build.settings.embedder.kind == "packaged"
        yield QuestionCalculator(read_tokens=read_tokens if packaged else None)
    yield from graph_route(build, chosen)


def graph_route(build: StrategyBuild, chosen: KagThinkerSettings) -> Iterator[GraphRoute]:
    parts = build.parts
    is_asked = chosen.decompose and chosen.graph_sets and chosen.retriever == "hybrid"
    if is_asked and GRAPH_SETS in parts.carriers and GRAPH in parts.sources:
        from osler.methods.kag.graph_route.answering import GraphRoute

        yield GraphRoute(parts.retriever(GRAPH_SETS, (GRAPH,)))

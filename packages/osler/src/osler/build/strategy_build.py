"""Parts that every strategy is built from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from osler.answer import Composer
from osler.build import Parts
from osler.build.composers import build_composer, may_write, sampling_of
from osler.llm.core.ask import Speaker
from osler.llm.core.base import LanguageModel, Sampling
from osler.settings import Role, Settings


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

"""Builds a strategy that another package provides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

from osler.build.strategy_build import StrategyBuild
from osler.errors import BadConfig
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.settings import PluginSettings, Settings
from osler.trace import Solver
from osler.types import Retriever


class SearchHooks:
    """What a strategy may have of its own in the searches; this is the ordinary one, with nothing.

    `chosen` are the strategy's settings.
    """

    describes_sources: ClassVar[frozenset[str]] = frozenset()
    """The strategies that are told of the sources what a source planner is told."""

    def adapt_settings(self, settings: Settings, chosen: Any) -> Settings:
        """The settings with what the method fixes otherwise: its fusion of rankings, say."""
        return settings

    def list_carriers(self, chosen: Any, kb: KnowledgeBase, encoder: Encoder) -> tuple[str, ...]:
        """Names of what it looks in beside the sources, of which the knowledge base has something.

        They are recorded with a run, so that a replay builds the same.
        """
        return ()

    def open_retriever(
        self,
        settings: Settings,
        kb: KnowledgeBase,
        encoder: Encoder,
        name: str,
        sources: tuple[str, ...],
    ) -> Retriever | None:
        """Its own retriever of this name; `None` for the ordinary search."""
        return None


class StrategyMaker(SearchHooks, ABC):
    """Makes a strategy from its settings."""

    @abstractmethod
    def make_solver(self, build: StrategyBuild, chosen: Any) -> Solver:
        """The strategy over the parts. Raises `CapabilityMissing` for what its model cannot do."""


@cache
def load_maker(chosen: type[PluginSettings]) -> StrategyMaker:
    """The maker that the settings name. Raises `BadConfig` where it is not there."""
    module, _, name = chosen.maker.partition(":")
    try:
        made = getattr(import_module(module), name)()
    except (ImportError, AttributeError, TypeError) as error:
        raise BadConfig(
            f"{chosen.__name__}.maker names {chosen.maker!r}, which makes no strategy: {error}",
            fix='name a StrategyMaker that defines make_solver, as "package.module:Class"',
        ) from error
    maker: StrategyMaker = made
    return maker

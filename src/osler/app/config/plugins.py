"""Strategies that other packages bring: entry points of the group `osler.strategies`.

An entry point names a subclass of `PluginSettings`. Its `kind` is the strategy's name, its fields
are what can be set of it, and its methods make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, ClassVar

from osler.app.config.fields import SettingsSection

if TYPE_CHECKING:
    from osler.app.config.settings import Settings
    from osler.app.wiring.build import StrategyBuild
    from osler.kb.base import KnowledgeBase
    from osler.kb.encoders.base import Encoder
    from osler.trace import Solver
    from osler.types import Retriever

GROUP = "osler.strategies"
TEXT = "text alone"
LIKELY = "log-probabilities of its tokens"
LIKELIEST = "log-probabilities of its likeliest tokens"
ATTENTION = "attention (transformers)"
CHECKPOINT = "a checkpoint of Self-RAG's, with scoring of given texts"
CHAINS = f"{TEXT}; a concept graph"


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """What is known of a method beside its settings: its paper, needs and cost."""

    kind: str
    """Its `strategy.kind`."""
    paper: str
    calls: str
    """Model calls for one question, in words."""
    most: int
    """Model calls at the default settings, at most, without those of the composer."""
    source: str
    """Where its default settings were looked up."""
    needs: str = TEXT
    """What it needs of the model: one of this module's constants."""
    differs: str = "-"
    """Departures from its paper."""
    recalled: Sequence[str] = ()
    """Settings whose defaults are the paper's from memory."""
    ours: Sequence[str] = ()
    """Settings for which the authors give nothing that fits."""


class PluginSettings(SettingsSection):
    """Settings of a strategy of another package, and how it is made from them."""

    kind: str
    describes_sources: ClassVar[bool] = False
    """Whether it is told of the sources what a source planner is told."""

    def make_solver(self, build: StrategyBuild) -> Solver:
        """The strategy over the parts. Raises `CapabilityMissing` for what its model cannot do."""
        raise NotImplementedError

    @classmethod
    def list_facts(cls) -> MethodFacts | None:
        """What `osler doctor` and an estimate of cost go by; `None` if nothing is known."""
        return None

    def adapt_settings(self, settings: Settings) -> Settings:
        """The settings with what the method fixes otherwise: its fusion of rankings, say."""
        return settings

    def list_carriers(self, kb: KnowledgeBase, encoder: Encoder) -> tuple[str, ...]:
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


@cache
def find_plugins() -> tuple[type[PluginSettings], ...]:
    """The strategies of the packages that are installed."""
    return tuple(entry.load() for entry in entry_points(group=GROUP))


SINGLE_PASS = (
    MethodFacts("direct", "Base", "1", 1, "no values"),
    MethodFacts("cot", "Wei et al. 2022", "1", 1, "no values", differs="no demonstrations"),
    MethodFacts("rag", "SR-RAG; Naive RAG; Original Question", "1", 1, "Omni-RAG §5.1.2"),
)
"""The methods of one reading that come with Osler itself."""


@cache
def methods_by_kind() -> dict[str, MethodFacts]:
    """Facts of the methods of one reading and of those that other packages bring."""
    brought = (plugin.list_facts() for plugin in find_plugins())
    return {facts.kind: facts for facts in (*SINGLE_PASS, *filter(None, brought))}

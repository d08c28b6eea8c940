"""Strategies that other packages bring: entry points of the group `osler.strategies`.

An entry point names a subclass of `PluginSettings`. Its `kind` is the strategy's name, its fields
are what can be set of it, and its `maker` says what makes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from osler.settings.fields import SettingsSection
from osler.text import load_plugins

GROUP = "osler.strategies"
TEXT = "text alone"
LIKELY = "log-probabilities of its tokens"
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
    """Settings of a strategy of another package."""

    kind: str
    maker: ClassVar[str]
    """Where the class lies that makes it, as in "package.module:Class": a
    `osler.build.plugins.StrategyMaker`, imported when the strategy is asked."""

    @classmethod
    def list_facts(cls) -> MethodFacts | None:
        """What `osler doctor` and an estimate of cost go by; `None` if nothing is known."""
        return None


@cache
def find_plugins() -> tuple[type[PluginSettings], ...]:
    """The strategies of the packages that are installed."""
    return tuple(load_plugins(GROUP).values())


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

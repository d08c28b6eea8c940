"""What a strategy is built from.

`Parts` come in three kinds: live ones, live ones that are being recorded, and replayed
ones that touch no model, encoder or knowledge base. A strategy cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from osler.app.config import (
    Baseline,
    Cot,
    Direct,
    KagThinker,
    OmniRag,
    Rag,
    Role,
    Settings,
    TcRag,
    Unified,
)
from osler.app.wiring.models import Ready
from osler.errors import BadConfig
from osler.llm.core.base import LanguageModel
from osler.methods.omni.describe import Offer
from osler.types import Relevance, Retriever

if TYPE_CHECKING:
    pass


CHAINS = "chains"
"""The user of a retriever that finds reasoning chains, not passages."""


@dataclass(frozen=True)
class Parts:
    """What a strategy is built from."""

    models: Mapping[Role, Ready]
    """Of the roles that the strategy has."""
    retriever: Callable[[str, tuple[str, ...]], Retriever]
    """Name of its user and sources → retriever."""
    relevance: Relevance
    """Of a sentence to a question."""
    coverage: Relevance
    """Of a question by a passage."""
    sources: tuple[str, ...]
    """Those that the knowledge base holds and the settings allow."""
    snapshot: str = ""
    carriers: tuple[str, ...] = ()
    """What can be looked up in the concept graph besides the source: `wiring.tools`."""
    offers: tuple[Offer, ...] = ()
    """The same sources as a planner is told of them; empty where nobody plans sources."""

    def model(self, role: Role) -> LanguageModel:
        return self.models[role].model

    @property
    def names(self) -> dict[Role, str]:
        """Role to model identity."""
        return {role: ready.model.name for role, ready in self.models.items()}


def roles_of(settings: Settings) -> tuple[Role, ...]:
    """The roles that the strategy has."""
    match settings.strategy:
        case Direct() | Cot() | Rag() | Baseline():
            return ("reader",)
        case TcRag():
            return ("planner", "summariser", "reader")
        case KagThinker():
            return ("planner", "reader")
        case Unified(planner="reflexion" | "serts"):
            return ("planner", "summariser", "judge", "reader")
        case Unified():
            return ("planner", "summariser", "reader")
        case OmniRag(planner="reflexion" | "serts"):
            return ("planner", "judge", "reader")
        case OmniRag():
            return ("planner", "reader")
        case _ as never:
            assert_never(never)


def searches(settings: Settings) -> bool:
    """Whether the strategy reads the knowledge base."""
    return not isinstance(settings.strategy, Direct | Cot)


def no_retriever(name: str, sources: tuple[str, ...]) -> Retriever:
    raise BadConfig(f"{name} searches nothing")

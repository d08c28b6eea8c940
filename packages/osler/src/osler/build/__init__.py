"""Builds objects from settings: the only package that imports every other one.

| Module | Builds |
|---|---|
| `models` | language models and encoders; which model plays which role |
| `hub` | models that transformers or a server runs, rerankers, the keys of servers |
| `knowledge` | the knowledge base and its retrievers |
| `graphs` | what the concept graph answers: chains, logical forms, single facts |
| `online_sources` | searches outside the knowledge base, and patients |
| `extraction` | extractors of entities, relations and knowledge points |
| `live` | the `Parts` of a strategy: live, recorded to a tape, or replayed from one |
| `resource_cache` | what is costly to open, opened once and shared by many runs |
| `composers`, `tc_rag`, `thinking`, `planning`, `tools` | the pieces of the papers' strategies |
| `strategies` | the strategies; those of other packages make themselves |
| `training`, `teaching` | what `osler train` explores, judges and teaches with |

Import each name from the module that defines it. This one defines `Parts`, which all share
(they come live, recorded or replayed, and a strategy cannot tell these apart), and the bounds of a
run: its budget, and the prices by which money is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never

from osler.build.models import LoadedModel
from osler.errors import BadConfig
from osler.llm.core.base import LanguageModel
from osler.methods.omni.planners import SourceDescription
from osler.retrieve.pooled import FusedRelevance, PooledOrder
from osler.settings import (
    AutoSettings,
    CotSettings,
    DirectSettings,
    KagThinkerSettings,
    OmniRagSettings,
    PluginSettings,
    RagSettings,
    Role,
    Settings,
    TcRagSettings,
    UnifiedSettings,
)
from osler.trace import Budget, Price, Run, Sink
from osler.types import Relevance, Retriever


@dataclass(frozen=True)
class Parts:
    """The models, retrievers and scorers that a strategy is built from."""

    models: Mapping[Role, LoadedModel]
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
    """What can be looked up in the concept graph besides the source: `osler.build.tools`."""
    offers: tuple[SourceDescription, ...] = ()
    """The same sources as a planner sees them; empty where nobody plans sources."""
    pool: Relevance | None = None
    """Of a passage to a question, where several searches are pooled: the configured reranker, or
    cosine and BM25 fused; `None` = `relevance` and `coverage`, fused."""
    unindexed: int = 0
    """Passages that still wait for their vector."""
    meaning: Relevance | None = None
    """Of a Chinese sentence, by meaning and words; `None` = `relevance`, which has its words."""
    judge: Relevance | None = None
    """Reads question and sentence together; `None` = relevance alone orders sentences."""
    match: Relevance | None = None
    """Of a sentence under its heading to a question; there with the judge alone."""
    faults: tuple[str, ...] = ()
    """Why an expert that is set is not in use; for the reader."""
    kinds: Relevance | None = None
    """How much a sentence is of a kind (`osler.retrieve.experts.kinds`); there with the judge."""
    label_sections: Relevance | None = None
    """How likely a section of a drug's label answers, by its heading; there with the judge."""

    @property
    def order(self) -> PooledOrder:
        """The single fused ranking of what several searches found."""
        # Tapes of before there was a scorer for it know relevance and coverage alone.
        return PooledOrder(self.pool or FusedRelevance(self.relevance, self.coverage))

    def model_for(self, role: Role) -> LanguageModel:
        return self.models[role].model

    @property
    def names(self) -> dict[Role, str]:
        """Role to model identity."""
        return {role: ready.model.name for role, ready in self.models.items()}


def roles_of(settings: Settings) -> tuple[Role, ...]:
    """The roles that the strategy has."""
    match settings.strategy:
        case DirectSettings() | CotSettings() | RagSettings() | PluginSettings():
            return ("reader",)
        case TcRagSettings():
            return ("planner", "summariser", "reader")
        case KagThinkerSettings() | AutoSettings():
            return ("planner", "reader")
        case UnifiedSettings(planner="reflexion" | "serts"):
            return ("planner", "summariser", "judge", "reader")
        case UnifiedSettings():
            return ("planner", "summariser", "reader")
        case OmniRagSettings(planner="reflexion" | "serts"):
            return ("planner", "judge", "reader")
        case OmniRagSettings():
            return ("planner", "reader")
        case _ as never:
            assert_never(never)


def reads_knowledge(settings: Settings) -> bool:
    """Whether the strategy reads the knowledge base."""
    return not isinstance(settings.strategy, DirectSettings | CotSettings)


def no_retriever(name: str, sources: tuple[str, ...]) -> Retriever:
    raise BadConfig(f"{name} searches nothing")


def make_run(
    settings: Settings, names: Mapping[Role, str], id: str, sink: Sink | None = None
) -> Run:
    """A run with the seed, the bounds and the prices of the settings; `names` are `Parts.names`."""
    prices = run_prices(settings, names)
    return Run(id, settings.sampling.seed, run_budget(settings), sink=sink, prices=prices)


def run_budget(settings: Settings) -> Budget:
    chosen = settings.budget
    return Budget(chosen.calls, chosen.tokens, chosen.searches, chosen.seconds, chosen.money)


def run_prices(settings: Settings, names: Mapping[Role, str]) -> dict[str, Price]:
    """Prices by model identity, of the models that play the roles (`Parts.names`).

    Raises `BadConfig` for a budget in money that a model on a server has no price for: what runs
    in this process sends no bill.
    """
    table, found = settings.prices.table, dict[str, Price]()
    for role, identity in names.items():
        chosen = settings.model_for(role)
        if price := table.get(chosen.name) or table.get(identity):
            found[identity] = price
        elif settings.budget.money is not None and chosen.kind == "openai":
            raise _refuse_unpriced(chosen.name)
    return found


def _refuse_unpriced(name: str) -> BadConfig:
    return BadConfig(
        f"budget.money bounds nothing: {name} has no price",
        fix=f'add "{name}=READ/CACHED/WRITTEN" to prices.models',
    )

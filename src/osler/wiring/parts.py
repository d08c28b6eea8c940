"""What a strategy is built from.

`Parts` come in three kinds: live ones, live ones that are being recorded, and replayed
ones that touch no model, encoder or knowledge base. A strategy cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from osler.config import Cot, Direct, KagThinker, Rag, Role, Settings, TcRag
from osler.errors import BadConfig
from osler.llm.base import LanguageModel, Likelihood
from osler.llm.tape import (
    Able,
    Player,
    RecordingRelevance,
    RecordingRetriever,
    ReplayingRelevance,
    ReplayingRetriever,
    Tape,
    recording,
    replaying,
)
from osler.retrieve.relevance import Coverage, Overlap
from osler.types import Relevance, Retriever
from osler.wiring.forms import FORMS, by_form
from osler.wiring.hub import reranked, reranker
from osler.wiring.knowledge import knowledge_base, retriever, searched
from osler.wiring.models import Ready, cast, encoder, relevance


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

    def model(self, role: Role) -> LanguageModel:
        return self.models[role].model

    @property
    def names(self) -> dict[Role, str]:
        """Role to model identity."""
        return {role: ready.model.name for role, ready in self.models.items()}


def roles_of(settings: Settings) -> tuple[Role, ...]:
    """The roles that the strategy has."""
    match settings.strategy:
        case Direct() | Cot() | Rag():
            return ("reader",)
        case TcRag():
            return ("planner", "summariser", "reader")
        case KagThinker():
            return ("planner", "reader")
        case _ as never:
            assert_never(never)


async def live(settings: Settings) -> Parts:
    """The real models, and the real knowledge base where the strategy reads one."""
    models = await cast(settings, roles_of(settings))
    if isinstance(settings.strategy, Direct | Cot):
        return Parts(models, _no_retriever, Overlap(), Overlap(), ())
    kb, chosen = knowledge_base(settings), encoder(settings)
    kb.require_built(chosen.identity)
    second = reranker(settings, chosen)
    every = searched(settings, kb)

    def search(sources: tuple[str, ...]) -> Retriever:
        return reranked(settings, retriever(settings, kb, chosen, sources), second, sources)

    return Parts(
        models,
        lambda name, sources: (
            by_form(settings, search, every) if name == FORMS else search(sources)
        ),
        relevance(chosen),
        Coverage(kb.rarity),
        every,
        kb.snapshot,
    )


def recorded(parts: Parts, tape: Tape) -> Parts:
    """The same parts, with everything that they give written to the tape."""
    models: dict[Role, Ready] = {}
    for role, ready in parts.models.items():
        scores = isinstance(ready.model, Likelihood)
        tape.models[ready.model.name] = Able(scores, ready.constrains)
        models[role] = replace(ready, model=recording(ready.model, tape))
    return Parts(
        models,
        lambda name, sources: RecordingRetriever(name, parts.retriever(name, sources), tape),
        RecordingRelevance("relevance", parts.relevance, tape),
        RecordingRelevance("coverage", parts.coverage, tape),
        parts.sources,
        parts.snapshot,
    )


def replayed(
    tape: Tape, names: Mapping[Role, str], sources: tuple[str, ...], snapshot: str
) -> Parts:
    """What the tape holds, and nothing else; `names` says which model played which role.

    Raises `BadRun` when the tape knows no such model.
    """
    player = Player(tape)
    return Parts(
        {
            role: Ready(replaying(player, name), player.able(name).constrains)
            for role, name in names.items()
        },
        lambda name, sources: ReplayingRetriever(name, player),
        ReplayingRelevance("relevance", player),
        ReplayingRelevance("coverage", player),
        sources,
        snapshot,
    )


def _no_retriever(name: str, sources: tuple[str, ...]) -> Retriever:
    raise BadConfig(f"{name} searches nothing")

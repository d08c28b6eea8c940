"""What a strategy is built from.

`Parts` come in three kinds: live ones, live ones that are being recorded, and replayed
ones that touch no model, encoder or knowledge base. A strategy cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from osler.config import Cot, Direct, Settings
from osler.errors import BadConfig
from osler.llm.base import LanguageModel
from osler.llm.tape import (
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
from osler.wiring.knowledge import knowledge_base, retriever, searched
from osler.wiring.models import encoder, language_model, relevance


@dataclass(frozen=True)
class Parts:
    """What a strategy is built from."""

    model: LanguageModel
    retriever: Callable[[str, tuple[str, ...]], Retriever]
    """Name of its user and sources → retriever."""
    relevance: Relevance
    """Of a sentence to a question."""
    coverage: Relevance
    """Of a question by a passage."""
    sources: tuple[str, ...]
    """Those that the knowledge base holds and the settings allow."""
    snapshot: str = ""
    constrains: bool = True
    """Whether the model takes a grammar."""


async def live(settings: Settings) -> Parts:
    """The real model, and the real knowledge base where the strategy reads one."""
    model, constrains = await language_model(settings)
    if isinstance(settings.strategy, Direct | Cot):
        return Parts(model, _no_retriever, Overlap(), Overlap(), (), constrains=constrains)
    kb, chosen = knowledge_base(settings), encoder(settings)
    kb.require_built(chosen.identity)
    return Parts(
        model,
        lambda name, sources: retriever(settings, kb, chosen, sources),
        relevance(chosen),
        Coverage(kb.rarity),
        searched(settings, kb),
        kb.snapshot,
        constrains,
    )


def recorded(parts: Parts, tape: Tape) -> Parts:
    """The same parts, with everything that they give written to the tape."""
    return Parts(
        recording(parts.model, tape),
        lambda name, sources: RecordingRetriever(name, parts.retriever(name, sources), tape),
        RecordingRelevance("relevance", parts.relevance, tape),
        RecordingRelevance("coverage", parts.coverage, tape),
        parts.sources,
        parts.snapshot,
        parts.constrains,
    )


def replayed(tape: Tape, sources: tuple[str, ...], snapshot: str) -> Parts:
    """What the tape holds, and nothing else."""
    player = Player(tape)
    return Parts(
        replaying(player),
        lambda name, sources: ReplayingRetriever(name, player),
        ReplayingRelevance("relevance", player),
        ReplayingRelevance("coverage", player),
        sources,
        snapshot,
        tape.constrains,
    )


def _no_retriever(name: str, sources: tuple[str, ...]) -> Retriever:
    raise BadConfig(f"{name} searches nothing")

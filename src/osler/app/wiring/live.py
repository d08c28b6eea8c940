"""Makes the parts of a strategy: live ones, live ones that are recorded, and replayed ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from osler.app.config import (
    OmniRag,
    Role,
    Settings,
    Unified,
)
from osler.app.config.baselines import IMedRag, MedRag
from osler.app.wiring import graphs, tools
from osler.app.wiring.graph_lookup import FORMS, by_form
from osler.app.wiring.hub import reranked, reranker
from osler.app.wiring.knowledge import knowledge_base, offers, retriever, searched
from osler.app.wiring.models import Ready, cast, encoder, identity, relevance
from osler.llm.core.base import Attentive, Likelihood
from osler.llm.recording.players import Player, ReplayingRelevance, ReplayingRetriever, replaying
from osler.llm.recording.recorders import RecordingRelevance, RecordingRetriever, recording
from osler.llm.recording.response_cache import Replies, remembering
from osler.llm.recording.tape import Able, Tape
from osler.methods.omni.describe import Offer
from osler.retrieve.relevance import Coverage, Overlap
from osler.types import Relevance, Retriever

if TYPE_CHECKING:
    from osler.kb.base import KnowledgeBase
    from osler.kb.encoders.base import Encoder
from osler.app.wiring.parts import CHAINS, Parts, no_retriever, roles_of, searches


async def live(settings: Settings) -> Parts:
    """The real models, and the real knowledge base where the strategy reads one."""
    models = await cast(settings, roles_of(settings))
    if not searches(settings):
        return without_knowledge(models)
    kb, chosen = knowledge_base(settings), encoder(settings)
    return with_knowledge(settings, models, kb, chosen, reranker(settings, chosen))


def without_knowledge(models: Mapping[Role, Ready]) -> Parts:
    return Parts(models, no_retriever, Overlap(), Overlap(), ())


def with_knowledge(
    settings: Settings,
    models: Mapping[Role, Ready],
    kb: KnowledgeBase,
    chosen: Encoder,
    second: Relevance | None,
) -> Parts:
    """Raises `KnowledgeBaseError` where the knowledge base cannot be searched with `chosen`."""
    kb.require_built(chosen.identity)
    settings = _as_fused(settings)
    every = searched(settings, kb)

    def search(sources: tuple[str, ...]) -> Retriever:
        return reranked(settings, retriever(settings, kb, chosen, sources, second), second, sources)

    def made(name: str, sources: tuple[str, ...]) -> Retriever:
        if name == CHAINS:
            return graphs.chains(settings)
        if name == FORMS:
            return by_form(settings, search, every)
        return tools.carrier(settings, name) or search(sources)

    return Parts(
        models,
        made,
        relevance(chosen),
        Coverage(kb.rarity),
        every,
        kb.snapshot,
        tools.over_graph(settings),
        offers(kb, every) if isinstance(settings.strategy, OmniRag | Unified) else (),
    )


def remembered(settings: Settings, parts: Parts, replies: Replies) -> Parts:
    """The same parts, whose models are not asked again what `replies` knows."""
    models = {
        role: replace(ready, model=remembering(ready.model, identity(settings.role(role)), replies))
        for role, ready in parts.models.items()
    }
    return replace(parts, models=models)


def recorded(parts: Parts, tape: Tape) -> Parts:
    """The same parts, with everything that they give written to the tape."""
    models: dict[Role, Ready] = {}
    for role, ready in parts.models.items():
        scores = isinstance(ready.model, Likelihood)
        attends = isinstance(ready.model, Attentive)
        tape.models[ready.model.name] = Able(scores, ready.constrains, attends)
        models[role] = replace(ready, model=recording(ready.model, tape))
    return Parts(
        models,
        lambda name, sources: RecordingRetriever(name, parts.retriever(name, sources), tape),
        RecordingRelevance("relevance", parts.relevance, tape),
        RecordingRelevance("coverage", parts.coverage, tape),
        parts.sources,
        parts.snapshot,
        parts.carriers,
        parts.offers,
    )


def replayed(
    tape: Tape,
    names: Mapping[Role, str],
    sources: tuple[str, ...],
    snapshot: str,
    carriers: tuple[str, ...] = (),
    offers: tuple[Offer, ...] = (),
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
        carriers,
        offers,
    )


def _as_fused(settings: Settings) -> Settings:
    """MedRAG fuses the word index and the vector index alike, with a constant of its own, and
    each to a hundred hits (`RetrievalSystem.retrieve` of its program)."""
    method = settings.strategy
    if not isinstance(method, MedRag | IMedRag):
        return settings
    fusion = {"rrf_k": method.rrf_k, "dense_weight": 1.0, "lexical_weight": 1.0, "depth": 100}
    return settings.model_copy(update={"retrieve": settings.retrieve.model_copy(update=fusion)})

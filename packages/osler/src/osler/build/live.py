"""Makes the parts of a strategy: live ones, live ones that are recorded, and replayed ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from osler.build import Parts, no_retriever, reads_knowledge, roles_of, tools
from osler.build.graphs import FORMS, form_retriever
from osler.build.hub import open_experts, open_reranker, search_server, with_reranker
from osler.build.knowledge import (
    describe_sources,
    make_retriever,
    open_knowledge_base,
    pool_relevance,
    search_filter,
    searched_sources,
)
from osler.build.models import (
    LoadedModel,
    encoder_relevance,
    load_encoder,
    load_roles,
    meaning_relevance,
)
from osler.build.plugins import SearchHooks, load_maker
from osler.build.privacy import require_trusted_hosts, within_patients
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.llm.core.base import Attentive, Likelihood
from osler.llm.recording import (
    TapePlayer,
    WrappedRelevance,
    WrappedRetriever,
    replay_model,
    wrap_model,
)
from osler.llm.recording.tape import ModelAbilities, Tape
from osler.methods.omni.planners import SourceDescription
from osler.retrieve.experts.judge import JUDGE, MATCH
from osler.retrieve.experts.kinds import KINDS
from osler.retrieve.experts.label_sections import LABEL_SECTIONS
from osler.retrieve.hybrid import question_reader
from osler.retrieve.instructions import InstructionFreeRetriever
from osler.retrieve.relevance import CoverageRelevance, OverlapRelevance
from osler.settings import OmniRagSettings, PluginSettings, Role, Settings, UnifiedSettings
from osler.types import Relevance, Retriever

_SCORERS = {
    "pool": "pool",
    "meaning": "meaning",
    "judge": JUDGE,
    "match": MATCH,
    "kinds": KINDS,
    "label_sections": LABEL_SECTIONS,
}
"""Fields of `Parts` with a scorer that need not be there, by their names on a tape."""


async def live_parts(settings: Settings) -> Parts:
    """The real models, and the real knowledge base where the strategy reads one."""
    return parts_around(settings, await load_roles(settings, roles_of(settings)))


def parts_around(settings: Settings, models: Mapping[Role, LoadedModel]) -> Parts:
    """The real knowledge base around models that are there already."""
    if not reads_knowledge(settings):
        return without_knowledge(models)
    kb, chosen = open_knowledge_base(settings), load_encoder(settings)
    return with_knowledge(settings, models, kb, chosen, open_reranker(settings))


def without_knowledge(models: Mapping[Role, LoadedModel]) -> Parts:
    return Parts(models, no_retriever, OverlapRelevance(), OverlapRelevance(), ())


def with_knowledge(
    settings: Settings,
    models: Mapping[Role, LoadedModel],
    kb: KnowledgeBase,
    chosen: Encoder,
    second: Relevance | None,
) -> Parts:
    """Raises `KnowledgeBaseError` where the knowledge base cannot be searched with `chosen`."""
    unindexed = kb.count_unindexed(chosen.identity)
    method = settings.strategy
    maker = load_maker(type(method)) if isinstance(method, PluginSettings) else SearchHooks()
    settings = maker.adapt_settings(settings, method)
    every = searched_sources(settings, kb)
    require_trusted_hosts(settings, every, roles=roles_of(settings))

    day = settings.retrieve.known_day
    held = search_filter(settings, tuple(source for source in every if source in kb.sources))
    rarity, reader = partial(kb.term_rarity, as_of=day), question_reader(kb, held)

    def make_search(sources: tuple[str, ...]) -> Retriever:
        plain = make_retriever(settings, kb, chosen, sources, second)
        return within_patients(settings, with_reranker(settings, plain, second, sources), sources)

    def make_clean(name: str, sources: tuple[str, ...]) -> Retriever:
        found = make_named(name, sources)
        blank = settings.retrieve.instructions == "blank"
        return InstructionFreeRetriever(found) if blank else found

    def make_named(name: str, sources: tuple[str, ...]) -> Retriever:
        if name == "kag-thinker" and (served := search_server(settings)) is not None:
            return served
        if name == FORMS:
            likeness = encoder_relevance(chosen)
            return form_retriever(settings, make_search, every, likeness, chosen)
        own = maker.open_retriever(settings, kb, chosen, name, sources)
        if own is not None:
            return within_patients(settings, own, every)
        return tools.carrier_for(settings, name) or make_search(sources)

    return Parts(
        models,
        make_clean,
        encoder_relevance(chosen, reader, rarity),
        CoverageRelevance(rarity, reader),
        every,
        kb.snapshot,
        (*tools.graph_carriers(settings), *maker.list_carriers(method, kb, chosen)),
        describe_sources(kb, every)
        if isinstance(method, OmniRagSettings | UnifiedSettings)
        or method.kind in maker.describes_sources
        else (),
        pool_relevance(settings, rarity, chosen, second),
        unindexed,
        meaning_relevance(chosen, reader),
        *open_experts(settings, chosen, reader),
    )


def record_parts(parts: Parts, tape: Tape) -> Parts:
    """The same parts, with everything that they give written to the tape."""
    models: dict[Role, LoadedModel] = {}
    for role, ready in parts.models.items():
        scores = isinstance(ready.model, Likelihood)
        attends = isinstance(ready.model, Attentive)
        tape.models[ready.model.name] = ModelAbilities(
            scores, ready.constrains, attends, ready.tells
        )
        models[role] = replace(ready, model=wrap_model(ready.model, tape))
    scorers: dict[str, Any] = {
        field: WrappedRelevance(name, scorer, tape)
        for field, name in _SCORERS.items()
        if (scorer := getattr(parts, field)) is not None
    }
    return replace(
        parts,
        models=models,
        retriever=lambda name, sources: WrappedRetriever(
            name, parts.retriever(name, sources), tape
        ),
        relevance=WrappedRelevance("relevance", parts.relevance, tape),
        coverage=WrappedRelevance("coverage", parts.coverage, tape),
        **scorers,
    )


def _replayed_model(player: TapePlayer, name: str) -> LoadedModel:
    able = player.abilities_of(name)
    return LoadedModel(replay_model(player, name), able.constrains, tells=able.tells)


def replay_parts(
    tape: Tape,
    names: Mapping[Role, str],
    sources: tuple[str, ...],
    snapshot: str,
    carriers: tuple[str, ...] = (),
    offers: tuple[SourceDescription, ...] = (),
    unindexed: int = 0,
) -> Parts:
    """Builds parts that answer from the tape alone; `names` maps each role to its model's name.

    Raises `BadRun` when the tape knows no such model.
    """
    player = TapePlayer(tape)
    # A scorer that the tape does not know was not there, or had nothing to score.
    scorers: dict[str, Any] = {
        field: WrappedRelevance(name, None, player)
        for field, name in _SCORERS.items()
        if name in tape.scorers
    }
    return Parts(
        {role: _replayed_model(player, name) for role, name in names.items()},
        lambda name, sources: WrappedRetriever(name, None, player),
        WrappedRelevance("relevance", None, player),
        WrappedRelevance("coverage", None, player),
        sources,
        snapshot,
        carriers,
        offers,
        unindexed=unindexed,
        **scorers,
    )

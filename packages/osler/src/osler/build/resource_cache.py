"""Caches what is costly to open, so that many runs and searches share it.

A server answers many questions with one loaded model, one open knowledge base and one
encoder. What may change between two runs, the snapshot and the sources, is read anew.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from osler.build import Parts, graphs, online_sources, reads_knowledge, roles_of
from osler.build.hub import open_reranker, with_reranker
from osler.build.knowledge import (
    make_retriever,
    naming_sources,
    open_knowledge_base,
    open_record_source,
    searched_sources,
)
from osler.build.live import with_knowledge, without_knowledge
from osler.build.models import LoadedModel, load_encoder, load_roles
from osler.build.privacy import require_trusted_hosts, within_patients
from osler.errors import KnowledgeBaseError, ModelError
from osler.graph.store import Graph
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.retrieve.open_records import OPEN_RECORDS
from osler.settings import ModelSettings, Settings
from osler.types import Hit, Passage, Relevance, Retriever

# Searchers that are kept; each is one choice of sources and bounds.
_SEARCHERS = 32


@dataclass(frozen=True)
class OpenKnowledge:
    """The knowledge base with what searches it."""

    kb: KnowledgeBase
    encoder: Encoder
    second: Relevance | None


class ResourceCache:
    """Opens each thing at the first need and keeps it until `close`.

    `ready` and `load_encoder` stand in the place of what the settings name: an embedder of
    this class that has them loaded, or a test, gives them.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        ready: dict[ModelSettings, LoadedModel] | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        self.settings = settings
        self._ready = {} if ready is None else ready
        self._encoder = encoder
        self._knowledge: OpenKnowledge | None = None
        self._graph: Graph | None = None
        self._searchers: OrderedDict[str, Retriever] = OrderedDict()
        self._models_lock = asyncio.Lock()
        self._knowledge_lock = asyncio.Lock()

    async def open_knowledge(self) -> OpenKnowledge:
        """Raises `KnowledgeBaseError` and `ModelError`; the next call tries again."""
        async with self._knowledge_lock:
            if self._knowledge is None:
                self._knowledge = await asyncio.to_thread(self._open_files)
        return self._knowledge

    def _open_files(self) -> OpenKnowledge:
        kb = open_knowledge_base(self.settings)
        chosen = self._encoder or load_encoder(self.settings)
        kb.count_unindexed(chosen.identity)
        return OpenKnowledge(kb, chosen, open_reranker(self.settings))

    async def parts_for(self, settings: Settings) -> Parts:
        """Builds the parts of a strategy; `settings` differ from the cache's in what a
        request may choose (strategy, sources, bounds). Raises `OslerError`."""
        async with self._models_lock:
            models = await load_roles(settings, roles_of(settings), self._ready)
        if not reads_knowledge(settings):
            return without_knowledge(models)
        held = await self.open_knowledge()
        return await asyncio.to_thread(
            with_knowledge, settings, models, held.kb, held.encoder, held.second
        )

    async def require_sources(self, settings: Settings) -> None:
        """Raises `BadConfig` where the settings name a source that is not there, or that may not be
        searched; what else is wrong with the knowledge base shows when it is read."""
        if (settings.kb.sources or settings.retrieve.is_filtered) and reads_knowledge(settings):
            with suppress(KnowledgeBaseError, ModelError):
                held = await self.open_knowledge()
                await asyncio.to_thread(searched_sources, settings, held.kb)

    async def search(
        self, settings: Settings, query: str, *, k: int, sources: Iterable[str] = ()
    ) -> list[Hit]:
        """One search; no `sources` = all that are not private. Raises `OslerError`."""
        held = await self.open_knowledge()
        settings = naming_sources(settings, sources)
        named = await asyncio.to_thread(searched_sources, settings, held.kb)
        require_trusted_hosts(settings, named, roles=())
        return await self._cached_retriever(settings, held, named).search(query, k=k)

    def _cached_retriever(
        self, settings: Settings, held: OpenKnowledge, named: tuple[str, ...]
    ) -> Retriever:
        # The patients of the caller belong to the key: a searcher must not serve another's.
        patients = settings.access.patients
        # While vectors are being made, the way to search changes.
        meaning = held.kb.has_vectors(held.encoder.identity)
        opened = bool(open_record_source(settings.access))
        graph = graphs.has_graph(settings)
        key = f"{settings.retrieve!r} {named!r} {patients!r} {opened} {graph} {meaning}"
        if (kept := self._searchers.get(key)) is None:
            plain = make_retriever(settings, held.kb, held.encoder, named)
            search = with_reranker(settings, plain, held.second, named)
            kept = self._searchers[key] = within_patients(settings, search, named)
            if len(self._searchers) > _SEARCHERS:
                self._searchers.popitem(last=False)
        self._searchers.move_to_end(key)
        return kept

    async def open_graph(self) -> Graph | None:
        """The concept graph; `None` if absent."""
        if self._graph is None:
            self._graph = await asyncio.to_thread(graphs.open_graph, self.settings)
        return self._graph

    async def outside_passage(self, id: str) -> Passage | None:
        """A passage that is not the knowledge base's: of the graph, of a formula, of a record
        that was opened, or found outside before."""
        look: tuple[Callable[[Settings, str], Passage | None], ...] = (
            graphs.graph_passage,
            graphs.formula_passage,
            online_sources.cached_passage,
        )
        if (opened := OPEN_RECORDS.find_passage(id)) is not None:
            return opened
        for one in look:
            if (found := await asyncio.to_thread(one, self.settings, id)) is not None:
                return found
        return None

    def close(self) -> None:
        self._searchers.clear()
        if self._knowledge is not None:
            self._knowledge.kb.close()
            self._knowledge = None
        if self._graph is not None:
            self._graph.close()
            self._graph = None

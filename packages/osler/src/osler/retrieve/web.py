"""Retrievers over online services, and over an index and online services together.

A passage from online has its address and the day it was fetched, and is cached, so that its
citation resolves even when the page has changed or disappeared.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError, SourceUnavailable
from osler.kb.ingest.chunk import document_passages
from osler.kb.search.base import PassageFilter, fold_kind
from osler.retrieve import rank_hits
from osler.retrieve.entity_names import EntityNames
from osler.retrieve.pooled import PooledOrder, rank_texts
from osler.retrieve.relevance import OverlapRelevance
from osler.sources.catalogue import GRAPH, WIKI
from osler.sources.records import Document
from osler.text import language_of
from osler.trace.ordered import gather
from osler.types import Hit, Passage, Retriever

if TYPE_CHECKING:
    from osler.llm.server.connection import ServerClient
    from osler.sources.online.client import OnlineClient, SearchService

# Entities of a question that are looked up: a pair, as of drugs, is both of them.
_ENTITIES = 2


@dataclass(frozen=True)
class OnlineRetriever:
    """A search service as a `Retriever`; the best passage of each document comes first."""

    engine: SearchService
    net: OnlineClient
    source: str
    """The passages' source: "web", "wiki", "research"."""
    documents: int = 5
    """Documents requested of the service."""
    entities: tuple[EntityNames, ...] = ()
    """Finders of the entities that are looked up in place of the query (TC-RAG App. 8.5: the
    encyclopaedia); without them, and where they find none, it is the query."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """The best `k` passages. Raises `SourceUnavailable`."""
        found = await self._find_documents(query)
        ranked = await self._rank_passages(query, found)
        if self.net.cache and ranked:
            await asyncio.to_thread(self.net.cache.keep_passages, ranked, now=self.net.clock())
        return [
            Hit(passage, 1 / rank, rank, query, self.engine.name)
            for rank, passage in enumerate(ranked[:k], 1)
        ]

    async def _find_documents(self, query: str) -> list[Document]:
        """Documents by the entities of the query, by turns; else by the query itself."""
        chosen = await asyncio.to_thread(choose_entities, query, self.entities)
        by_name = await gather([self.engine.find(name, k=self.documents) for name in chosen])
        turns = (document for turn in zip_longest(*by_name) for document in turn if document)
        found = list({document.id: document for document in turns}.values())
        return found[: self.documents] or list(await self.engine.find(query, k=self.documents))

    async def _rank_passages(self, query: str, found: Sequence[Document]) -> list[Passage]:
        """The best passage of every document in the engine's order, then the second best, …"""
        of_each = []
        for passages in map(self._cut_passages, found):
            texts = [passage.text for passage in passages]
            order = rank_texts(await OverlapRelevance().relevance(query, texts))
            of_each.append([passages[i] for i in order])
        # Round-robin over documents: one long page must not fill the list.
        rounds = zip_longest(*of_each)
        distinct = {p.id: p for several in rounds for p in several if p is not None}
        return list(distinct.values())

    def _cut_passages(self, document: Document) -> list[Passage]:
        """Passages with ids that contain a hash of the text: both versions of a changed page can
        be cited."""
        told = "\n".join(section.text for section in document.sections)
        version = hashlib.sha256(told.encode()).hexdigest()[:8]
        named = replace(document, id=f"{document.id}.{version}")
        return list(document_passages(named, self.source))


def choose_entities(query: str, tables: Sequence[EntityNames]) -> list[str]:
    """The entities of a query that are looked up, as they are written there: of names one inside
    another the longer, of all the two longest."""
    written = {entity.written for table in tables for entity in table.find_entities(query)}
    whole = [name for name in written if not any(name != o and name in o for o in written)]
    return sorted(whole, key=lambda name: (-len(name), name))[:_ENTITIES]


@dataclass(frozen=True)
class FusedRetriever:
    """Several retrievers as one: searches all and fuses their results into a single ranking.

    Raises `SourceUnavailable` when any is down, since half a result would look like a whole one.
    """

    several: tuple[Retriever, ...]
    order: PooledOrder

    async def search(self, query: str, *, k: int) -> list[Hit]:
        found = await gather([each.search(query, k=k) for each in self.several])
        texts, relations = _part_relations(found, k)
        ordered = await self.order.order_hits(query, texts, most=k - len(relations))
        return [replace(hit, rank=rank) for rank, hit in enumerate((*ordered, *relations), 1)]


_RELATIONS = 5
"""One of so many hits may be a relation of the graph, where texts are searched beside it."""


def _part_relations(
    found: Sequence[Sequence[Hit]], k: int
) -> tuple[list[Sequence[Hit]], Sequence[Hit]]:
    """The lists of texts, and the best relations of the graph, which stand behind them.

    A relation is one short line about little else than the names in the question, so every one of
    ten lies nearer to it than the passage that answers; and it is no prose to quote.
    """
    texts = [hits for hits in found if any(hit.passage.source != GRAPH for hit in hits)]
    if not texts:
        return [*found], ()
    relations = [hit for hits in found for hit in hits if hit.passage.source == GRAPH]
    return texts, relations[: k // _RELATIONS]


@dataclass(frozen=True)
class SearchServer:
    """KAG-Thinker's released search server: POST `/search` {query, top_n, return_score}.

    It answers with a list of documents, each with `contents` whose first line is its title, and
    with their scores; or, as FlashRAG's and Search-R1's servers do, with a list of
    `{"document": …, "score": …}`, one list for each query, which may stand under `result`. Its
    passages are of Wikipedia, as the paper's are (§4.1).
    """

    api: ServerClient

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """The best `k` documents. Raises `SourceUnavailable`."""
        body = {"query": query, "top_n": k, "return_score": True}
        try:
            async with self.api.open() as line:
                reply = await line.request_json("/search", body, root=True)
        except ModelError as error:
            raise SourceUnavailable(f"the search server: {error}") from error
        documents, scores = _read_reply(reply)
        passages = map(self._make_passage, documents[:k])
        return rank_hits(zip(passages, scores, strict=False), query, WIKI)

    def _make_passage(self, document: dict[str, Any]) -> Passage:
        text = str(document["contents"]).strip()
        first, _, rest = text.partition("\n")
        title = first.strip(' "') if rest.strip() else ""
        body = rest.strip() or text
        # Without an id of its own a document is known by its words.
        id = str(document.get("id") or hashlib.sha256(text.encode()).hexdigest()[:12])
        return Passage(f"{WIKI}:{id}#0", body, WIKI, title, language=language_of(body))


def _is_scored(each: Any) -> bool:
    return isinstance(each, dict) and isinstance(each.get("document"), dict | str)


def _as_document(said: dict[str, Any] | str) -> dict[str, Any]:
    """A document with `contents`; a bare text is its contents."""
    if isinstance(said, str):
        return {"contents": said}
    if "contents" in said:
        return said
    title, text = str(said.get("title", "")), str(said.get("text") or said.get("content") or "")
    return {**said, "contents": f"{title}\n{text}" if title else text}


def _read_reply(reply: Any) -> tuple[list[dict[str, Any]], list[float]]:
    """Documents and scores. Raises `SourceUnavailable` for a reply of another form."""
    if isinstance(reply, dict) and isinstance(reply.get("result"), list):
        reply = reply["result"]
    # A list for each query: one was asked.
    if isinstance(reply, list) and len(reply) == 1 and isinstance(reply[0], list):
        reply = reply[0]
    if isinstance(reply, list) and reply and all(_is_scored(each) for each in reply):
        scored = [each.get("score") for each in reply]
        whole = None if None in scored else scored
        reply = [[_as_document(each["document"]) for each in reply], whole]
    paired = isinstance(reply, list) and len(reply) == 2 and isinstance(reply[0], list)
    documents: Any = reply[0] if paired else reply
    scores: Any = reply[1] if paired else None
    if not isinstance(documents, list) or not all(
        isinstance(each, dict) and str(each.get("contents", "")).strip() for each in documents
    ):
        raise SourceUnavailable("the search server answered no documents with contents")
    if scores is None:
        return documents, [1 / rank for rank in range(1, len(documents) + 1)]
    if not isinstance(scores, list) or len(scores) != len(documents):
        raise SourceUnavailable("the search server answered another number of scores")
    return documents, [float(score) for score in scores]


@dataclass(frozen=True)
class PassingRetriever:
    """Hits of another retriever whose year and kind the filter lets through."""

    retriever: Retriever
    within: PassageFilter

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """At most `k`. Raises what the other raises."""
        found = await self.retriever.search(query, k=k)
        return [hit for hit in found if passes(hit.passage, self.within)]


def passes(passage: Passage, within: PassageFilter) -> bool:
    """Whether year and kind of a passage are let through; one without them is not."""
    kinds = within.folded_kinds
    for (first, last), told in (
        (within.years, passage.locator.year),
        (within.days, passage.locator.latest_day),
    ):
        is_set = (first, last) != (None, None)
        if is_set and (told is None or told < (first or told) or told > (last or told)):
            return False
    return not kinds or fold_kind(passage.locator.kind) in kinds

"""Search over indexes of the whole corpus, for the methods that want them.

Atomic questions (PIKE-RAG), triples and the walk over the graph of names and chunks (HippoRAG), the
hybrid of all indexes (KAG); all are made before any question (`osler.extract.indexes`). Each stands
behind the `Retriever` interface, so that tapes record and replay it: what was found beside a
passage (the atomic question, the triple) is its hit's `query`. Their names are among a run's
carriers, so that a replay builds the method as it was recorded.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from osler.build.graphs import open_graph
from osler.build.knowledge import name_rankings, search_filter
from osler.errors import BadConfig, KnowledgeBaseError, KnowledgeBaseUnbuilt, SourceUnavailable
from osler.extract.derived import Extractions
from osler.extract.dictionary import TOGETHER
from osler.extract.indexes import KINDS, Kind
from osler.extract.store import has_extractions
from osler.graph.derive import normalize_name
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.kb.search.base import EVERYTHING, PassageFilter, Ranking
from osler.retrieve import STOP_WORDS, content_terms, source_errors
from osler.retrieve.hybrid import Fusion
from osler.retrieve.indexed import IndexedRetriever, IndexWeights
from osler.settings import Settings
from osler.text import language_of
from osler.types import Hit, Retriever
from osler_lab.baselines.settings import (
    BaselineSettings,
    HippoRagSettings,
    HyKgeSettings,
    IMedRagSettings,
    KagStaticSettings,
    MedRagSettings,
    PikeRagSettings,
)

ATOMS = "atomic-questions"
HYBRID = "hybrid-indexes"
TRIPLES = "triples"
WALK = "graph-walk"
CHAINS = "chains"
"""The user of a retriever that finds reasoning chains, not passages."""
_UNITS: tuple[Kind, ...] = ("knowledge_unit",)


def corpus_carriers(
    method: BaselineSettings, kb: KnowledgeBase, encoder: Encoder
) -> tuple[str, ...]:
    """The names of those that the strategy looks in and the knowledge base has."""
    if isinstance(method, HippoRagSettings) and has_corpus_graph(kb):
        return (TRIPLES, WALK)
    if isinstance(method, KagStaticSettings) and has_corpus_graph(kb):
        return (HYBRID,)
    if isinstance(method, PikeRagSettings):
        return (ATOMS,) if _made_kinds(kb, encoder, ("atomic_query",)) else ()
    return ()


def _made_kinds(kb: KnowledgeBase, encoder: Encoder, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
    """Those of the indexes that can be searched with the encoder."""
    made = list[Kind]()
    for kind in kinds:
        with suppress(KnowledgeBaseError):
            Extractions.of(kb).entries.require_kinds((kind,), encoder.identity)
            made.append(kind)
    return tuple(made)


def corpus_retriever(
    settings: Settings, kb: KnowledgeBase, encoder: Encoder, name: str, sources: tuple[str, ...]
) -> Retriever | None:
    """The retriever of this name; `None` where it is another's.

    Raises `KnowledgeBaseUnbuilt` for MedRAG's four rankings without the index of two of them.
    """
    method = settings.strategy
    if name == CHAINS and isinstance(method, HyKgeSettings):
        return chain_retriever(settings)
    within = search_filter(settings, tuple(source for source in sources if source in kb.sources))
    if name == ATOMS:
        return AtomicQuestions(kb, encoder, within)
    chosen = settings.retrieve
    fusion = Fusion(chosen.dense_weight, chosen.lexical_weight, float(chosen.rrf_k), chosen.depth)
    if name == HYBRID:
        named = name_rankings(kb, encoder)
        made = _made_kinds(kb, encoder, KINDS)
        return IndexedRetriever(kb, encoder, made, named, within=within, fusion=fusion)
    if name == TRIPLES:
        return TripleSearch(kb, within)
    if isinstance(method, MedRagSettings | IMedRagSettings) and method.rankings == "rrf-4":
        if name != method.kind:
            return None
        # RRF-4: four rankings that count alike. Asked now, so that a missing index is reported now.
        Extractions.of(kb).entries.require_kinds(_UNITS, encoder.identity)
        alike = IndexWeights(entries=1.0)
        return IndexedRetriever(kb, encoder, _UNITS, within=within, fusion=fusion, weights=alike)
    return GraphWalk(kb, within=within) if name == WALK else None


def chain_retriever(settings: Settings) -> Retriever:
    """Builds the retriever of reasoning chains (HyKGE). Raises `BadConfig` without a graph."""
    from osler.retrieve.graph import ChainRetriever
    from osler.retrieve.graph_mentions import open_recogniser

    graph = open_graph(settings)
    if graph is None:
        raise BadConfig(
            "hykge needs a concept graph, and the knowledge base has none",
            fix="`osler kb graph add` it",
        )
    return ChainRetriever(graph, recogniser=open_recogniser(graph))


_NAMING = 50
"""Passages that name what a question names, of which triples are taken."""


@dataclass(frozen=True)
class AtomicQuestions:
    """Finds atomic questions near a text, each with the chunk that answers it (PIKE-RAG §4.3).

    The hits are all questions of the `k` nearest chunks; `Hit.query` is the question.
    """

    kb: KnowledgeBase
    encoder: Encoder | None
    within: PassageFilter = EVERYTHING

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """Raises `SourceUnavailable`, also where the index `atomic_query` does not exist."""
        return await asyncio.to_thread(self._search_index, query, k)

    def _search_index(self, query: str, k: int) -> list[Hit]:
        entries = Extractions.of(self.kb).entries
        with source_errors(self.kb, self.within.sources):
            entries.require_kinds(("atomic_query",), self.encoder.identity if self.encoder else "")
            if self.encoder is not None and language_of(query) in self.encoder.languages:
                vector = self.encoder.encode([query], kind="query")[0]
                ranking = entries.by_vector("atomic_query", vector, k=k, within=self.within)
            else:
                words = content_terms(query)
                ranking = entries.by_words("atomic_query", words, k=k, within=self.within)
            texts = entries.texts_of("atomic_query", [number for number, _ in ranking])
            found = [(number, text, s) for number, s in ranking for text in texts.get(number, ())]
            return _make_hits(self.kb, found)


@dataclass(frozen=True)
class TripleSearch:
    """Finds stated triples near a question: of chunks that name what it names, and of the
    nearest chunks. `Hit.query` is the triple as a JSON list."""

    kb: KnowledgeBase
    nearest: PassageFilter = EVERYTHING

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """At most `k` triples. Raises `SourceUnavailable`, also where nothing was extracted."""
        return await asyncio.to_thread(self._search_graph, query, k)

    def _search_graph(self, query: str, k: int) -> list[Hit]:
        webs = Extractions.of(self.kb).webs
        with source_errors(self.kb, self.nearest.sources):
            require_extractions(self.kb)
            named = webs.load_current().rank_by_names(webs.link_entities(query, STOP_WORDS))
            kept = webs.filter_ranking(named, k=_NAMING, within=self.nearest)
            worded = self.kb.rank_by_words(content_terms(query), k=_NAMING, within=self.nearest)
            numbers = dict.fromkeys(number for number, _ in (*kept, *worded))
            with webs.readers.borrow() as db:
                rows = _stated_triples(db, numbers)[:k]
        return _make_hits(self.kb, [(n, json.dumps(t, ensure_ascii=False), 0.0) for n, t in rows])


@dataclass(frozen=True)
class GraphWalk:
    """Finds chunks by personalised PageRank over the whole corpus (HippoRAG 2 §3.4)."""

    kb: KnowledgeBase
    damping: float = 0.5
    """Probability of going on; with the rest the walk starts again."""
    within: PassageFilter = EVERYTHING

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """`query` is JSON: weights of `phrases` by name and of `passages` by id, as seeds.

        Raises `SourceUnavailable`, also where nothing was extracted.
        """
        return await asyncio.to_thread(self._walk_graph, query, k)

    def _walk_graph(self, query: str, k: int) -> list[Hit]:
        webs, seeds = Extractions.of(self.kb).webs, _read_seeds(query)
        with source_errors(self.kb, self.within.sources):
            require_extractions(self.kb)
            graph = webs.load_current()
            phrases: dict[int, float] = {}
            for name, weight in seeds["phrases"].items():
                entity = graph.entities[normalize_name(name)]
                if entity is not None:
                    phrases[entity] = phrases.get(entity, 0.0) + weight
            with webs.readers.borrow() as db:
                numbers = _passage_numbers(db, seeds["passages"])
            passages = {numbers[id]: w for id, w in seeds["passages"].items() if id in numbers}
            ranking = graph.rank_by_walk(phrases, 1.0 - self.damping, passages)
            kept = webs.filter_ranking(ranking, k=k, within=self.within)
        return _make_hits(self.kb, [(number, query, share) for number, share in kept])


def has_corpus_graph(kb: KnowledgeBase) -> bool:
    """Whether names were extracted from the chunks, of which the graph is made."""
    with Extractions.of(kb).webs.readers.borrow() as db:
        return has_extractions(db)


def require_extractions(kb: KnowledgeBase) -> None:
    """Raises `KnowledgeBaseUnbuilt` where nothing was extracted."""
    if not has_corpus_graph(kb):
        raise KnowledgeBaseUnbuilt(
            "the graph of names and chunks does not exist", fix="run `osler kb extract`"
        )


def _read_seeds(query: str) -> dict[str, dict[str, float]]:
    try:
        read: Any = json.loads(query)
        return {
            kind: {str(name): float(weight) for name, weight in read[kind].items()}
            for kind in ("phrases", "passages")
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceUnavailable(f"no seeds of a walk: {query[:80]}") from error


def _stated_triples(
    db: sqlite3.Connection, numbers: Iterable[int]
) -> list[tuple[int, tuple[str, str, str]]]:
    """The relations that chunks state, each triple once, in the order of the chunks."""
    found: dict[tuple[str, str, str], int] = {}
    for number in numbers:
        rows = db.execute(
            "SELECT json_extract(body, '$[0].subject', '$[0].predicate', '$[0].object')"
            " FROM extracted_item WHERE kind = 'relation' AND passage = ? ORDER BY n",
            (number,),
        )
        for (line,) in rows:
            subject, predicate, object_ = json.loads(line)
            if predicate not in TOGETHER.values():
                found.setdefault((subject, predicate, object_), number)
    return [(number, triple) for triple, number in found.items()]


def _passage_numbers(db: sqlite3.Connection, ids: Iterable[str]) -> Mapping[str, int]:
    rows = db.execute(
        "SELECT id, number FROM passage WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return dict(rows.fetchall())


def _make_hits(kb: KnowledgeBase, found: Iterable[tuple[int, str, float]]) -> list[Hit]:
    """Hits of passages by number, each with what it was found by and its score."""
    rows = list(found)
    ranking: Ranking = [(number, score) for number, _, score in rows]
    passages = kb.get_passages(number for number, _ in ranking)
    kept = [(passages[n], text, score) for n, text, score in rows if n in passages]
    return [
        Hit(passage, score, rank, text, passage.source)
        for rank, (passage, text, score) in enumerate(kept, 1)
    ]

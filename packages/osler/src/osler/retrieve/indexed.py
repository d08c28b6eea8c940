"""The hybrid graph retriever: fuses all active indexes and the graph of names into one ranking.

KAG's HGR (KAG-Thinker §3.4 and its code): the chunks by meaning and by words; the same over
knowledge units, atomic queries, outlines, summaries and tables; and by the names in the query,
exact ones, ones that are nearly spelt so, and personalised PageRank from them to chunks.
Departures: docs/papers/kag-thinker.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from osler.extract.derived import Extractions
from osler.extract.indexes import Kind
from osler.extract.indexes.entity_graph import EntityGraph, EntityGraphs
from osler.graph.derive import normalize_name
from osler.graph.items import NamedConcept
from osler.graph.lookup import SEED, Lookup, NameVectors
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder, shared_languages
from osler.kb.search.base import EVERYTHING, Floats, PassageFilter, Ranking
from osler.retrieve import STOP_WORDS, content_terms, rrf, source_errors
from osler.retrieve.hybrid import Fusion
from osler.retrieve.naming import names_in
from osler.text import language_of
from osler.types import Hit


@dataclass(frozen=True, slots=True)
class IndexWeights:
    """Weights of the rankings in the fusion, relative to 1 for the chunks' dense ranking.

    Chosen on 150 questions of 2WikiMultihopQA that no table reports on: recall@5 .71 by the
    chunks alone, with the walk .74, .82, .86, .84 at weights 0.5, 1, 2, 3. A walk that counts
    less than both of the chunks' rankings together seldom adds passages that they miss.
    """

    entries: float = 0.25
    """Of each index except the chunks'; its two rankings share it as the chunks' do."""
    names: float = 0.5
    """Of the passages that contain the query's names."""
    walk: float = 2.0
    """Of PageRank."""


_RESTART = 0.5
"""Restart probability of the walk at each step. HippoRAG has 0.5; of KAG's two backends one has
0.15, the other 0.9."""
_LIKENESS = 0.8
"""Least similarity of a name with a similar spelling (KAG's threshold of fuzzy linking)."""


@dataclass(frozen=True)
class NameRankings:
    """Rankings by the query's names among those of the chunks."""

    webs: EntityGraphs
    fuzzy: bool = True
    """Whether unknown names are looked up by similar spelling, which needs the extra `graph` and a
    concept graph."""
    vectors: NameVectors | None = None
    """Vectors of the concept graph's names; `None`: unknown names are compared by spelling
    alone."""

    @cached_property
    def _lookup(self) -> Lookup | None:
        graph = self.webs.graph
        return Lookup(graph) if graph is not None and self.fuzzy else None

    def rank_by_name(self, query: str, *, k: int, within: PassageFilter) -> dict[str, Ranking]:
        """Passage numbers by exact names, by similar spellings, and by the walk."""
        web = self.webs.load_current()
        exact = self.webs.link_entities(query, STOP_WORDS)
        likely = [entity for entity in self._likeliest_entities(web, query) if entity not in exact]
        # Node specificity of HippoRAG: names in few passages weigh more.
        seeds = {entity: 1 / max(1, int(web.held[entity])) for entity in (*exact, *likely)}
        # A question that a chunk was said to answer is a node, too.
        if (asked := web.questions.get(normalize_name(query))) is not None:
            seeds[asked] = max(seeds.values(), default=1.0)
        found = {
            "exact": web.rank_by_names(exact),
            "fuzzy": web.rank_by_names(likely),
            "walk": web.rank_by_walk(seeds, _RESTART, layered=True) if seeds else [],
        }
        return {
            name: self.webs.filter_ranking(ranking, k=k, within=within)
            for name, ranking in found.items()
        }

    def _likeliest_entities(self, web: EntityGraph, query: str) -> list[int]:
        """For each name in the query unknown to the chunks, the most similar known one."""
        found = dict[int, None]()
        for name in names_in(query):
            if web.entities[normalize_name(name)] is not None:
                continue
            for match in self._similar_names(name):
                named = web.entities[normalize_name(match.name)]
                entity = web.of_concept(match.concept) if named is None else named
                if entity is not None:
                    found.setdefault(entity)
                    break
        return list(found)

    def _similar_names(self, name: str) -> Iterator[NamedConcept]:
        """Names of the concept graph that are spelt nearly so, then the one with the nearest vector
        (KAG's retriever of chunks by PageRank)."""
        if self._lookup is not None:
            spelt = self._lookup.find_fuzzy(name, k=3)
            yield from (match for match in spelt if match.score >= _LIKENESS)
        if self.vectors is not None:
            yield from self.vectors.find_near(name, k=1, least=SEED)


_FUSION = Fusion()


@dataclass(frozen=True)
class IndexedRetriever:
    """Finds chunks by every active index. Scores are fused ones (`rrf`).

    A hit's `source` names the index that ranked the chunk best: "dense" and "lexical" are the
    chunks' own, then "knowledge_unit", …, "exact", "fuzzy" and "walk".
    """

    kb: KnowledgeBase
    encoder: Encoder | None
    kinds: tuple[Kind, ...] = ()
    named: NameRankings | None = None
    chunks: bool = True
    """Whether the chunks' own text is searched."""
    within: PassageFilter = EVERYTHING
    fusion: Fusion = _FUSION
    weights: IndexWeights = IndexWeights()
    least: float = 0.0
    """Least cosine of an entry of an index; KAG keeps knowledge units and atomic queries above
    0.7."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """The best `k` chunks. Raises `SourceUnavailable`, also for a missing index."""
        return await asyncio.to_thread(self._search_index, query, k)

    def _search_index(self, query: str, k: int) -> list[Hit]:
        with source_errors(self.kb, self.within.sources):
            Extractions.of(self.kb).entries.require_kinds(
                self.kinds, self.encoder.identity if self.encoder else ""
            )
            # One list per index and kind of search; all are fused at once, so that no index is
            # preferred.
            rankings = self._rank_indexes(query, max(k, self.fusion.depth))
            lists = [[number for number, _ in found] for _, found, _ in rankings]
            order = rrf(lists, weights=[w for _, _, w in rankings], k=self.fusion.constant)
            passages = self.kb.get_passages(number for number, _ in order)
            scored = [(n, passages[n], score) for n, score in order if n in passages]
            scored = sorted(scored, key=lambda row: (-row[2], row[1].id))[:k]
            finder = _best_finders(
                (name, numbers) for (name, _, _), numbers in zip(rankings, lists, strict=True)
            )
            return [
                Hit(passage, score, rank, query, finder[number])
                for rank, (number, passage, score) in enumerate(scored, 1)
            ]

    def _rank_indexes(self, query: str, depth: int) -> list[tuple[str, Ranking, float]]:
        """The rankings of all indexes with names and weights, without those of weight 0."""
        words, vector = content_terms(query), self._query_vector(query)
        dense, lexical = self.fusion.dense_weight, self.fusion.lexical_weight
        own = self._rank_chunks(query, words, vector, depth) if self.chunks else ([], [])
        found = [("dense", own[0], dense), ("lexical", own[1], lexical)]
        for kind in self.kinds:
            here, share = Extractions.of(self.kb).entries, self.weights.entries
            if vector is not None and dense:
                near = here.by_vector(kind, vector, k=depth, within=self.within)
                kept = [pair for pair in near if pair[1] > self.least] if self.least else near
                found.append((kind, kept, dense * share))
            if lexical:
                by_words = here.by_words(kind, words, k=depth, within=self.within)
                found.append((kind, by_words, lexical * share))
        if self.named is not None:
            by_name = self.named.rank_by_name(query, k=depth, within=self.within)
            walk = {"walk": self.weights.walk}
            found += [(name, r, walk.get(name, self.weights.names)) for name, r in by_name.items()]
        return [ranking for ranking in found if ranking[2] > 0]

    def _query_vector(self, query: str) -> Floats | None:
        if self.encoder is None or language_of(query) not in self.encoder.languages:
            return None
        vector: Floats = self.encoder.encode([query], kind="query")[0]
        return vector

    def _rank_chunks(
        self, query: str, words: Sequence[str], vector: Floats | None, depth: int
    ) -> tuple[Ranking, Ranking]:
        """The chunks' dense and lexical rankings."""
        if self.encoder is None:
            return [], self.kb.rank_by_words(words, k=depth, within=self.within)
        dense, lexical = self.kb.rank_by_both(
            words,
            vector if self.fusion.dense_weight else None,
            encoder=self.encoder.identity,
            k=depth,
            within=self.within,
            languages=shared_languages(self.encoder, language_of(query)),
        )
        return dense, lexical if self.fusion.lexical_weight else []


def _best_finders(rankings: Iterable[tuple[str, Sequence[int]]]) -> dict[int, str]:
    """For each passage the first of the rankings in which it ranks highest."""
    best: dict[int, tuple[int, str]] = {}
    for name, numbers in rankings:
        for rank, number in enumerate(numbers):
            if number not in best or rank < best[number][0]:
                best[number] = rank, name
    return {number: name for number, (_, name) in best.items()}

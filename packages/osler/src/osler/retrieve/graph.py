"""Search in the graph: the definition of a term and what it is related to (Omni-RAG §3.2, §5.1.2),
and reasoning chains as evidence (HyKGE, TC-RAG App. 8.5).

Departures: docs/papers/omni-rag.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from osler.graph.chains import find_chains_between, find_chains_from
from osler.graph.items import Concept, ConceptChain, Edge, verbalise_chain
from osler.graph.link import Dictionary, Recogniser
from osler.graph.lookup import Lookup
from osler.graph.store import Graph
from osler.retrieve import STOP_WORDS, rank_hits, search_errors
from osler.retrieve.pooled import rank_texts
from osler.retrieve.relevance import OverlapRelevance
from osler.sources.catalogue import GRAPH
from osler.types import Hit, Passage, Relevance

RELATIONS = 10
"""Upper bound on relations of a concept (§5.1.2)."""
# Relations of a concept that are weighed: those that share most words with the query.
_READ = 5 * RELATIONS


@dataclass(frozen=True, slots=True)
class Finding:
    """The graph's entry of one term."""

    concept: Concept
    relations: tuple[tuple[Edge, float], ...]
    """The most relevant relations first, each with its relevance to the query."""
    definitions: tuple[tuple[Passage, float], ...] = ()
    """The best source's definition, then the others and the sections of a drug's record, by
    relevance to the query."""

    @property
    def title(self) -> str:
        """All names, joined by "/"."""
        return "/".join(self.concept.names)

    @property
    def wire(self) -> str:
        """`Definition: …\\nRelation: (STR2, RELA, STR1); ….` (§3.2)."""
        lines = []
        if self.concept.definitions:
            lines.append(f"Definition: {self.concept.definitions[0][1]}")
        if self.relations:
            stated = "; ".join(f"({', '.join(edge.triple)})" for edge, _ in self.relations)
            lines.append(f"Relation: {stated}.")
        return "\n".join(lines)


@dataclass(frozen=True)
class GraphRetriever:
    """Retrieves the graph's entry of a term for `term , query`, the most relevant relations first.

    A query without " , " is searched for names of concepts. A term that names no concept gives
    nothing, unless `fuzzy` allows a similar spelling.
    """

    graph: Graph
    relevance: Relevance = field(default_factory=OverlapRelevance)
    fuzzy: bool = False
    concepts: int = 3
    """Upper bound on concepts of an ambiguous term or a free query."""
    recogniser: Recogniser | None = None
    """Finds the names in a free query; `None` = the graph's own names."""

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self.graph)

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """Finds definitions and relations as passages, whose ids `Graph.passage` resolves."""
        term, asked = split_query(query)
        found = await self.find_definitions(term, asked or query, free=not asked)
        scored: dict[str, tuple[Passage, float]] = {}
        for finding in found:
            for passage, score in self._finding_passages(finding):
                scored.setdefault(passage.id, (passage, score))
        ranked = sorted(scored.values(), key=lambda pair: (-pair[1], pair[0].id))
        return rank_hits(ranked[:k], query, GRAPH)

    async def find_definitions(self, term: str, query: str, *, free: bool = False) -> list[Finding]:
        """One finding per concept that the term names or, for a free text, mentions.

        Raises `SourceUnavailable` when the graph cannot be read.
        """
        with search_errors():
            known = await asyncio.to_thread(self._read_concepts, term, query, free)
        return [
            Finding(
                concept,
                await self._rank_edges(query, concept, edges),
                await self._rank_definitions(query, concept),
            )
            for concept, edges in known
        ]

    async def _rank_definitions(
        self, query: str, concept: Concept
    ) -> tuple[tuple[Passage, float], ...]:
        """The first definition as it stands, since it says what the thing is; the others by
        relevance."""
        passages = self.graph.definition_passages(concept)
        scores = await self.relevance.relevance(query, [passage.text for passage in passages])
        scored = list(zip(passages, scores, strict=True))
        return (*scored[:1], *sorted(scored[1:], key=lambda pair: (-pair[1], pair[0].id)))

    def _read_concepts(self, term: str, query: str, free: bool) -> list[tuple[Concept, list[Edge]]]:
        if free:
            ids = link_concepts(self.graph, term, self.recogniser, ambiguous=True)
        else:
            ids = [match.concept for match in self._lookup.find(term, fuzzy=self.fuzzy)]
        found = [(id, self.graph.get_concept(id)) for id in ids[: self.concepts]]
        return [
            (concept, self._lookup.find_related(id, query, most=_READ))
            for id, concept in found
            if concept is not None
        ]

    async def _rank_edges(
        self, query: str, concept: Concept, edges: Sequence[Edge]
    ) -> tuple[tuple[Edge, float], ...]:
        said = [_edge_words(edge, concept) for edge in edges]
        scores = await self.relevance.relevance(query, said)
        return tuple((edges[n], scores[n]) for n in rank_texts(scores)[:RELATIONS])

    def _finding_passages(self, finding: Finding) -> list[tuple[Passage, float]]:
        """The definition first, as in the paper's text; then sections, relations by relevance."""
        concept, definitions = finding.concept, finding.definitions
        found = [
            (self.graph.relation_passage(concept, edge), score) for edge, score in finding.relations
        ]
        found += definitions[1:]
        # The definition ranks above every relation of its concept.
        best = max((score for _, score in found), default=0.0)
        return [*((passage, best + 1.0) for passage, _ in definitions[:1]), *found]


def link_concepts(
    graph: Graph, text: str, recogniser: Recogniser | None = None, *, ambiguous: bool = False
) -> list[str]:
    """Concepts that a text mentions, those of the longest names first, none twice.

    Of a name with several concepts all count when `ambiguous`, else the first. Blocks.
    """
    mentions = (recogniser or Dictionary(graph, STOP_WORDS)).find_mentions(text)
    longest = sorted(mentions, key=lambda mention: (mention.start - mention.end, mention.start))
    most = None if ambiguous else 1
    return list(dict.fromkeys(id for mention in longest for id in mention.concepts[:most]))


def split_query(query: str) -> tuple[str, str]:
    """Splits `term , query` at the first " , ", since terms contain commas."""
    mark = next((mark for mark in (" , ", "，") if mark in query), None)
    if mark is None:
        return query.strip(), ""
    term, _, asked = query.partition(mark)
    return term.strip(), asked.strip() or term.strip()


def _edge_words(edge: Edge, concept: Concept) -> str:
    """The predicate and the other end of a relation, as words."""
    other = edge.object_name if edge.subject == concept.id else edge.subject_name
    return f"{edge.predicate.replace('_', ' ')} {other}"


@dataclass(frozen=True, slots=True)
class FormHit:
    """An answer to a logical form: the relation, and how well its predicate fits."""

    edge: Edge
    answer: str
    """Name of the end asked for."""
    score: float
    """Fit of the predicate, in [0, 1]."""


async def find_forms(
    graph: Graph,
    subject: str,
    predicate: str,
    *,
    target_type: str = "",
    k: int = 10,
    least: float = 0.0,
) -> list[FormHit]:
    """Retrieval(s = subject, p = predicate, o): exact one-hop answers (KAG-Thinker §3.4).

    The subject is looked up exactly; the predicate is compared by words. `target_type`, where
    given, must be a semantic type of the answer, in any case. Relations whose predicate fits with
    no more than `least` are left out. The best predicate first, equal ones in the order of the
    graph.
    """
    matches = await asyncio.to_thread(graph.find_exact, subject)
    ids = [match.concept for match in matches]
    edges = await asyncio.to_thread(graph.find_neighbours, ids)
    kinds = list(dict.fromkeys(edge.predicate for edge in edges))
    said = [kind.replace("_", " ") for kind in kinds]
    # beta 1: predicates are short, and extra words matter as much as missing ones.
    scores = await OverlapRelevance(beta=1.0).relevance(predicate.replace("_", " "), said)
    fits = {kind: score for kind, score in zip(kinds, scores, strict=True) if score > least}
    others = {edge: edge.object if edge.subject in ids else edge.subject for edge in edges}
    typed = await asyncio.to_thread(_of_type, graph, list(others.values()), target_type)
    found = [
        FormHit(
            edge,
            edge.object_name if edge.object == others[edge] else edge.subject_name,
            fits[edge.predicate],
        )
        for edge in edges
        if edge.predicate in fits and others[edge] in typed
    ]
    return sorted(found, key=lambda hit: -hit.score)[:k]


def _of_type(graph: Graph, ids: list[str], target: str) -> set[str]:
    if not target:
        return set(ids)
    wanted = target.casefold()
    types = graph.types_of(ids)
    return {id for id, found in types.items() if wanted in {type_.casefold() for type_ in found}}


@dataclass(frozen=True)
class ChainRetriever:
    """Finds chains between the concepts that a text mentions, or around a single one.

    The text is a question, or HyKGE's hypothesis about its answer. Chains are ranked by
    their own score times how well their words suit the text; `[]` when it mentions none.
    """

    graph: Graph
    relevance: Relevance = field(default_factory=OverlapRelevance)
    recogniser: Recogniser | None = None
    """`None` = the graph's own names."""
    hops: int = 3
    most_concepts: int = 6
    """Upper bound on concepts of a text; the longest names win."""
    candidates: int = 20
    """Chains per pair of concepts that are reranked."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """Finds chains, one per hit, in words; `Graph.passage` resolves their ids."""
        with search_errors():
            chains = await asyncio.to_thread(self._find_chains, query)
            texts = [verbalise_chain(chain).replace("_", " ") for chain in chains]
            suits = await self.relevance.relevance(query, texts)
            weighed = [
                (chain.score * (1 + suit), chain) for chain, suit in zip(chains, suits, strict=True)
            ]
            weighed.sort(key=lambda pair: (-pair[0], pair[1].names))
            return await asyncio.to_thread(self._chain_hits, query, weighed[:k])

    def _find_chains(self, query: str) -> list[ConceptChain]:
        linked = link_concepts(self.graph, query, self.recogniser)[: self.most_concepts]
        between = (
            find_chains_between(self.graph, *pair, hops=self.hops, k=self.candidates)
            for pair in combinations(linked, 2)
        )
        # A single concept has no pair: walk outwards from it.
        around = (find_chains_from(self.graph, id, hops=2, k=self.candidates) for id in linked)
        for several in (between, around):
            if found := [chain for chains in several for chain in chains]:
                return found
        return []

    def _chain_hits(self, query: str, weighed: list[tuple[float, ConceptChain]]) -> list[Hit]:
        scored = (
            (self.graph.chain_passage(concept, chain), score)
            for score, chain in weighed
            if (concept := self.graph.get_concept(chain.concepts[0])) is not None
        )
        return rank_hits(scored, query, GRAPH)

"""Knowledge communities as evidence (GraphRAG, TC-RAG App. 8.5): link, gather, rerank."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import log2

import numpy as np

from osler.errors import MalformedOutput
from osler.graph.communities import Communities, Community, CommunityDigest
from osler.graph.items import verbalise_chain
from osler.graph.link import Recogniser
from osler.graph.lookup import Lookup
from osler.graph.store import Graph
from osler.llm.core.ask import ask
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.prompts import RenderedPrompt, render_prompt
from osler.retrieve import rank_hits, search_errors
from osler.retrieve.graph import link_concepts
from osler.retrieve.relevance import OverlapRelevance
from osler.sources.catalogue import GRAPH
from osler.text import has_cjk, one_line
from osler.trace import Run
from osler.types import Hit, Language, Passage, Relevance

# Least size of a community; a single concept is no community.
_LEAST = 2


@dataclass(frozen=True, slots=True)
class CommunityHit:
    """A community relevant to a query."""

    community: Community
    passage: Passage
    score: float
    """The share of the query's concepts in it, lower for large communities, higher when its text
    is relevant to the query; in (0, 2]."""


@dataclass(frozen=True)
class CommunityRetriever:
    """Finds communities of the concepts that a text mentions, else of its words.

    A community's text is its summary by a model, else its facts. The communities must have been
    computed (`osler kb graph communities`).
    """

    graph: Graph
    relevance: Relevance = field(default_factory=OverlapRelevance)
    recogniser: Recogniser | None = None
    """`None` = the graph's own names."""
    most_concepts: int = 6
    """Upper bound on concepts of a text; the longest names win."""
    candidates: int = 20
    """Communities whose texts are compared with the query."""

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self.graph)

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """Finds communities, one per hit; `Graph.passage` resolves their ids.

        Raises `SourceUnavailable` when the communities were not computed, or not for the current
        graph.
        """
        found = await self.find_communities(query, k=k)
        return rank_hits(((one.passage, one.score) for one in found), query, GRAPH)

    async def find_communities(self, query: str, *, k: int) -> list[CommunityHit]:
        """The hits of `search` with the communities themselves."""
        with search_errors("the communities"):
            likely = await asyncio.to_thread(self._likely_communities, query)
        suits = await self.relevance.relevance(query, [passage.text for _, passage, _ in likely])
        weighed = [
            CommunityHit(community, passage, share * (1 + suit))
            for (community, passage, share), suit in zip(likely, suits, strict=True)
        ]
        return sorted(weighed, key=lambda one: (-one.score, one.passage.id))[:k]

    def _likely_communities(self, query: str) -> list[tuple[Community, Passage, float]]:
        communities = Communities(self.graph)
        concepts = link_concepts(self.graph, query, self.recogniser)[: self.most_concepts]
        numbers = self.graph.numbers_of(concepts)
        shares = _community_shares(communities, [(1.0, [n]) for n in numbers])
        if not shares:
            words = self._lookup.find_sharing(query)
            heads = self.graph.load_arrays()["heads"]
            shares = _community_shares(
                communities, [(w, np.unique(heads[of]).tolist()) for w, of in words]
            )
        best = sorted(shares, key=lambda pair: (-pair[1], pair[0].number))[: self.candidates]
        return [(one, communities.get_passage(one), share) for one, share in best]


def _community_shares(
    communities: Communities, weighed: Sequence[tuple[float, Iterable[int]]]
) -> list[tuple[Community, float]]:
    """Communities with their concepts' share of the weight, lower for large ones."""
    held: defaultdict[int, float] = defaultdict(float)
    leaves = communities.leaf_numbers()
    for weight, numbers in weighed:
        places = {int(leaf) for leaf in np.unique(leaves[list(numbers)]) if leaf >= 0}
        # A concept counts for its community and all those above it, once each.
        for number in {above for leaf in places for above in communities.list_ancestors(leaf)}:
            held[number] += weight
    total = sum(weight for weight, _ in weighed)
    found = ((communities.get_community(number), weight) for number, weight in held.items())
    return [
        # Damped by size: the root community holds every concept and would always win.
        (one, weight / total / log2(one.size) ** 0.5)
        for one, weight in found
        if one.size >= _LEAST
    ]


STATED = 40
"""Relations shown to the model."""
_LONGEST = 1000


@dataclass(frozen=True)
class CommunitySummariser:
    """Summarises communities with a model."""

    model: LanguageModel
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=0.0))

    async def summarise_community(
        self, communities: Communities, community: Community, run: Run
    ) -> Passage:
        """Writes and stores a summary; the passage's id resolves to it.

        Raises `MalformedOutput` when the model names none of the community's concepts even when
        asked again, and the model's own errors.
        """
        digest = await asyncio.to_thread(communities.make_digest, community, relations=STATED)
        prompt = _summary_prompt(community, digest)

        def parse(reply: Completion) -> str:
            return _summary_text(reply.text, digest)

        asked, how = [Message("user", prompt.text)], self.sampling
        text = await ask(
            self.model, asked, parse, how, run, role="summariser", prompt=prompt.identity
        )
        return await asyncio.to_thread(communities.store_summary, community, text, self.model.name)

    async def summarise_all(
        self, communities: Communities, wanted: Iterable[Community], run: Run
    ) -> AsyncIterator[tuple[Community, Passage | MalformedOutput]]:
        """Summarises one community after another, skipping those with a summary.

        An unusable reply is yielded as its error, and the next community follows.
        """
        for community in wanted:
            if await asyncio.to_thread(communities.read_summary, community) is not None:
                continue
            try:
                yield community, await self.summarise_community(communities, community, run)
            except MalformedOutput as error:
                yield community, error


def _summary_prompt(community: Community, digest: CommunityDigest) -> RenderedPrompt:
    """The prompt in the language of most of the community's names."""
    chinese = sum(has_cjk(name) for name in digest.names)
    language: Language = "zh" if 2 * chinese > len(digest.names) else "en"
    return render_prompt(
        "graph/community",
        language,
        size=community.size,
        concepts=list(digest.names),
        definitions=list(digest.definitions),
        relations=[verbalise_chain(chain) for chain in digest.relations],
    )


def _summary_text(text: str, digest: CommunityDigest) -> str:
    """The reply on one line, cut at a sentence end to the length of a passage."""
    line = one_line(text)
    ends = [name for chain in digest.relations for name in chain.names]
    if not any(name.casefold() in line.casefold() for name in (*digest.names, *ends)):
        raise MalformedOutput(text, expected="a paragraph that names the concepts")
    if len(line) > _LONGEST:
        head = line[:_LONGEST]
        stop = max(head.rfind(mark) for mark in (". ", "。", "; ", "；"))
        line = head[: stop + 1] if stop > 0 else head
    return line

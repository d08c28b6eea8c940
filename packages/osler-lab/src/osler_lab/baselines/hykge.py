"""HyKGE: a hypothesis finds its way through the graph (TC-RAG App. 8.5, method 8).

Jiang et al. 2024, *HyKGE: A Hypothesis Knowledge Graph Enhanced Framework for Accurate and
Reliable Medical LLMs Responses*, §4: the model writes a hypothesis output; entities of question
and hypothesis are linked to the graph; the paths between them are its reasoning chains; the
chains are reranked by the fragments of question and hypothesis (granularity-aware, §4.3), and
the reader answers from those that stay.

Departures: entities are the graph's own names in the text, and those of a trained recogniser where
the knowledge base has one (`research/experts/train_recogniser.py`); the reranker is the configured
relevance; a chain counts by its nearest fragment. Chains have at most 3 hops and 11 of them are
read, as in the released example settings, whose program reranks all that it finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from osler.methods.single_pass.episode import Episode, EpisodeMethod
from osler.text import split_sentences
from osler.types import Hit, Relevance


@dataclass(frozen=True)
class HyKGE(EpisodeMethod):
    """HyKGE over a retriever of reasoning chains (`osler.retrieve.graph_chains.ChainRetriever`)."""

    relevance: Relevance
    candidates: int = 30
    """Chains that are reranked (ours); `kit.k` of them are kept."""

    async def run_episode(self, episode: Episode) -> str:
        hypothesis = await episode.ask_text("baselines/hykge_hypothesis")
        text = f"{episode.question.text}\n{hypothesis.strip()}"
        chains = await episode.search(text, k=self.candidates, keep=False)
        best = await rerank_chains(self.relevance, split_fragments(text), chains, self.kit.k)
        episode.note(f"{len(best)} of {len(chains)} chains stay")
        episode.keep_hits(best)
        await episode.read_evidence()
        return "read from reasoning chains"


def split_fragments(text: str) -> list[str]:
    """Splits question and hypothesis into sentences."""
    return [text[start:end] for start, end in split_sentences(text)]


async def rerank_chains(
    relevance: Relevance, asked: Sequence[str], chains: Sequence[Hit], k: int
) -> list[Hit]:
    """The `k` chains nearest to any fragment; ties keep the order of the search."""
    texts = [chain.passage.text for chain in chains]
    best = [0.0] * len(texts)
    for fragment in asked if texts else ():
        near = await relevance.relevance(fragment, texts)
        best = [max(one, other) for one, other in zip(best, near, strict=True)]
    order = sorted(range(len(texts)), key=lambda n: (-best[n], n))[:k]
    return [replace(chains[n], score=best[n], rank=rank) for rank, n in enumerate(order, 1)]

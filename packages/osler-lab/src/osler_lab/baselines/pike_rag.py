"""PIKE-RAG: passages are found by the atomic questions that they answer (KAG-Thinker T8).

Wang et al. 2025, *PIKE-RAG: sPecIalized KnowledgE and Rationale Augmented Generation*, §4.3 and
Algorithm 1 (knowledge-aware decomposition): every chunk is tagged with the atomic questions it
answers. At each of at most 5 steps the model proposes atomic questions in view of what is known;
for each the nearest tags above a likeness of 0.5 are candidates, 4 at most; the model selects
the most useful candidate, whose chunk joins the context. It ends when nothing is proposed, found
or selected; then the question is answered from the context.

Chunks are found by their atomic questions where the corpus was tagged before (the index
`atomic_query`). Else chunks are found by plain search and tagged when a proposal first finds
them, which the trace says; what was tagged is kept for the question.

Departures: the decomposer is prompted, not trained.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from osler.llm.reading.json_replies import read_list
from osler.methods.single_pass.episode import Episode, EpisodeMethod
from osler.types import Hit, Relevance, Retriever

_NUMBER = re.compile(r"\d+")
_NO_INDEX = (
    "no index of atomic questions (`osler kb index atomic_query` makes one): chunks are tagged when"
    " they are first found"
)


@dataclass(frozen=True)
class AtomCandidate:
    question: str
    likeness: float
    hit: Hit


@dataclass
class AtomTags:
    """The atomic questions of the chunks seen so far."""

    of: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class PikeRag(EpisodeMethod):
    relevance: Relevance
    atomic: Retriever | None = None
    """Finds chunks by atomic questions, each of which is its hit's `query`; `None`: by words."""
    steps: int = 5
    proposals: int = 3
    """At a step (ours)."""
    atoms: int = 5
    """Questions of a chunk, at most (ours)."""
    likeness: float = 0.5
    """Least likeness of a tag to a proposal."""
    candidates: int = 4

    async def run_episode(self, episode: Episode) -> str:
        tags, known = AtomTags(), list[str]()
        if self.atomic is None:
            episode.note(_NO_INDEX)
        for _ in range(self.steps):
            picked = await self._next_candidate(episode, tags, known)
            if picked is None:
                break
            episode.note(f"selected: {picked.question}")
            known.append(picked.question)
            episode.keep_hits([picked.hit])
        await episode.read_evidence()
        return "read from the chunks of the atomic questions selected"

    async def _next_candidate(
        self, episode: Episode, tags: AtomTags, known: Sequence[str]
    ) -> AtomCandidate | None:
        reply = await episode.ask_text(
            "baselines/pike_propose", documents=episode.list_documents(), limit=self.proposals
        )
        found: dict[str, AtomCandidate] = {}
        for proposal in read_list(reply, self.proposals):
            for candidate in await self._nearest_candidates(episode, tags, proposal):
                if candidate.question not in known:
                    found.setdefault(candidate.question, candidate)
        # Algorithm 1: the K nearest over all proposals of the step.
        best = sorted(found.values(), key=lambda c: -c.likeness)[: self.candidates]
        return await self._select_candidate(episode, best) if best else None

    async def _nearest_candidates(
        self, episode: Episode, tags: AtomTags, proposal: str
    ) -> list[AtomCandidate]:
        if self.atomic is not None:
            found = await episode.search(proposal, keep=False, where=self.atomic)
            return await self._likely_candidates(proposal, [(hit.query, hit) for hit in found])
        hits = await episode.search(proposal, keep=False)
        for hit in hits:
            if hit.passage.id not in tags.of:
                tags.of[hit.passage.id] = await self._ask_atoms(episode, hit)
        pairs = [(atom, hit) for hit in hits for atom in tags.of[hit.passage.id]]
        return await self._likely_candidates(proposal, pairs)

    async def _likely_candidates(
        self, proposal: str, pairs: Sequence[tuple[str, Hit]]
    ) -> list[AtomCandidate]:
        if not pairs:
            return []
        scores = await self.relevance.relevance(proposal, [atom for atom, _ in pairs])
        return [
            AtomCandidate(atom, score, hit)
            for (atom, hit), score in zip(pairs, scores, strict=True)
            if score >= self.likeness
        ]

    async def _ask_atoms(self, episode: Episode, hit: Hit) -> list[str]:
        return read_list(
            await episode.ask_text("baselines/pike_atoms", text=hit.passage.text, limit=self.atoms),
            self.atoms,
        )

    async def _select_candidate(
        self, episode: Episode, offered: Sequence[AtomCandidate]
    ) -> AtomCandidate | None:
        documents, asked = episode.list_documents(), [one.question for one in offered]
        reply = await episode.ask_text(
            "baselines/pike_select", documents=documents, asked=asked, tokens=16, temperature=0.0
        )
        match = _NUMBER.search(reply)
        number = int(match.group()) if match else 0
        return offered[number - 1] if 1 <= number <= len(offered) else None

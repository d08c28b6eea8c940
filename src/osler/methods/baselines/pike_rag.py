"""PIKE-RAG: passages are found by the atomic questions that they answer (KAG-Thinker T8).

Wang et al. 2025, *PIKE-RAG: sPecIalized KnowledgE and Rationale Augmented Generation*, §4.3 and
Algorithm 1 (knowledge-aware decomposition): every chunk is tagged with the atomic questions it
answers. At each of at most 5 steps the model proposes atomic questions in view of what is known;
for each the nearest tags above a likeness of 0.5 are candidates, 4 at most; the model selects
the most useful candidate, whose chunk joins the context. It ends when nothing is proposed, found
or selected; then the question is answered from the context.

Departures: chunks are tagged when a proposal first finds them, not all of the corpus before;
what was tagged is kept for the question. The decomposer is prompted, not trained.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from osler.methods.baselines.episode import Episode, MethodDeps
from osler.methods.baselines.replies import read_list
from osler.trace import Noted, Run
from osler.types import Hit, Question, Relevance, Solution

_NUMBER = re.compile(r"\d+")


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
class PikeRag:
    kit: MethodDeps
    relevance: Relevance
    steps: int = 5
    proposals: int = 3
    atoms: int = 5
    """Questions of a chunk, at most."""
    likeness: float = 0.5
    """Least likeness of a tag to a proposal."""
    candidates: int = 4

    async def solve(self, question: Question, run: Run) -> Solution:
        with Episode(self.kit, question, run) as line:
            tags, known = AtomTags(), list[str]()
            for _ in range(self.steps):
                picked = await self._next_candidate(line, tags, known)
                if picked is None:
                    break
                run.emit(Noted(f"selected: {picked.question}"))
                known.append(picked.question)
                line.keep_hits([picked.hit])
            await line.read_evidence()
        return await line.end_episode("read from the chunks of the atomic questions selected")

    async def _next_candidate(
        self, line: Episode, tags: AtomTags, known: Sequence[str]
    ) -> AtomCandidate | None:
        prompt = line.render_prompt(
            "baselines/pike_propose",
            question=line.question.text,
            documents=line.list_documents(),
            limit=self.proposals,
        )
        proposed = read_list((await line.ask_model(prompt)).text, self.proposals)
        found: dict[str, AtomCandidate] = {}
        for proposal in proposed:
            for candidate in await self._nearest_candidates(line, tags, proposal):
                if candidate.question not in known:
                    found.setdefault(candidate.question, candidate)
        best = sorted(found.values(), key=lambda c: -c.likeness)[: self.candidates]
        return await self._select_candidate(line, best) if best else None

    async def _nearest_candidates(
        self, line: Episode, tags: AtomTags, proposal: str
    ) -> list[AtomCandidate]:
        hits = await line.find_hits(proposal, keep=False)
        for hit in hits:
            if hit.passage.id not in tags.of:
                tags.of[hit.passage.id] = await self._ask_atoms(line, hit)
        return await self._likely_candidates(proposal, hits, tags.of)

    async def _likely_candidates(
        self, proposal: str, hits: Sequence[Hit], tags: Mapping[str, Sequence[str]]
    ) -> list[AtomCandidate]:
        pairs = [(atom, hit) for hit in hits for atom in tags[hit.passage.id]]
        scores = await self.relevance.relevance(proposal, [atom for atom, _ in pairs])
        return [
            AtomCandidate(atom, score, hit)
            for (atom, hit), score in zip(pairs, scores, strict=True)
            if score >= self.likeness
        ]

    async def _ask_atoms(self, line: Episode, hit: Hit) -> list[str]:
        prompt = line.render_prompt("baselines/pike_atoms", text=hit.passage.text, limit=self.atoms)
        return read_list((await line.ask_model(prompt)).text, self.atoms)

    async def _select_candidate(
        self, line: Episode, offered: Sequence[AtomCandidate]
    ) -> AtomCandidate | None:
        prompt = line.render_prompt(
            "baselines/pike_select",
            question=line.question.text,
            documents=line.list_documents(),
            asked=[candidate.question for candidate in offered],
        )
        said = _NUMBER.search((await line.ask_model(prompt, tokens=16, temperature=0.0)).text)
        number = int(said.group()) if said else 0
        return offered[number - 1] if 1 <= number <= len(offered) else None

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

from osler.methods.baselines.episode import Kit, Line
from osler.methods.baselines.replies import listed
from osler.trace import Noted, Run
from osler.types import Hit, Question, Relevance, Solution

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Candidate:
    question: str
    likeness: float
    hit: Hit


@dataclass
class Tags:
    """The atomic questions of the chunks seen so far."""

    of: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class PikeRag:
    kit: Kit
    relevance: Relevance
    steps: int = 5
    proposals: int = 3
    atoms: int = 5
    """Questions of a chunk, at most."""
    likeness: float = 0.5
    """Least likeness of a tag to a proposal."""
    candidates: int = 4

    async def solve(self, question: Question, run: Run) -> Solution:
        with Line(self.kit, question, run) as line:
            tags, known = Tags(), list[str]()
            for _ in range(self.steps):
                picked = await self._step(line, tags, known)
                if picked is None:
                    break
                run.emit(Noted(f"selected: {picked.question}"))
                known.append(picked.question)
                line.keep([picked.hit])
            await line.read()
        return await line.ended("read from the chunks of the atomic questions selected")

    async def _step(self, line: Line, tags: Tags, known: Sequence[str]) -> Candidate | None:
        prompt = line.rendered(
            "baselines/pike_propose",
            question=line.question.text,
            documents=line.documents(),
            limit=self.proposals,
        )
        proposed = listed((await line.say(prompt)).text, self.proposals)
        found: dict[str, Candidate] = {}
        for proposal in proposed:
            for candidate in await self._near(line, tags, proposal):
                if candidate.question not in known:
                    found.setdefault(candidate.question, candidate)
        best = sorted(found.values(), key=lambda c: -c.likeness)[: self.candidates]
        return await self._select(line, best) if best else None

    async def _near(self, line: Line, tags: Tags, proposal: str) -> list[Candidate]:
        hits = await line.find(proposal, keep=False)
        for hit in hits:
            if hit.passage.id not in tags.of:
                tags.of[hit.passage.id] = await self._atoms(line, hit)
        return await self._likely(proposal, hits, tags.of)

    async def _likely(
        self, proposal: str, hits: Sequence[Hit], tags: Mapping[str, Sequence[str]]
    ) -> list[Candidate]:
        pairs = [(atom, hit) for hit in hits for atom in tags[hit.passage.id]]
        scores = await self.relevance.relevance(proposal, [atom for atom, _ in pairs])
        return [
            Candidate(atom, score, hit)
            for (atom, hit), score in zip(pairs, scores, strict=True)
            if score >= self.likeness
        ]

    async def _atoms(self, line: Line, hit: Hit) -> list[str]:
        prompt = line.rendered("baselines/pike_atoms", text=hit.passage.text, limit=self.atoms)
        return listed((await line.say(prompt)).text, self.atoms)

    async def _select(self, line: Line, offered: Sequence[Candidate]) -> Candidate | None:
        prompt = line.rendered(
            "baselines/pike_select",
            question=line.question.text,
            documents=line.documents(),
            asked=[candidate.question for candidate in offered],
        )
        said = _NUMBER.search((await line.say(prompt, tokens=16, temperature=0.0)).text)
        number = int(said.group()) if said else 0
        return offered[number - 1] if 1 <= number <= len(offered) else None

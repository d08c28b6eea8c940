"""HippoRAG 2: a walk over a graph of triples and passages (KAG-Thinker Table 8).

Gutiérrez et al. 2025, *From RAG to Memory: Non-Parametric Continual Learning for Large Language
Models*, §3: open information extraction of each passage (names, then triples); a graph of
phrases and passages; of a question the 5 nearest triples, which the model filters (recognition
memory); their phrases and, with weight 0.05, all passages seed a personalised PageRank with
damping 0.5; the passages where it is found most are read. Where the filter leaves nothing, the
first search stands.

Departures: the graph is made of the passages that a first search finds, when a question is
asked, since an extraction takes two calls a passage. Phrases are synonyms when they share four
fifths of their words, instead of a likeness of vectors. Triples are compared by the configured
relevance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from osler.methods.baselines.episode import Kit, Line
from osler.methods.baselines.hippo_graph import Triple, pagerank, said, seeds
from osler.methods.baselines.replies import json_in, strings
from osler.trace import Noted, Run
from osler.types import Hit, Question, Relevance, Solution


@dataclass(frozen=True)
class HippoRag:
    kit: Kit
    relevance: Relevance
    depth: int = 10
    """Passages that the graph is made of; `kit.k` are read."""
    triples: int = 5
    """Triples that are recognised or not."""
    passage_weight: float = 0.05
    damping: float = 0.5

    async def solve(self, question: Question, run: Run) -> Solution:
        with Line(self.kit, question, run) as line:
            found = await line.find(question.text, k=self.depth, keep=False)
            line.keep(found[: self.kit.k])
            best = await self._walked(line, found)
            if best:
                line.hits = best[: self.kit.k]
            await line.read()
        return await line.ended("read where a walk over the graph ended")

    async def _walked(self, line: Line, found: Sequence[Hit]) -> list[Hit]:
        """The passages by their share of the walk; [] where no triple was recognised."""
        stated = [await self._extracted(line, hit) for hit in found]
        nearest = await self._nearest(line, [t for triples in stated for t in triples])
        kept = await self._recognised(line, nearest) if nearest else []
        line.run.emit(Noted(f"{len(kept)} of {len(nearest)} triples recognised"))
        if not kept:
            return []
        scored = [(triple, score) for triple, score in nearest if triple in kept]
        start = seeds(scored, [hit.score for hit in found], self.passage_weight)
        shares = pagerank(stated, start, self.damping)
        order = sorted(range(len(found)), key=lambda n: (-shares[n], n))
        return [replace(found[n], score=shares[n], rank=r) for r, n in enumerate(order, 1)]

    async def _extracted(self, line: Line, hit: Hit) -> list[Triple]:
        text = f"{hit.passage.heading}\n{hit.passage.text}".strip()
        ask = line.rendered("baselines/hippo_names", text=text)
        names = strings(json_in((await line.say(ask, temperature=0.0)).text, "["))
        prompt = line.rendered("baselines/hippo_triples", text=text, known=names)
        return read_triples((await line.say(prompt, temperature=0.0)).text)

    async def _nearest(self, line: Line, stated: Sequence[Triple]) -> list[tuple[Triple, float]]:
        every = list(dict.fromkeys(stated))
        scores = await self.relevance.relevance(line.question.text, [said(t) for t in every])
        ranked = sorted(zip(every, scores, strict=True), key=lambda pair: -pair[1])
        return ranked[: self.triples]

    async def _recognised(
        self, line: Line, nearest: Sequence[tuple[Triple, float]]
    ) -> list[Triple]:
        """Recognition memory: those of the triples that the model names as useful."""
        prompt = line.rendered(
            "baselines/hippo_filter",
            question=line.question.text,
            known=[said(triple) for triple, _ in nearest],
        )
        named = {
            said(triple) for triple in read_triples((await line.say(prompt, temperature=0.0)).text)
        }
        return [triple for triple, _ in nearest if said(triple) in named]


def read_triples(text: str) -> list[Triple]:
    """`[["subject", "relation", "object"], …]`; what is no triple is left out."""
    value = json_in(text, "[")
    rows = value if isinstance(value, list) else []
    found = []
    for row in rows:
        parts = strings(row)
        if len(parts) == 3:
            found.append((parts[0], parts[1], parts[2]))
    return list(dict.fromkeys(found))

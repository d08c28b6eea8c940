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

from osler.methods.baselines.episode import Episode, MethodDeps
from osler.methods.baselines.hippo_graph import Triple, pagerank, seed_weights, verbalize_triple
from osler.methods.baselines.replies import clean_strings, json_in
from osler.trace import Noted, Run
from osler.types import Hit, Question, Relevance, Solution


@dataclass(frozen=True)
class HippoRag:
    kit: MethodDeps
    relevance: Relevance
    depth: int = 10
    """Passages from which the graph is made; `kit.k` of them are read."""
    triples: int = 5
    """Nearest triples that the model filters."""
    passage_weight: float = 0.05
    damping: float = 0.5

    async def solve(self, question: Question, run: Run) -> Solution:
        with Episode(self.kit, question, run) as line:
            found = await line.find_hits(question.text, k=self.depth, keep=False)
            line.keep_hits(found[: self.kit.k])
            best = await self._walk_graph(line, found)
            if best:
                line.hits = best[: self.kit.k]
            await line.read_evidence()
        return await line.end_episode("read where a walk over the graph ended")

    async def _walk_graph(self, line: Episode, found: Sequence[Hit]) -> list[Hit]:
        """The passages by their share of the walk; [] when no triple was recognised."""
        stated = [await self._extract_triples(line, hit) for hit in found]
        nearest = await self._nearest_triples(line, [t for triples in stated for t in triples])
        kept = await self._recognise_triples(line, nearest) if nearest else []
        line.run.emit(Noted(f"{len(kept)} of {len(nearest)} triples recognised"))
        if not kept:
            return []
        scored = [(triple, score) for triple, score in nearest if triple in kept]
        start = seed_weights(scored, [hit.score for hit in found], self.passage_weight)
        shares = pagerank(stated, start, self.damping)
        order = sorted(range(len(found)), key=lambda n: (-shares[n], n))
        return [replace(found[n], score=shares[n], rank=r) for r, n in enumerate(order, 1)]

    async def _extract_triples(self, line: Episode, hit: Hit) -> list[Triple]:
        text = f"{hit.passage.heading}\n{hit.passage.text}".strip()
        ask = line.render_prompt("baselines/hippo_names", text=text)
        names = clean_strings(json_in((await line.ask_model(ask, temperature=0.0)).text, "["))
        prompt = line.render_prompt("baselines/hippo_triples", text=text, known=names)
        return read_triples((await line.ask_model(prompt, temperature=0.0)).text)

    async def _nearest_triples(
        self, line: Episode, stated: Sequence[Triple]
    ) -> list[tuple[Triple, float]]:
        every = list(dict.fromkeys(stated))
        scores = await self.relevance.relevance(
            line.question.text, [verbalize_triple(t) for t in every]
        )
        ranked = sorted(zip(every, scores, strict=True), key=lambda pair: -pair[1])
        return ranked[: self.triples]

    async def _recognise_triples(
        self, line: Episode, nearest: Sequence[tuple[Triple, float]]
    ) -> list[Triple]:
        """Recognition memory (§3.3): the triples that the model calls useful."""
        prompt = line.render_prompt(
            "baselines/hippo_filter",
            question=line.question.text,
            known=[verbalize_triple(triple) for triple, _ in nearest],
        )
        named = {
            verbalize_triple(triple)
            for triple in read_triples((await line.ask_model(prompt, temperature=0.0)).text)
        }
        return [triple for triple, _ in nearest if verbalize_triple(triple) in named]


def read_triples(text: str) -> list[Triple]:
    """Reads `[["subject", "relation", "object"], …]`; entries that are no triple are left out."""
    value = json_in(text, "[")
    rows = value if isinstance(value, list) else []
    found = []
    for row in rows:
        parts = clean_strings(row)
        if len(parts) == 3:
            found.append((parts[0], parts[1], parts[2]))
    return list(dict.fromkeys(found))

"""Passages found by what was extracted of them: HippoRAG 2 and PIKE-RAG.

HippoRAG 2: a walk over a graph of triples and passages (KAG-Thinker Table 8).

Gutiérrez et al. 2025, *From RAG to Memory: Non-Parametric Continual Learning for Large Language
Models*, §3: open information extraction of each passage (names, then triples); a graph of
phrases and passages; of a question the 5 nearest triples, which the model filters (recognition
memory); their phrases and, with weight 0.05, all passages seed a personalised PageRank with
damping 0.5; the passages where it is found most are read. Where the filter leaves nothing, the
first search stands.

Where the corpus was extracted before (`osler kb extract`), triples and walk are those of its
whole graph (`CorpusGraph`). Else the graph is made of what a first search finds, when the
question is asked, and the trace says so.

Departures: of the corpus's triples those are compared with the question that stand in chunks
which name what it names, or share its words; passages of the first search alone are seeds, not
all of the corpus. Phrases are synonyms when extraction resolved them to one entity, or, without
an extracted corpus, when they share four fifths of their words, instead of a likeness of vectors.
Triples are compared by the configured relevance.

PIKE-RAG: passages are found by the atomic questions that they answer (KAG-Thinker T8).

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

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from osler.llm.reading.json_replies import clean_strings, json_in, read_list
from osler.methods.episode import Episode, EpisodeMethod
from osler.text import split_words
from osler.types import Hit, Relevance, Retriever

Triple = tuple[str, str, str]
Node = int | str
"""A passage by its position, or a phrase."""
_SYNONYM = 0.8
_ROUNDS = 100
_CANDIDATES = 500
"""Triples of the corpus that are compared with the question, at most."""
_NO_CORPUS = (
    "no graph of the corpus (`osler kb extract` makes one): it is made of what a first search finds"
)


@dataclass(frozen=True)
class CorpusGraph:
    """The graph of the whole corpus, made before any question."""

    triples: Retriever
    """Finds triples near a question; a hit's `query` is the triple as a JSON list."""
    walk: Retriever
    """Finds passages by a walk; its query is JSON, weights of `phrases` and `passages`."""


@dataclass(frozen=True)
class HippoRag(EpisodeMethod):
    relevance: Relevance
    corpus: CorpusGraph | None = None
    """`None`: the graph is made of what a first search finds."""
    depth: int = 10
    """Passages of the first search (ours); `kit.k` are read in the end."""
    triples: int = 5
    """Nearest triples that the model filters."""
    passage_weight: float = 0.05
    damping: float = 0.5

    async def run_episode(self, episode: Episode) -> str:
        hits = await episode.search(episode.question.text, k=self.depth, keep=False)
        episode.keep_hits(hits[: self.kit.k])
        best = await self._walk_graph(episode, hits)
        if best:
            episode.hits = list(best[: self.kit.k])
        await episode.read_evidence()
        return "read where a walk over the graph ended"

    async def _walk_graph(self, episode: Episode, found: Sequence[Hit]) -> Sequence[Hit]:
        """The passages by their share of the walk; [] when no triple was recognised."""
        stated: list[list[Triple]] = []
        if self.corpus is None:
            episode.note(_NO_CORPUS)
            stated = [await self._extract_triples(episode, hit) for hit in found]
            candidates = [triple for triples in stated for triple in triples]
        else:
            candidates = await self._corpus_triples(episode, self.corpus)
        nearest = await self._nearest_triples(episode, candidates)
        kept = await self._recognise_triples(episode, nearest) if nearest else []
        episode.note(f"{len(kept)} of {len(nearest)} triples recognised")
        if not kept:
            return []
        scored = [(triple, score) for triple, score in nearest if triple in kept]
        start = seed_weights(scored, [hit.score for hit in found], self.passage_weight)
        if self.corpus is not None:
            query = walk_query(start, [hit.passage.id for hit in found])
            return await episode.search(query, keep=False, where=self.corpus.walk)
        shares = pagerank(stated, start, self.damping)
        order = sorted(range(len(found)), key=lambda n: (-shares[n], n))
        return [replace(found[n], score=shares[n], rank=r) for r, n in enumerate(order, 1)]

    async def _corpus_triples(self, episode: Episode, corpus: CorpusGraph) -> list[Triple]:
        hits = await episode.search(
            episode.question.text, k=_CANDIDATES, keep=False, where=corpus.triples
        )
        return [triple for hit in hits for triple in read_triples(f"[{hit.query}]")]

    async def _extract_triples(self, episode: Episode, hit: Hit) -> list[Triple]:
        text = f"{hit.passage.heading}\n{hit.passage.text}".strip()
        reply = await episode.ask_text("baselines/hippo_names", text=text, temperature=0.0)
        names = clean_strings(json_in(reply, "["))
        return read_triples(
            await episode.ask_text(
                "baselines/hippo_triples", text=text, known=names, temperature=0.0
            )
        )

    async def _nearest_triples(
        self, episode: Episode, stated: Sequence[Triple]
    ) -> list[tuple[Triple, float]]:
        every = list(dict.fromkeys(stated))
        scores = await self.relevance.relevance(
            episode.question.text, [verbalize_triple(t) for t in every]
        )
        ranked = sorted(zip(every, scores, strict=True), key=lambda pair: -pair[1])
        return ranked[: self.triples]

    async def _recognise_triples(
        self, episode: Episode, nearest: Sequence[tuple[Triple, float]]
    ) -> list[Triple]:
        """Recognition memory (§3.3): the triples that the model calls useful."""
        known = [verbalize_triple(triple) for triple, _ in nearest]
        reply = await episode.ask_text("baselines/hippo_filter", known=known, temperature=0.0)
        named = {verbalize_triple(triple) for triple in read_triples(reply)}
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


def verbalize_triple(triple: Triple) -> str:
    return " ".join(triple)


def normalize_phrase(text: str) -> str:
    """The normal form of a phrase: its lower-cased words."""
    return " ".join(split_words(text)) or text.casefold()


def seed_weights(
    triples: Sequence[tuple[Triple, float]], passages: Sequence[float], weight: float
) -> dict[Node, float]:
    """Restart weights of the walk: phrases by the mean score of their triples, passages by their
    scores scaled to [0, 1], times `weight`."""
    of: dict[str, list[float]] = {}
    for (subject, _, object_), score in triples:
        for name in dict.fromkeys((normalize_phrase(subject), normalize_phrase(object_))):
            of.setdefault(name, []).append(max(0.0, score))
    start: dict[Node, float] = {name: sum(all_) / len(all_) for name, all_ in of.items()}
    # Scores of any retriever are brought to one scale.
    low, high = min(passages), max(passages)
    for n, score in enumerate(passages):
        start[n] = weight * ((score - low) / (high - low) if high > low else 1.0)
    return start


def weigh_edges(stated: Sequence[Sequence[Triple]]) -> dict[tuple[Node, Node], float]:
    """Edge weights: phrases of one triple, a passage and its phrases, synonyms; by frequency."""
    found: dict[tuple[Node, Node], float] = {}
    names: dict[str, None] = {}
    for n, triples in enumerate(stated):
        held = dict.fromkeys(normalize_phrase(end) for t in triples for end in (t[0], t[2]))
        names |= held
        found |= {(n, name): 1.0 for name in held}
        for subject, _, object_ in triples:
            pair = (normalize_phrase(subject), normalize_phrase(object_))
            if pair[0] != pair[1]:
                found[pair] = found.get(pair, 0.0) + 1.0
    # Quadratic, over the phrases of some ten passages only.
    for one, two in combinations(names, 2):
        if (likeness := _phrase_similarity(one, two)) >= _SYNONYM:
            found[one, two] = found.get((one, two), 0.0) + likeness
    return found


def walk_query(start: Mapping[Node, float], ids: Sequence[str]) -> str:
    """The seeds of a walk over the corpus; a passage is named by the id at its position."""
    phrases = {node: weight for node, weight in start.items() if isinstance(node, str)}
    passages = {ids[node]: w for node, w in start.items() if isinstance(node, int) and w > 0}
    return json.dumps({"phrases": phrases, "passages": passages}, ensure_ascii=False)


def pagerank(
    stated: Sequence[Sequence[Triple]], start: Mapping[Node, float], damping: float
) -> list[float]:
    """Personalised PageRank of each passage, restarting at `start`; edges are undirected."""
    links = weigh_edges(stated)
    nodes = list(dict.fromkeys([*range(len(stated)), *(n for link in links for n in link)]))
    place = {node: i for i, node in enumerate(nodes)}
    weights = np.zeros((len(nodes), len(nodes)))
    for (one, two), weight in links.items():
        weights[place[one], place[two]] += weight
        weights[place[two], place[one]] += weight
    again = np.array([start.get(node, 0.0) for node in nodes])
    again = again / again.sum() if again.sum() else np.full(len(nodes), 1 / max(1, len(nodes)))
    out = weights.sum(axis=1)
    share = again.copy()
    for _ in range(_ROUNDS):
        # What stands at a node without edges starts again.
        stuck = share[out == 0].sum()
        moved = weights.T @ np.divide(share, out, out=np.zeros_like(share), where=out > 0)
        share = (1 - damping) * again + damping * (moved + stuck * again)
    # Rounded, so that ties do not depend on the linear algebra library.
    return [round(float(value), 9) for value in share[: len(stated)]]


def _phrase_similarity(one: str, two: str) -> float:
    first, second = set(one.split()), set(two.split())
    return len(first & second) / max(1, len(first | second))


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


AtomTags = dict[str, list[str]]
"""Atomic questions of the chunks seen so far, by passage id."""


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
            if hit.passage.id not in tags:
                said = await episode.ask_text(
                    "baselines/pike_atoms", text=hit.passage.text, limit=self.atoms
                )
                tags[hit.passage.id] = read_list(said, self.atoms)
        pairs = [(atom, hit) for hit in hits for atom in tags[hit.passage.id]]
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

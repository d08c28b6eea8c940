"""What was found is weighed first: Chain-of-Note, SuRe, HyKGE, Adaptive-RAG.

Chain-of-Note: a note on each passage, then the answer (TC-RAG App. 8.5, method 6).

Yu et al. 2023, *Chain-of-Note*, §3.2: the model notes what each passage says, whether it is
relevant, and answers from the relevant ones, from its own knowledge where none is, or that it
does not know. TC-RAG names this method and cites Chain-of-Knowledge; both are here.

Departures: the zero-shot prompt of the paper's appendix instead of a model trained on notes;
an answer from the model's own knowledge counts as ungrounded.

SuRe: a summary for each answer that is possible, then their comparison (TC-RAG App. 8.5, 7).

Kim et al. 2024, *SuRe: Summarizing Retrievals using Answer Candidates*, §3.2: candidates from
the passages (Eq. 3), a summary of the passages that speaks for each (Eq. 4), its validity v
(does it support its candidate, Eq. 5), its pairwise rank r (is it more informative than each
other one, Eq. 6); the answer is the candidate of the greatest v + r (Eq. 7).

A pair is asked in both orders and a split verdict counts half, as in the released code, since
a model's choice depends on the order.

Departures: of a question with options the candidates are options. TC-RAG's released code has
neither validity nor ranking.

HyKGE: a hypothesis finds its way through the graph (TC-RAG App. 8.5, method 8).

Jiang et al. 2024, *HyKGE: A Hypothesis Knowledge Graph Enhanced Framework for Accurate and
Reliable Medical LLMs Responses*, §4: the model writes a hypothesis output; entities of question
and hypothesis are linked to the graph; the paths between them are its reasoning chains; the
chains are reranked by the fragments of question and hypothesis (granularity-aware, §4.3), and
the reader answers from those that stay.

Departures: entities are the graph's own names in the text, and those of a trained recogniser where
the knowledge base has one (`research/experts/train_recogniser.py`); the reranker is the configured
relevance; a chain counts by its nearest fragment. Chains have at most 3 hops and 11 of them are
read, as in the released example settings, whose program reranks all that it finds.

Adaptive-RAG: first ask how hard the question is (TC-RAG §2; KAG-Thinker Table 10).

Jeong et al. 2024, *Adaptive-RAG: Learning to Adapt Retrieval-Augmented Large Language Models
through Question Complexity*, §3: a classifier says A (no retrieval), B (one retrieval) or C
(several steps), and the question goes to the method for that. KAG-Thinker's "Naive RAG +
adaptive" is the same without C.

Departures: the classifier is the model itself, asked in words; the paper trains one (T5-Large)
on which method succeeded. An unreadable verdict counts as B. The method for C is IRCoT, as in
the paper.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from osler.errors import MalformedOutput
from osler.llm.reading.answers import answer_words, content_span, find_tags, without_debris
from osler.llm.reading.verdicts import read_letter, read_verdict
from osler.methods.episode import Episode, EpisodeMethod, MethodDeps, match_option
from osler.text import split_sentences
from osler.trace import Run, Solver
from osler.types import Hit, Question, Relevance, Solution


@dataclass(frozen=True)
class ChainOfNote(EpisodeMethod):
    async def run_episode(self, episode: Episode) -> str:
        hits = await episode.search(episode.question.text)
        documents = episode.list_documents(hits)
        reply = await episode.ask_text("baselines/chain_of_note", documents=documents)
        episode.conclude_text(after_notes(reply), hits)
        return "answered from notes on the passages"


def after_notes(text: str) -> str:
    """The answer after the notes; the whole text where no answer is marked."""
    marks = [tag for tag in find_tags(text) if tag.name == "conclusion"]
    return text[slice(*content_span(text, marks[-1].end, len(text)))] if marks else text


_MARK = re.compile(r"^\s*(?:[(（]?[a-zA-Z0-9][)）]|[0-9]+[.、:：]|[-*•])\s*")
_WHICH = re.compile(r"(?<![\d.])([12])(?![\d.]*\d)")


@dataclass(frozen=True)
class SuRe(EpisodeMethod):
    candidates: int = 2
    """Two are the paper's; up to 5."""

    async def run_episode(self, episode: Episode) -> str:
        await episode.search(episode.question.text)
        proposed = await episode.ask_text(
            "baselines/sure_candidates", documents=episode.list_documents(), limit=self.candidates
        )
        named = read_candidates(proposed, episode.question, self.candidates)
        summaries = [await self._summarise_candidate(episode, name) for name in named]
        valid = [
            await self._is_valid(episode, name, summary)
            for name, summary in zip(named, summaries, strict=True)
        ]
        if named:
            episode.conclude_answer(named[0], summaries[0])
        wins = await self._compare_pairs(episode, summaries)
        best = choose_candidate(valid, wins)
        if named:
            episode.note(
                _describe_ranking(named, valid, rank_scores(len(named), wins), named[best])
            )
            episode.conclude_answer(named[best], summaries[best])
        return "the candidate whose summary is valid and most informative"

    async def _summarise_candidate(self, episode: Episode, candidate: str) -> str:
        reply = await episode.ask_text(
            "baselines/sure_summary", answer=candidate, documents=episode.list_documents()
        )
        return answer_words(reply)

    async def _is_valid(self, episode: Episode, candidate: str, summary: str) -> bool:
        reply = await episode.ask_text(
            "baselines/sure_valid", answer=candidate, text=summary, tokens=16, temperature=0.0
        )
        # The verdict is the word that was asked for, not what its reason says: "True. It does not
        # contradict the passage."
        try:
            return read_verdict(reply)
        except MalformedOutput:
            return False

    async def _compare_pairs(
        self, episode: Episode, summaries: Sequence[str]
    ) -> dict[tuple[int, int], float]:
        """r_pair(k, i) of each ordered pair: 1, 0, or 0.5 when the two prompt orders disagree."""
        wins: dict[tuple[int, int], float] = {}
        for one, two in combinations(range(len(summaries)), 2):
            forth = await self._first_wins(episode, summaries[one], summaries[two])
            back = await self._first_wins(episode, summaries[two], summaries[one])
            # Averaging both orders cancels the model's bias for the first summary.
            wins[one, two] = (forth + (1.0 - back)) / 2
            wins[two, one] = 1.0 - wins[one, two]
        return wins

    async def _first_wins(self, episode: Episode, one: str, two: str) -> float:
        known = [one, two]
        reply = await episode.ask_text(
            "baselines/sure_rank", known=known, tokens=16, temperature=0.0
        )
        named = set(_WHICH.findall(reply))
        return float(named == {"1"}) if len(named) == 1 else 0.5


def read_candidates(text: str, question: Question, most: int) -> list[str]:
    """Reads candidate answers, one per line or separated by commas; with options, the options'
    texts."""
    lines = [part for part in re.split(r"[\n;；]+", without_debris(text)) if part.strip()]
    if len(lines) == 1:
        # A single line may be a comma-separated list.
        lines = re.split(r"[,，、]", lines[0])
    found: list[str] = []
    for raw in lines:
        plain = _MARK.sub("", raw.strip()).rstrip(".。")
        letter = match_option(raw.strip(), question) or match_option(plain, question)
        found.append(question.option_text(letter) if letter else "" if question.options else plain)
    return list(dict.fromkeys(filter(None, found)))[:most]


def rank_scores(count: int, wins: Mapping[tuple[int, int], float]) -> list[float]:
    """Eq. 6: each candidate's sum of pairwise wins."""
    return [sum(wins.get((k, i), 0.0) for i in range(count) if i != k) for k in range(count)]


def choose_candidate(valid: Sequence[bool], wins: Mapping[tuple[int, int], float]) -> int:
    """Eq. 7: the index of the greatest v + r, the first of equals; 0 without candidates."""
    sums = [v + r for v, r in zip(valid, rank_scores(len(valid), wins), strict=True)]
    return sums.index(max(sums)) if sums else 0


def _describe_ranking(
    named: Sequence[str], valid: Sequence[bool], ranked: Sequence[float], best: str
) -> str:
    each = (
        f"{name}: validity {int(v)}, rank {r:g}"
        for name, v, r in zip(named, valid, ranked, strict=True)
    )
    return f"{'; '.join(each)}; chosen: {best}"


@dataclass(frozen=True)
class HyKGE(EpisodeMethod):
    """HyKGE over a retriever of reasoning chains (`osler.retrieve.graph.ChainRetriever`)."""

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


# "A" is an article as well.
_LETTER = re.compile(r"\b([BC]|A(?=\W*$|[.:)*]))\b")


@dataclass(frozen=True)
class Adaptive:
    kit: MethodDeps
    none: Solver
    once: Solver
    several: Solver | None = None
    """`None`: the form without C."""

    async def solve(self, question: Question, run: Run) -> Solution:
        level = "B"
        with Episode(self.kit, question, run) as episode:
            has_several = self.several is not None
            reply = await episode.ask_text(
                "baselines/adaptive", summary=has_several, tokens=16, temperature=0.0
            )
            level = classify_complexity(reply)
            episode.note(f"complexity {level}")
        # Levels of §3: no retrieval, one, several steps.
        methods = {"A": self.none, "B": self.once, "C": self.several or self.once}
        return await methods[level].solve(question, run)


def classify_complexity(said: str) -> str:
    """A, B or C; B where the reply names none, or several."""
    try:
        return read_letter(said, "ABC")
    except MalformedOutput:
        named = set(_LETTER.findall(said))
    return named.pop() if len(named) == 1 else "B"

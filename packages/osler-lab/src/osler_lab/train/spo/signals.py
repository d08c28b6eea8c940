"""Other signals than a model's judgement (Omni-RAG App. D.3), behind the same Protocol.

| Signal | A query is positive when |
|---|---|
| `GoldDocuments` | the better half of what it found holds a gold document; ours |
| `ReaderGain` | the reader answers better with it than without (Trainable Planning) |
| `RerankSignal` | what it found scores over a threshold against the question (RaFe Planning) |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.methods.omni.solver import Reader
from osler.trace import Run
from osler.types import Answer, Hit, Passage, Relevance
from osler_lab.evaluate.metrics.overlap import rouge_l
from osler_lab.train.spo.explore import ExploredCase, SearchedQuery, TrainingCase
from osler_lab.train.spo.judge import (
    GoldMissing,
    QueryVerdict,
    better_half,
    require_gold,
)

THRESHOLD = 2.3
"""RaFe's, on MedCPT's cross-encoder: "by trying on the development set" (App. D.3)."""


def document_of(passage: str) -> str:
    """The document of a passage's id ("source:document#chunk")."""
    return passage.partition(":")[2].rpartition("#")[0]


@dataclass(frozen=True)
class GoldDocuments:
    """Judges by the known ids of gold documents."""

    name: str = "gold documents"

    async def judge(self, explored: ExploredCase, run: Run) -> tuple[list[QueryVerdict], int]:
        gold = frozenset(explored.case.documents)
        if not gold:
            raise GoldMissing(
                f"{explored.key} names no gold documents", fix="judge with --judge model instead"
            )
        return [self._judge_query(query, gold) for query in explored.queries], len(explored.queries)

    def _judge_query(self, query: SearchedQuery, gold: frozenset[str]) -> QueryVerdict:
        hits = gold & set(map(document_of, better_half(query.found)))
        return QueryVerdict(query.source, query.wire, bool(hits))


async def _score_documents(
    relevance: Relevance, text: str, explored: ExploredCase
) -> dict[str, float]:
    """Scores every document that is read, once."""
    read = list(dict.fromkeys(id for query in explored.queries for id in better_half(query.found)))
    scores = await relevance.relevance(text, [explored.passages[id] for id in read])
    return dict(zip(read, scores, strict=True))


@dataclass(frozen=True)
class ReaderGain:
    """Judges by a reader's gain from a query's documents: accuracy, or ROUGE-L if open-ended."""

    reader: Reader

    @property
    def name(self) -> str:
        return f"improvement of {self.reader.model.name}"

    async def judge(self, explored: ExploredCase, run: Run) -> tuple[list[QueryVerdict], int]:
        case = explored.case
        # App. D.3: the reader without documents is the baseline of every gain.
        alone = answer_quality(case, await self.reader.read(case.question, (), run, alone=True))
        known: dict[frozenset[str], float] = {}
        for query in explored.queries:
            read = better_half(query.found)
            if read and frozenset(read) not in known:
                hits = [_as_hit(explored, query, n, id) for n, id in enumerate(read, 1)]
                answer = await self.reader.read(case.question, hits, run)
                known[frozenset(read)] = answer_quality(case, answer) - alone
        gains = [known.get(frozenset(better_half(query.found)), 0.0) for query in explored.queries]
        verdicts = [
            QueryVerdict(query.source, query.wire, gain > 0)
            for query, gain in zip(explored.queries, gains, strict=True)
        ]
        return verdicts, len(known) + 1


def answer_quality(case: TrainingCase, answer: Answer) -> float:
    """Quality from 0 to 1: whether the option is right, or ROUGE-L. Raises `GoldMissing`."""
    gold = case.sample.gold
    if gold.letters:
        return float(answer.option in gold.letters)
    require_gold(case)
    return rouge_l(answer.text, gold.texts).f1


def _as_hit(explored: ExploredCase, query: SearchedQuery, rank: int, id: str) -> Hit:
    """The passage as it was shown; its heading is a part of its text."""
    passage = Passage(id, explored.passages[id], query.source, document_of(id))
    return Hit(passage, 0.0, rank, query.wire, query.source)


@dataclass(frozen=True)
class RerankSignal:
    """The best rerank score of what a query found, against the question itself."""

    relevance: Relevance
    model: str
    """Its identity."""
    least: float = THRESHOLD
    """Threshold on the scale of the model's logits."""

    @property
    def name(self) -> str:
        return f"rerank {self.model} over {self.least:g}"

    async def judge(self, explored: ExploredCase, run: Run) -> tuple[list[QueryVerdict], int]:
        scored = await _score_documents(
            self.relevance, explored.case.question.with_options, explored
        )
        return [self._judge_query(query, scored) for query in explored.queries], len(scored)

    def _judge_query(self, query: SearchedQuery, scored: dict[str, float]) -> QueryVerdict:
        scores: Sequence[float] = [scored[id] for id in better_half(query.found)]
        return QueryVerdict(query.source, query.wire, any(s > self.least for s in scores))

"""Making and measuring the expert `answerable`: a logistic regression over what a gate sees."""

from __future__ import annotations

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import numpy as np

from osler.answer.gate import EvidenceGate, MeasuredPassage, QuoteThresholds
from osler.evaluate.trained_on import list_questions
from osler.jobs.runner import Progress
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder, MiniLMEncoder
from osler.retrieve.experts.answerable import (
    ANSWERABLE,
    FEATURES,
    AnswerableExpert,
    measure_passage,
)
from osler.retrieve.experts.answering import sigmoid
from osler.retrieve.experts.cards import CARD, WEIGHTS, ExpertCard, ExpertData, render_card
from osler.retrieve.experts.linear import LinearModel
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.naming import NamingRelevance, SubjectRelevance, has_no_one_subject
from osler.retrieve.relevance import CoverageRelevance, EncoderRelevance
from osler.train.experts.answerable_figures import GateResult, measure_gates
from osler.train.experts.evidence_cases import (
    LETTERS,
    CaseFinder,
    EvidenceCase,
    add_letters,
    count_parts,
    read_letters,
    read_subject_names,
)
from osler.train.experts.linear import fit_linear, tensors_of, write_safetensors
from osler.train.experts.pair_evaluation import fit_platt
from osler.train.experts.pair_questions import BIOASQ, LICENCES, MEDQUAD, PUBMEDQA
from osler.train.experts.searches import SearchQuestion, choose_share, open_corpus, read_searches
from osler.train.experts.splits import DataSplit, Part, read_split
from osler.types import Language, Relevance

EACH: Mapping[Part, Mapping[str, int]] = {
    "train": {MEDQUAD: 220, BIOASQ: 70, PUBMEDQA: 20, LETTERS: 90},
    "dev": {MEDQUAD: 100, BIOASQ: 20, PUBMEDQA: 8, LETTERS: 36},
    "test": {MEDQUAD: 100, BIOASQ: 48, PUBMEDQA: 52},
}
"""Most questions of a set in each part."""
_SHARES = {MEDQUAD: 0.45, BIOASQ: 0.3, PUBMEDQA: 0.1, LETTERS: 0.15}
"""Weight of each set, whatever its size."""
_RIDGE = 1.0
THRESHOLDS: Mapping[Language, QuoteThresholds] = {"en": QuoteThresholds(0.49, 0.5)}
"""Those of the settings' defaults."""
_WEAK = (
    "letters and case histories, which have no one subject: there the rule decides, and the"
    " probability is low",
    "a name that the knowledge base has in passing: what is said of another disease may be cited",
    "an aspect that a page leaves out: a page on the disease counts as evidence for its outlook",
    "its probabilities are for as many answerable questions as absent ones: calibrate it for yours",
    "English only: Chinese questions keep the rule, and have no probability",
)


@dataclass(frozen=True)
class MeasuredCase:
    """A case with what the gate knows of its passages."""

    case: EvidenceCase
    passages: tuple[MeasuredPassage, ...]

    @property
    def golds(self) -> list[bool]:
        return [self.case.is_gold(one.quotes[0].hit) for one in self.passages]


@dataclass(frozen=True)
class AnswerableJob:
    """Where the data, the split, the expert's folder and the knowledge base are."""

    data: Path
    split: Path
    """As made by the expert `answers`: the same questions are held out."""
    out: Path
    work: Path
    seed: int = 0
    threads: int = 1
    share: float = 1.0
    """Share of the questions, with their documents, that the knowledge base has."""

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Learns on cases of the train part; dev calibrates; both set the threshold."""
        encoder = MiniLMEncoder(threads=self.threads)
        with self._open_corpus(encoder, progress) as kb:
            gate = make_gate(kb, encoder)
            learnt = asyncio.run(self._measure_part(kb, encoder, gate, "train", progress))
            dev = asyncio.run(self._measure_part(kb, encoder, gate, "dev", progress))
        model = fit_evidence(learnt)
        self.out.mkdir(parents=True, exist_ok=True)
        write_safetensors(tensors_of(model), self.out / WEIGHTS)
        threshold = choose_threshold(model, [*learnt, *dev])
        slope, intercept = fit_platt(_answered_logits(model, dev, threshold))
        counts = {
            part: count_parts([m.case for m in c]) for part, c in (("train", learnt), ("dev", dev))
        }
        card = ExpertCard(
            name=ANSWERABLE,
            question="Does what was found answer this question at all?",
            family="linear",
            replaces="thresholds on coverage and on the best sentence's cosine",
            languages=("en",),
            made="osler experts train answerable --data FOLDER --split FILE --out FOLDER",
            seed=self.seed,
            date=datetime.now(UTC).date().isoformat(),
            split=hashlib.sha256(self.split.read_bytes()).hexdigest(),
            weights=hashlib.sha256((self.out / WEIGHTS).read_bytes()).hexdigest(),
            weak=_WEAK,
            features=FEATURES,
            parameters={
                "ridge": _RIDGE,
                "share": self.share,
                "threshold": threshold,
                "slope": round(slope, 4),
                "intercept": round(intercept, 4),
            },
            data=_count_data(counts),
        )
        list_questions(self.out, (one.case.asked.text for one in learnt))
        return self._write_card(card)

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """Measures on the test part; the card of the folder gets the figures."""
        opened = open_expert(ANSWERABLE, self.out)
        encoder = MiniLMEncoder(threads=self.threads)
        with self._open_corpus(encoder, progress) as kb:
            gate = replace(make_gate(kb, encoder), expert=AnswerableExpert(opened))
            results = asyncio.run(self._judge_test(kb, encoder, gate, progress, limit))
        figures, facts = measure_gates(results)
        update = {"figures": figures, "parameters": {**opened.card.parameters, **facts}}
        return self._write_card(opened.card.model_copy(update=update))

    def _open_corpus(self, encoder: Encoder, progress: Progress | None) -> KnowledgeBase:
        questions = choose_share(read_searches(self.data), self.share)
        kb = open_corpus(self.data, self.work, encoder, questions, progress)
        add_letters(kb, read_letters(self.data)[1], self.work)
        kb.build(encoder, progress=progress)
        return kb

    def _choose_questions(self, part: Part, limit: int | None = None) -> list[SearchQuestion]:
        split: DataSplit = read_split(self.split)
        questions = choose_share(read_searches(self.data), self.share)
        own = split.choose_items(questions, part)
        own += [
            one for one in read_letters(self.data)[0] if one.id.startswith(f"{LETTERS}:{part}:")
        ]
        chosen: list[SearchQuestion] = []
        for source, most in EACH[part].items():
            of = [one for one in own if one.source == source]
            chosen += Random(self.seed).sample(of, min(most, limit or most, len(of)))
        return chosen

    async def _find_cases(
        self, kb: KnowledgeBase, encoder: Encoder, chosen: Sequence[SearchQuestion]
    ) -> list[EvidenceCase]:
        names, answers = read_subject_names(self.data), read_letters(self.data)[1]
        finder = CaseFinder(kb, encoder, names, answers)
        return [case for one in chosen for case in await finder.find_cases(one)]

    async def _measure_part(
        self,
        kb: KnowledgeBase,
        encoder: Encoder,
        gate: EvidenceGate,
        part: Part,
        progress: Progress | None,
    ) -> list[MeasuredCase]:
        cases = await self._find_cases(kb, encoder, self._choose_questions(part))
        found = []
        for number, case in enumerate(cases, 1):
            measured = await gate.measure_passages(case.question, case.hits)
            found.append(MeasuredCase(case, tuple(measured)))
            if progress is not None:
                progress(f"measuring {part}", number, len(cases))
        return found

    async def _judge_test(
        self,
        kb: KnowledgeBase,
        encoder: Encoder,
        gate: EvidenceGate,
        progress: Progress | None,
        limit: int | None,
    ) -> list[GateResult]:
        cases = await self._find_cases(kb, encoder, self._choose_questions("test", limit))
        names, results = read_subject_names(self.data), []
        for number, case in enumerate(cases, 1):
            results.append(await GateResult.of_case(gate, case, names.names_of(case.asked)))
            if progress is not None:
                progress("measuring test", number, len(cases))
        return results

    def _write_card(self, card: ExpertCard) -> ExpertCard:
        (self.out / CARD).write_text(render_card(card), encoding="utf-8")
        return card


def make_gate(kb: KnowledgeBase, encoder: Encoder) -> EvidenceGate:
    """The gate of an application over this knowledge base, without the expert."""
    naming = NamingRelevance(kb.term_rarity)
    near: Relevance = RememberedRelevance(EncoderRelevance(encoder))
    coverage = CoverageRelevance(kb.term_rarity)
    return EvidenceGate(coverage, near, THRESHOLDS, naming=naming, subject=SubjectRelevance(naming))


class RememberedRelevance:
    """Scores of a scorer that is asked for each text of a question once."""

    def __init__(self, scorer: Relevance) -> None:
        self._scorer = scorer
        self._query = ""
        self._scores: dict[str, float] = {}

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        if query != self._query:
            self._query, self._scores = query, {}
        unseen = [text for text in dict.fromkeys(texts) if text not in self._scores]
        if unseen:
            scores = await self._scorer.relevance(query, unseen)
            self._scores |= dict(zip(unseen, scores, strict=True))
        return tuple(self._scores[text] for text in texts)


def fit_evidence(cases: Sequence[MeasuredCase]) -> LinearModel:
    """Learns to tell gold passages from those that are found when the subject is absent.

    Other passages found for an answerable question are left out: they may answer it as well. Each
    is learnt a second time without its heading, so that a text without one is not refused. A set
    weighs as `_SHARES` says, there and absent alike.
    """
    rows, classes, keys, weights = [], [], [], []
    for one in cases:
        kept = [
            passage
            for passage, gold in zip(one.passages, one.golds, strict=True)
            if one.case.absent or gold
        ]
        for passage in kept:
            for signs in (passage.signs, replace(passage.signs, heading=0.0)):
                rows.append(measure_passage(one.case.asked.text, signs))
                classes.append(int(not one.case.absent))
                keys.append((one.case.asked.source, one.case.absent))
                weights.append(1 / len(kept))
    whole: defaultdict[tuple[str, bool], float] = defaultdict(float)
    for key, weight in zip(keys, weights, strict=True):
        whole[key] += weight
    shares = [
        weight / whole[key] * _SHARES[key[0]] / 2 * len(rows)
        for key, weight in zip(keys, weights, strict=True)
    ]
    return fit_linear(np.array(rows), classes, count=1, ridge=_RIDGE, weights=np.array(shares))


def _logits(model: LinearModel, one: MeasuredCase) -> list[float]:
    rows = [measure_passage(one.case.asked.text, passage.signs) for passage in one.passages]
    return [float(logit) for (logit,) in model.predict_logits(np.array(rows))] if rows else []


def _answered_logits(
    model: LinearModel, cases: Sequence[MeasuredCase], threshold: float
) -> list[tuple[float, float]]:
    """The best passage's logit, and whether gold is quoted; where the expert lets any through."""
    found = []
    for one in cases:
        passing = [
            (logit, gold)
            for logit, gold in zip(_logits(model, one), one.golds, strict=True)
            if sigmoid(logit) >= threshold
        ]
        if passing:
            right = not one.case.absent and any(gold for _, gold in passing)
            found.append((max(passing)[0], float(right)))
    return found


def choose_threshold(model: LinearModel, cases: Sequence[MeasuredCase]) -> float:
    """Where as large a share of answerable questions is refused as of absent ones is answered.

    Letters do not count: the rule decides there.
    """
    short = [one for one in cases if not has_no_one_subject(one.case.asked.text)]
    best = [(max(map(sigmoid, _logits(model, one)), default=0.0), one.case) for one in short]
    there = [value for value, case in best if not case.absent and case.has_gold]
    absent = [value for value, case in best if case.absent]

    def worst_error(threshold: float) -> float:
        lost = sum(value < threshold for value in there) / len(there)
        return max(lost, sum(value >= threshold for value in absent) / len(absent))

    return min((round(at / 100, 2) for at in range(1, 100)), key=worst_error)


def _count_data(counts: Mapping[str, Mapping[str, int]]) -> tuple[ExpertData, ...]:
    licences = {**LICENCES, LETTERS: "Apache-2.0 (Omni-RAG's train and dev letters of LiveQA)"}
    return tuple(
        ExpertData(
            name=name,
            licence=licence,
            train=counts["train"].get(name, 0),
            dev=counts["dev"].get(name, 0),
            test=EACH["test"].get(name, 0),
        )
        for name, licence in licences.items()
    )

"""Making and measuring the expert `answerable`: a logistic regression over what a gate sees."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from osler.answer.gate import EvidenceGate
from osler.answer.quoting import ANSWERS, QuoteJudge
from osler.evaluate.trained_on import list_questions
from osler.jobs.runner import Progress
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder, MiniLMEncoder, VectorMemory
from osler.retrieve.asked_subject import WholeNaming
from osler.retrieve.experts.answerable import (
    ANSWERABLE,
    FEATURES,
    AnswerableExpert,
    measure_passage,
)
from osler.retrieve.experts.answering import AnswersExpert, sigmoid
from osler.retrieve.experts.cards import WEIGHTS, ExpertCard, ExpertData
from osler.retrieve.experts.linear import LinearModel
from osler.retrieve.experts.searching import SearchRelevance
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.naming import NamingRelevance, SubjectRelevance
from osler.retrieve.relevance import CoverageRelevance, EncoderRelevance, WordRelevance
from osler.train.experts.answerable_figures import GateResult, measure_gates
from osler.train.experts.evidence_cases import (
    LETTERS,
    CaseFinder,
    add_letters,
    packaged_search,
    read_letters,
    read_subject_names,
)
from osler.train.experts.folder import ExpertFolderJob
from osler.train.experts.linear import fit_linear, tensors_of, write_safetensors
from osler.train.experts.measured_cases import (
    QUOTED,
    RULES,
    CaseFile,
    MeasuredCase,
    measure_case,
)
from osler.train.experts.pair_evaluation import fit_platt
from osler.train.experts.pair_questions import BIOASQ, LICENCES, MEDQUAD, PUBMEDQA
from osler.train.experts.searches import (
    RememberedRelevance,
    SearchQuestion,
    choose_share,
    open_corpus,
    read_searches,
)
from osler.train.experts.splits import DataSplit, Part, read_split
from osler.types import Relevance

EACH: Mapping[Part, Mapping[str, int]] = {
    "train": {MEDQUAD: 80, BIOASQ: 36, PUBMEDQA: 16, LETTERS: 40},
    "dev": {MEDQUAD: 60, BIOASQ: 30, PUBMEDQA: 16, LETTERS: 30},
    "test": {MEDQUAD: 60, BIOASQ: 20, PUBMEDQA: 20},
}
"""Most questions of a set in each part."""
_LOOKED_SHARE = 0.25
_LOOKED_AT = {MEDQUAD: 100, BIOASQ: 48, PUBMEDQA: 52}
_SHARES = {MEDQUAD: 0.45, BIOASQ: 0.3, PUBMEDQA: 0.1, LETTERS: 0.15}
"""Weight of each set, whatever its size."""
_RIDGE = 1.0
_KEPT = 0.9
"""Share of letters with an answer that are to be answered."""
_WEAK = (
    "letters and case histories, which have no one subject: nine of ten are to be answered, so most"
    " of those without an answer are as well, and the probability is low",
    "a name that the knowledge base has in passing: what is said of another disease may be cited",
    "an aspect that a page leaves out: a page on the disease counts as evidence for its outlook",
    "textbooks: of the sample's questions it refuses some that the rule answers",
    "its probabilities are for as many answerable questions as absent ones: calibrate it for yours",
    "English only: Chinese questions keep the rule, and have no probability",
)


@dataclass(frozen=True)
class AnswerableJob(ExpertFolderJob):
    """Trains and measures the expert `answerable`."""

    seed: int = 0
    threads: int = 1
    share: float = 1.0
    """Share of the questions, with their documents, that the knowledge base has."""

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Learns on cases of the train part; dev calibrates; both set the threshold."""
        encoder = VectorMemory(MiniLMEncoder(threads=self.threads))
        with self._open_corpus(encoder, progress) as kb:
            learnt, dev = (
                asyncio.run(self._measure_part(kb, encoder, part, None, progress))
                for part in ("train", "dev")
            )
        model = fit_evidence(learnt)
        self.out.mkdir(parents=True, exist_ok=True)
        write_safetensors(tensors_of(model), self.out / WEIGHTS)
        both = [*learnt, *dev]
        threshold, letter_threshold = choose_threshold(model, both), keep_letters(model, both)
        slope, intercept = fit_platt(_answered_logits(model, dev, threshold, letter_threshold))
        counts = {
            part: Counter(one.source for one in c if one.absent)
            for part, c in (("train", learnt), ("dev", dev))
        }
        card = self.start_card(
            ANSWERABLE,
            question="Does what was found answer this question at all?",
            family="linear",
            replaces="thresholds on coverage and on the best sentence's cosine",
            seed=self.seed,
            weak=_WEAK,
            features=FEATURES,
            parameters={
                "ridge": _RIDGE,
                "share": self.share,
                "threshold": threshold,
                "letter_threshold": letter_threshold,
                "slope": round(slope, 4),
                "intercept": round(intercept, 4),
            },
            data=_count_data(counts),
        )
        list_questions(self.out, (one.text for one in learnt))
        return self.write_card(card)

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """Measures on the test part; the card of the folder gets the figures."""
        opened = open_expert(ANSWERABLE, self.out)
        encoder = VectorMemory(MiniLMEncoder(threads=self.threads))
        with self._open_corpus(encoder, progress) as kb:
            cases = asyncio.run(self._measure_part(kb, encoder, "test", limit, progress))
        expert = AnswerableExpert(opened)
        results = [GateResult.of_case(expert, case) for case in cases]
        figures, facts = measure_gates(results)
        update = {"figures": figures, "parameters": {**opened.card.parameters, **facts}}
        return self.write_card(opened.card.model_copy(update=update))

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
        if part == "test" and self.share > _LOOKED_SHARE:
            own = drop_looked_at(own, self.seed)
        own += [
            one for one in read_letters(self.data)[0] if one.id.startswith(f"{LETTERS}:{part}:")
        ]
        chosen: list[SearchQuestion] = []
        for source, most in EACH[part].items():
            of = [one for one in own if one.source == source]
            chosen += Random(self.seed).sample(of, min(most, limit or most, len(of)))
        return chosen

    async def _measure_part(
        self,
        kb: KnowledgeBase,
        encoder: Encoder,
        part: Part,
        limit: int | None,
        progress: Progress | None,
    ) -> list[MeasuredCase]:
        """Measures the cases of a part that the work folder does not hold yet."""
        names, answers = read_subject_names(self.data), read_letters(self.data)[1]
        finder = CaseFinder(kb, encoder, names, answers)
        gate = make_gate(kb, encoder, threads=self.threads)
        chosen, file = self._choose_questions(part, limit), CaseFile(self.work / f"{part}.jsonl")
        missing = file.find_missing(chosen)
        for number, one in enumerate(missing, 1):
            named, cases = names.names_of(one), await finder.find_cases(one)
            rows = [await measure_case(gate, case, named, by_rule=part == "test") for case in cases]
            file.add_cases(rows)
            if progress is not None:
                progress(f"measuring {part}", number, len(missing))
        ids = {one.id for one in chosen}
        return [case for case in file.read_cases() if case.id in ids]


def drop_looked_at(own: Sequence[SearchQuestion], seed: int) -> list[SearchQuestion]:
    """Without the test questions on which earlier forms of the expert were measured."""
    looked = {one.id for one in choose_share(own, _LOOKED_SHARE)}
    for source, most in _LOOKED_AT.items():
        of = [one for one in own if one.source == source]
        looked.update(one.id for one in Random(seed).sample(of, min(most, len(of))))
    return [one for one in own if one.id not in looked]


def make_gate(kb: KnowledgeBase, encoder: Encoder, *, threads: int = 1) -> EvidenceGate:
    """The gate of an application over this knowledge base, without the expert."""
    naming = NamingRelevance(kb.term_rarity)
    near: Relevance = RememberedRelevance(EncoderRelevance(encoder))
    words = WordRelevance(kb.term_rarity)
    return EvidenceGate(
        CoverageRelevance(kb.term_rarity),
        near,
        {"en": RULES["entity gate"]},
        naming=WholeNaming(naming),
        subject=SubjectRelevance(naming),
        search=SearchRelevance(packaged_search(), encoder, words, kb.term_rarity, words),
        judge=QuoteJudge(AnswersExpert(open_expert(ANSWERS), threads=threads)),
    )


def fit_evidence(cases: Sequence[MeasuredCase]) -> LinearModel:
    """Learns to tell gold passages from those that are found when the subject is absent.

    Other passages found for an answerable question are left out: they may answer it as well. Each
    is learnt again without what `answers` says, for it does not judge every question. A set weighs
    as `_SHARES` says, there and absent alike.
    """
    rows, classes, keys, weights = [], [], [], []
    for one in cases:
        kept = [
            signs for signs, gold in zip(one.signs, one.golds, strict=True) if one.absent or gold
        ]
        for passage in kept:
            for signs in (passage, replace(passage, answers=None)):
                rows.append(measure_passage(one.text, signs))
                classes.append(int(not one.absent))
                keys.append((one.source, one.absent))
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
    rows = [measure_passage(one.text, signs) for signs in one.signs]
    return [float(logit) for (logit,) in model.predict_logits(np.array(rows))] if rows else []


def _answered_logits(
    model: LinearModel, cases: Sequence[MeasuredCase], threshold: float, letter_threshold: float
) -> list[tuple[float, float]]:
    """The best passage's logit, and whether gold is among the three best that the expert lets
    through; where it lets any through."""
    found = []
    for one in cases:
        least = letter_threshold if one.is_letter else threshold
        passing = sorted(
            (-logit, gold)
            for logit, gold in zip(_logits(model, one), one.golds, strict=True)
            if sigmoid(logit) >= least
        )
        if passing:
            right = any(gold for _, gold in passing[:QUOTED])
            found.append((-passing[0][0], float(right)))
    return found


def _best_shares(
    model: LinearModel, cases: Sequence[MeasuredCase], *, letters: bool
) -> list[tuple[float, MeasuredCase]]:
    own = [one for one in cases if one.is_letter == letters]
    return [(max(map(sigmoid, _logits(model, one)), default=0.0), one) for one in own]


def choose_threshold(model: LinearModel, cases: Sequence[MeasuredCase]) -> float:
    """Where as large a share of answerable questions is refused as of absent ones is answered.

    Letters do not count: they have a threshold of their own.
    """
    best = _best_shares(model, cases, letters=False)
    there = [value for value, case in best if not case.absent and case.has_gold]
    absent = [value for value, case in best if case.absent]

    def worst_error(threshold: float) -> float:
        lost = sum(value < threshold for value in there) / len(there)
        return max(lost, sum(value >= threshold for value in absent) / len(absent))

    return min((round(at / 100, 2) for at in range(1, 100)), key=worst_error)


def keep_letters(model: LinearModel, cases: Sequence[MeasuredCase]) -> float:
    """The greatest threshold that keeps `_KEPT` of the letters whose answer was found."""
    best = _best_shares(model, cases, letters=True)
    values = sorted(value for value, case in best if not case.absent and case.has_gold)
    return round(values[int((1 - _KEPT) * len(values))], 4) if values else 0.5


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

"""Making and measuring the expert `fuse`: a logistic regression over candidates of searches."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import numpy as np

from osler.errors import ModelError
from osler.evaluate.intervals import difference
from osler.evaluate.intervals import mean as mean_of
from osler.evaluate.metrics.calibration import calibration_error
from osler.evaluate.metrics.retrieval import ndcg
from osler.evaluate.trained_on import list_questions
from osler.jobs.runner import Progress
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder, MiniLMEncoder
from osler.retrieve.experts.cards import (
    CARD,
    WEIGHTS,
    ExpertCard,
    ExpertData,
    ExpertFigure,
    render_card,
)
from osler.retrieve.experts.fusing import (
    FEATURES,
    CandidatePassages,
    FuseExpert,
    find_candidates,
)
from osler.retrieve.experts.linear import LinearModel
from osler.retrieve.experts.shelf import open_expert
from osler.train.experts.linear import fit_linear, tensors_of, write_safetensors
from osler.train.experts.pair_evaluation import figure_of, fit_platt
from osler.train.experts.pair_questions import LICENCES
from osler.train.experts.searches import (
    SearchQuestion,
    choose_share,
    document_name,
    open_corpus,
    read_searches,
)
from osler.train.experts.splits import PARTS, DataSplit, Part, read_split

FUSE = "fuse"
EACH: Mapping[Part, int] = {"train": 500, "dev": 150, "test": 400}
"""Most questions of a set in each part."""
_RIDGE = 1.0
_WEAK = (
    "no better than reciprocal rank fusion on any set that it was measured on",
    "the probability of its first passage is .19 off on average: use the order, not the number",
    "year, trust and kind of source are no features: in the data that it learnt from they are"
    " constant, or tell which set a question is of",
    "the best sentence of a passage is not looked at: encoding sentences costs more than all else",
    "English only: questions in another language are searched by words",
)


@dataclass(frozen=True)
class SearchedQuestion:
    """A question with its candidates, and which of them are gold."""

    question: SearchQuestion
    found: CandidatePassages

    @property
    def gold(self) -> list[bool]:
        return [document_name(one) in self.question.gold for one in self.found.passages]

    def ndcg_of(self, scores: Sequence[float]) -> float:
        """nDCG@10 of documents, each at its best passage."""
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], self.found.passages[i].id))
        names = dict.fromkeys(document_name(self.found.passages[i]) for i in order)
        return ndcg(list(names), dict.fromkeys(self.question.gold, 1), 10)


@dataclass(frozen=True)
class FuseJob:
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

    def _read_parts(self) -> tuple[DataSplit, list[SearchQuestion]]:
        return read_split(self.split), choose_share(read_searches(self.data), self.share)

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Learns the order of train questions' candidates; dev makes probabilities of it."""
        split, questions = self._read_parts()
        encoder = MiniLMEncoder(threads=self.threads)
        with open_corpus(self.data, self.work, encoder, questions, progress) as kb:
            learnt = self._search_part(kb, encoder, split, questions, "train", progress)
            dev = self._search_part(kb, encoder, split, questions, "dev", progress)
        model = calibrate_ranker(fit_ranker(learnt), dev)
        self.out.mkdir(parents=True, exist_ok=True)
        write_safetensors(tensors_of(model), self.out / WEIGHTS)
        card = ExpertCard(
            name=FUSE,
            question="How likely does this passage support an answer?",
            family="linear",
            replaces="reciprocal rank fusion, 1 : 0.7",
            languages=("en",),
            made="osler experts train fuse --data FOLDER --split FILE --out FOLDER",
            seed=self.seed,
            date=datetime.now(UTC).date().isoformat(),
            split=hashlib.sha256(self.split.read_bytes()).hexdigest(),
            weights=hashlib.sha256((self.out / WEIGHTS).read_bytes()).hexdigest(),
            weak=_WEAK,
            features=FEATURES,
            parameters={"ridge": _RIDGE, "share": self.share},
            data=_count_searches(split, questions),
        )
        list_questions(self.out, (one.question.text for one in learnt))
        self._write_card(card)
        error = calibration_of(FuseExpert(open_expert(FUSE, self.out)), dev)
        return self._write_card(
            card.model_copy(update={"parameters": {**card.parameters, **error}})
        )

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """Measures on the test part; the card of the folder gets the figures."""
        split, questions = self._read_parts()
        opened = open_expert(FUSE, self.out)
        expert = FuseExpert(opened)
        encoder = MiniLMEncoder(threads=self.threads)
        with open_corpus(self.data, self.work, encoder, questions, progress) as kb:
            test = self._search_part(kb, encoder, split, questions, "test", progress, limit)
        figures = [
            _compare(source, rule, [one for one in test if one.question.source == source], expert)
            for source in dict.fromkeys(one.question.source for one in test)
            for rule in RULES
        ]
        error = {name.replace("dev", "test"): v for name, v in calibration_of(expert, test).items()}
        update = {"figures": tuple(figures), "parameters": {**opened.card.parameters, **error}}
        return self._write_card(opened.card.model_copy(update=update))

    def _search_part(
        self,
        kb: KnowledgeBase,
        encoder: Encoder,
        split: DataSplit,
        questions: Sequence[SearchQuestion],
        part: Part,
        progress: Progress | None,
        limit: int | None = None,
    ) -> list[SearchedQuestion]:
        chosen = _sample_each(
            split.choose_items(questions, part), min(EACH[part], limit or EACH[part]), self.seed
        )
        found = []
        for number, one in enumerate(chosen, 1):
            found.append(SearchedQuestion(one, find_candidates(kb, encoder, one.text)))
            if progress is not None:
                progress(f"searching {part}", number, len(chosen))
        return found

    def _write_card(self, card: ExpertCard) -> ExpertCard:
        (self.out / CARD).write_text(render_card(card), encoding="utf-8")
        return card


def _sample_each(questions: Sequence[SearchQuestion], most: int, seed: int) -> list[SearchQuestion]:
    chosen: list[SearchQuestion] = []
    for source in dict.fromkeys(one.source for one in questions):
        own = [one for one in questions if one.source == source]
        chosen += Random(seed).sample(own, min(most, len(own)))
    return chosen


def fit_ranker(searched: Sequence[SearchedQuestion]) -> LinearModel:
    """Learns which of two candidates of one question is gold (RankNet's loss, linear).

    Differences between gold and other candidates, each both ways; a question weighs as much as
    any other of its set, and a set as much as any other. Questions whose gold was not found, or
    with nothing else found, are left out: they have no order to learn.
    """
    kept = [one for one in searched if 0 < sum(one.gold) < len(one.gold)]
    counts = Counter(one.question.source for one in kept)
    pairs, weights = [], []
    for one in kept:
        gold = np.array(one.gold)
        apart = one.found.rows[gold][:, None] - one.found.rows[~gold][None]
        flat = apart.reshape(-1, len(FEATURES))
        pairs.append(flat)
        weights.append(np.full(len(flat), 1 / len(flat) / counts[one.question.source]))
    rows, share = np.vstack(pairs), np.concatenate(weights) * len(kept) / len(counts)
    classes = [1] * len(rows) + [0] * len(rows)
    both = np.concatenate([share, share]) / 2
    return fit_linear(np.vstack([rows, -rows]), classes, count=1, ridge=_RIDGE, weights=both)


def calibrate_ranker(model: LinearModel, dev: Sequence[SearchedQuestion]) -> LinearModel:
    """The same order with probabilities, by Platt's scaling on the candidates of dev."""
    flat = [
        (float(logit), float(right))
        for one in dev
        for (logit,), right in zip(model.predict_logits(one.found.rows), one.gold, strict=True)
    ]
    slope, intercept = fit_platt(flat)
    if slope <= 0:
        raise ModelError("the order that was learnt is none on the dev part", fix="use more data")
    return LinearModel(
        model.mean, model.scale, model.weights * slope, model.bias * slope + intercept
    )


def score_hybrid(found: CandidatePassages) -> list[float]:
    """The rule: reciprocal ranks of both rankings, 1 : 0.7."""
    return [a + 0.7 * b for a, b in zip(*_reciprocals(found), strict=True)]


def score_vector(found: CandidatePassages) -> list[float]:
    """The ranking by vector alone."""
    return _reciprocals(found)[0]


def score_turns(found: CandidatePassages) -> list[float]:
    """Sources by turn, each in the hybrid order: what a plan over all sources reads."""
    hybrid = score_hybrid(found)
    place: Counter[str] = Counter()
    scores = [0.0] * len(hybrid)
    for i in sorted(range(len(hybrid)), key=lambda i: (-hybrid[i], found.passages[i].id)):
        source = found.passages[i].source
        place[source] += 1
        # Of two at the same turn the source that comes first by name is read first.
        scores[i] = -(place[source] + (0.0 if source == "research" else 0.5))
    return scores


def _reciprocals(found: CandidatePassages) -> tuple[list[float], list[float]]:
    vector, words = (
        found.rows[:, FEATURES.index(f"reciprocal rank by {name}")] for name in ("vector", "words")
    )
    return [float(one) for one in vector], [float(one) for one in words]


RULES: Mapping[str, Callable[[CandidatePassages], list[float]]] = {
    "hybrid 1 : 0.7": score_hybrid,
    "vector alone": score_vector,
    "sources by turn": score_turns,
}


def _compare(
    source: str, rule: str, test: Sequence[SearchedQuestion], expert: FuseExpert
) -> ExpertFigure:
    ours = [one.ndcg_of(expert.weigh_candidates(one.found.rows)) for one in test]
    theirs = [one.ndcg_of(RULES[rule](one.found)) for one in test]
    return ExpertFigure(
        on=f"test: {source}",
        measure="nDCG@10",
        n=len(test),
        expert=figure_of(mean_of(ours)),
        rule=rule,
        rule_figure=figure_of(mean_of(theirs)),
        gain=figure_of(difference(theirs, ours)),
    )


def calibration_of(expert: FuseExpert, searched: Sequence[SearchedQuestion]) -> dict[str, float]:
    """Calibration error of the first candidate's probability, as an answer would show it."""
    sure, right = [], []
    for one in searched:
        shares = expert.weigh_candidates(one.found.rows)
        if shares:
            best = int(np.argmax(shares))
            sure.append(shares[best])
            right.append(float(one.gold[best]))
    return {"dev_ece_of_first": round(calibration_error(sure, right), 4)}


def _count_searches(
    split: DataSplit, questions: Sequence[SearchQuestion]
) -> tuple[ExpertData, ...]:
    counts = Counter((one.source, split.part_of(one)) for one in questions)
    return tuple(
        ExpertData(
            name=name,
            licence=LICENCES[name],
            **{part: min(counts[name, part], EACH[part]) for part in PARTS},
        )
        for name in dict.fromkeys(one.source for one in questions)
    )

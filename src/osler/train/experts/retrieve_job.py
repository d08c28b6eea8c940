"""Making and measuring the expert `retrieve`: a map of queries, and one order over candidates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from osler.errors import ModelError
from osler.evaluate.intervals import difference
from osler.evaluate.intervals import mean as mean_of
from osler.evaluate.metrics.calibration import calibration_error
from osler.evaluate.metrics.retrieval import ndcg, reciprocal_rank
from osler.evaluate.trained_on import list_questions
from osler.jobs.runner import Progress
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder, MiniLMEncoder
from osler.kb.search.vectors import load_vectors
from osler.retrieve.experts.cards import (
    WEIGHTS,
    ExpertCard,
    ExpertData,
    ExpertFigure,
)
from osler.retrieve.experts.linear import LinearModel
from osler.retrieve.experts.searching import (
    FEATURES,
    RETRIEVE,
    QueryMap,
    SearchCandidates,
    SearchExpert,
    find_candidates,
)
from osler.retrieve.experts.shelf import BASE, open_expert
from osler.retrieve.hybrid import HybridRetriever
from osler.retrieve.words import content_terms
from osler.train.experts.folder import ExpertFolderJob
from osler.train.experts.letters import LETTERS, LICENCE, read_letters
from osler.train.experts.linear import fit_linear, tensors_of, write_safetensors
from osler.train.experts.pair_evaluation import figure_of, fit_platt
from osler.train.experts.pair_questions import BIOASQ, LICENCES, MEDQUAD, PUBMEDQA
from osler.train.experts.query_map import MapQuestion, MapRecipe, fit_query_map
from osler.train.experts.searches import (
    SearchQuestion,
    choose_share,
    document_name,
    open_corpus,
    read_searches,
)
from osler.train.experts.splits import PARTS, Part, read_split

if TYPE_CHECKING:
    from osler.kb.encoders.base import Vectors

SHARES: Mapping[str, float] = {MEDQUAD: 0.5, BIOASQ: 0.25, PUBMEDQA: 0.15, LETTERS: 0.1}
"""How often a question of each set is drawn."""
EACH: Mapping[Part, int] = {"train": 350, "dev": 150, "test": 1_000}
"""Most questions of a set that are searched: for the order, its calibration, the figures."""
PLAIN = "hybrid 1 : 0.7, plain queries"
_RIDGE, _DEPTH, _PAIRS = 1.0, 64, 400
_WEAK = (
    "its probabilities are of single passages: a low one does not say that nothing answers",
    "letters were learnt from few, in most of which the subject was swapped for another",
    "English only: questions in another language are searched by words",
    "for another encoder than the packaged one it means nothing, and is not used",
)


@dataclass(frozen=True)
class SearchedQuestion:
    """A question with its candidates and their documents."""

    question: SearchQuestion
    found: SearchCandidates
    documents: Sequence[str]

    @property
    def gold(self) -> list[bool]:
        return [name in self.question.gold for name in self.documents]


@dataclass(frozen=True)
class RetrieveJob(ExpertFolderJob):
    """Trains and measures the expert `retrieve`."""

    recipe: MapRecipe = field(default_factory=MapRecipe)
    threads: int = 1
    share: float = 1.0
    """Share of the questions, with their documents, that the knowledge base has."""

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Fits the map, then the order of what is found with it; dev makes probabilities of it."""
        parts, encoder = self._read_parts(), self._encoder()
        with self._open_corpus(encoder, progress) as kb:
            turned = self._fit_map(kb, encoder, parts["train"], progress)
            learnt = self._search_part(kb, encoder, turned, parts["train"], "train", progress)
            dev = self._search_part(kb, encoder, turned, parts["dev"], "dev", progress)
        order = calibrate_order(fit_order(learnt), dev)
        self.out.mkdir(parents=True, exist_ok=True)
        small = {name: getattr(turned, name).astype(np.float16) for name in ("down", "up", "shift")}
        write_safetensors({**tensors_of(order), **small}, self.out / WEIGHTS)
        card = self.start_card(
            RETRIEVE,
            question="Where does the answer to this question lie among all passages?",
            family="search",
            replaces="the encoder's own vectors of queries, and reciprocal rank fusion, 1 : 0.7",
            seed=self.recipe.seed,
            base=BASE,
            default=True,
            weak=_WEAK,
            features=FEATURES,
            parameters={
                "rank": self.recipe.rank,
                "steps": self.recipe.steps,
                "ridge": _RIDGE,
                "share": self.share,
            },
            data=_count_questions(parts),
        )
        list_questions(self.out, (one.text for one in parts["train"]))
        self.write_card(card)
        error = _calibration_of(SearchExpert(open_expert(RETRIEVE, self.out)), dev)
        parameters = {**card.parameters, "dev_ece_of_first": error}
        return self.write_card(card.model_copy(update={"parameters": parameters}))

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """Measures on the test part; the card of the folder gets the figures."""
        opened, encoder = open_expert(RETRIEVE, self.out), self._encoder()
        expert = SearchExpert(opened)
        questions = sample_each(self._read_parts()["test"], min(EACH["test"], limit or 10**6), 0)
        with self._open_corpus(encoder, progress) as kb:
            ranked = {
                name: _rank_documents(HybridRetriever(kb, encoder, expert=one), questions, progress)
                for name, one in ((PLAIN, None), (RETRIEVE, expert))
            }
        figures = []
        for source in dict.fromkeys(one.source for one in questions):
            own = [n for n, one in enumerate(questions) if one.source == source]
            for measure in ("nDCG@10", "MRR@10"):
                ours, theirs = (
                    [_measure(measure, ranked[name][n], questions[n].gold) for n in own]
                    for name in (RETRIEVE, PLAIN)
                )
                figures.append(
                    ExpertFigure(
                        on=f"test: {source}",
                        measure=measure,
                        n=len(own),
                        expert=figure_of(mean_of(ours)),
                        rule=PLAIN,
                        rule_figure=figure_of(mean_of(theirs)),
                        gain=figure_of(difference(theirs, ours)),
                    )
                )
        return self.write_card(opened.card.model_copy(update={"figures": tuple(figures)}))

    def _encoder(self) -> Encoder:
        return MiniLMEncoder(threads=self.threads)

    def _open_corpus(self, encoder: Encoder, progress: Progress | None) -> KnowledgeBase:
        questions = choose_share(read_searches(self.data), self.share)
        return open_corpus(self.data, self.work, encoder, questions, progress)

    def _read_parts(self) -> dict[Part, list[SearchQuestion]]:
        split, questions = (
            read_split(self.split),
            choose_share(read_searches(self.data), self.share),
        )
        parts = {part: split.choose_items(questions, part) for part in PARTS}
        for part, letters in read_letters(self.data, split, self.recipe.seed).items():
            parts[part] += letters
        return parts

    def _fit_map(
        self,
        kb: KnowledgeBase,
        encoder: Encoder,
        questions: Sequence[SearchQuestion],
        progress: Progress | None,
    ) -> QueryMap:
        """Fits the map over the passages of no document that is held out."""
        held_in = {name for one in questions for name in one.gold}
        vectors, names = _read_passages(kb, encoder, held_in)
        rows: dict[str, list[int]] = defaultdict(list)
        for row, name in enumerate(names):
            rows[name].append(row)
        asked: dict[str, list[MapQuestion]] = defaultdict(list)
        for number, one in enumerate(questions):
            if gold := tuple(tuple(rows[name]) for name in sorted(one.gold) if name in rows):
                asked[one.source].append(MapQuestion(number, gold))
        queries = encoder.encode([one.text for one in questions], kind="query")
        return fit_query_map(queries, vectors, asked, SHARES, self.recipe, progress)

    def _search_part(
        self,
        kb: KnowledgeBase,
        encoder: Encoder,
        turned: QueryMap,
        questions: Sequence[SearchQuestion],
        part: Part,
        progress: Progress | None,
    ) -> list[SearchedQuestion]:
        chosen = sample_each(questions, EACH[part], self.recipe.seed)
        found = []
        for number, one in enumerate(chosen, 1):
            vector = turned.turn_queries(encoder.encode([one.text], kind="query"))[0]
            dense, lexical = kb.rank_by_both(
                content_terms(one.text), vector, encoder=encoder.identity, k=_DEPTH
            )
            candidates = find_candidates(kb, one.text, vector, dense, lexical)
            passages = kb.get_passages(candidates.numbers)
            names = [document_name(passages[n]) for n in candidates.numbers]
            found.append(SearchedQuestion(one, candidates, names))
            if progress is not None:
                progress(f"searching {part}", number, len(chosen))
        return found


def _read_passages(
    kb: KnowledgeBase, encoder: Encoder, held_in: set[str]
) -> tuple[Vectors, list[str]]:
    """Vectors and documents of the passages of these documents."""
    with kb.readers.borrow() as db:
        every = load_vectors(db, encoder.dimension)
    passages = kb.get_passages(every.numbers.tolist())
    names = [document_name(passages[number]) for number in every.numbers.tolist()]
    kept = [row for row, name in enumerate(names) if name in held_in]
    return every.matrix[kept], [names[row] for row in kept]


def sample_each(questions: Sequence[SearchQuestion], most: int, seed: int) -> list[SearchQuestion]:
    """At most so many of each set."""
    chosen: list[SearchQuestion] = []
    for source in dict.fromkeys(one.source for one in questions):
        own = [one for one in questions if one.source == source]
        chosen += Random(seed).sample(own, min(most, len(own)))
    return chosen


def fit_order(searched: Sequence[SearchedQuestion]) -> LinearModel:
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
        flat = apart.reshape(-1, len(FEATURES))[:: max(1, apart.size // len(FEATURES) // _PAIRS)]
        pairs.append(flat)
        weights.append(np.full(len(flat), 1 / len(flat) / counts[one.question.source]))
    rows, share = np.vstack(pairs), np.concatenate(weights) * len(kept) / len(counts)
    classes = [1] * len(rows) + [0] * len(rows)
    both = np.concatenate([share, share]) / 2
    return fit_linear(np.vstack([rows, -rows]), classes, count=1, ridge=_RIDGE, weights=both)


def calibrate_order(model: LinearModel, dev: Sequence[SearchedQuestion]) -> LinearModel:
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


def _rank_documents(
    found: HybridRetriever, questions: Sequence[SearchQuestion], progress: Progress | None
) -> list[list[str]]:
    """The documents that are found for each question, each at its best passage."""
    ranked = []
    for number, one in enumerate(questions, 1):
        hits = found.search_index(one.text, _DEPTH)
        ranked.append(list(dict.fromkeys(document_name(hit.passage) for hit in hits))[:10])
        if progress is not None:
            progress("searching test", number, len(questions))
    return ranked


def _measure(name: str, ranked: Sequence[str], gold: frozenset[str]) -> float:
    grades = dict.fromkeys(gold, 1)
    return ndcg(ranked, grades, 10) if name == "nDCG@10" else reciprocal_rank(ranked, grades)


def _calibration_of(expert: SearchExpert, searched: Sequence[SearchedQuestion]) -> float:
    """Calibration error of the first candidate's probability."""
    sure, right = [], []
    for one in searched:
        shares = expert.weigh_rows(one.found.rows)
        best = int(np.argmax(shares))
        sure.append(shares[best])
        right.append(float(one.gold[best]))
    return round(calibration_error(sure, right), 4)


def _count_questions(parts: Mapping[Part, Sequence[SearchQuestion]]) -> tuple[ExpertData, ...]:
    counts = Counter((one.source, part) for part, several in parts.items() for one in several)
    licences = {**LICENCES, LETTERS: LICENCE}
    return tuple(
        ExpertData(
            name=name, licence=licences[name], **{part: counts[name, part] for part in PARTS}
        )
        for name in SHARES
        if any(counts[name, part] for part in PARTS)
    )

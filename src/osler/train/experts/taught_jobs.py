"""Making and measuring the judge and `match`, from data as published and labels to a folder with a
card. Both learn from the same cases, and from one teacher."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from osler.errors import BadConfig
from osler.evaluate.intervals import difference, mean
from osler.evaluate.trained_on import list_questions
from osler.jobs.runner import Progress
from osler.kb.encoders.base import Encoder, MiniLMEncoder
from osler.retrieve.experts.cards import ExpertCard, ExpertData, ExpertFigure
from osler.retrieve.experts.judge import JUDGE, JudgeExpert
from osler.retrieve.experts.matching import MATCH, MatchEncoder
from osler.retrieve.experts.shelf import BASE, ShelvedExpert, open_expert
from osler.train.experts.folder import ExpertFolderJob, figure_of, write_shards
from osler.train.experts.judge_cases import (
    COVIDQA,
    LABELLED,
    SEARCHED,
    UNLABELLED,
    JudgedCase,
    covid_cases,
    open_texts,
    pair_cases,
    part_of_document,
    read_labels,
)
from osler.train.experts.pair_questions import LICENCES, PairQuestion, read_pair_questions
from osler.train.experts.row_training import train_rows
from osler.train.experts.splits import PARTS, Part, read_split
from osler.train.experts.students import JudgeModel, JudgeRecipe, MatchModel, MatchRecipe
from osler.train.experts.teacher import Teacher
from osler.train.experts.tuned_models import Machine, RowRecipe, TunedMiniLM
from osler.train.experts.unlabelled import QUESTIONS, read_unlabelled

LABELS = "judge_labels*.jsonl"
"""Names of the files of labels, beside the split."""
PARAMETERS = {
    "ordered": 0.05,
    "bias": -1.0,
    "relevance": 1.0,
    "judged": 0.4,
    "failed": 1.6,
    "margin": 2.0,
    "check": 0.35,
}
"""Before `osler eval natural --fit` has fitted them."""
_JUDGE_WEAK = (
    "English only: Chinese questions keep the cosine",
    "it judges whether a sentence answers, not whether it is true",
    "what a text is about it knows by names and words; checks of names stand beside it",
)
_MATCH_WEAK = (
    "English only",
    "it knows what a sentence is about, not whether it is true",
    "an amount, a name or a direction of another kind lies near; checks stand beside it",
)
_LABELS = "texts CC BY 4.0 or free, questions and labels Apache-2.0"
SETS: Mapping[str, str] = {
    **LICENCES,
    COVIDQA: "Apache-2.0",
    **dict.fromkeys((LABELLED, SEARCHED, UNLABELLED), _LABELS),
}
"""The sets by their licences, in the order of a card."""
CaseScores = Callable[[JudgedCase], Sequence[float]]


@dataclass(frozen=True)
class TaughtJob(ExpertFolderJob, ABC):
    """Trains and measures one of the two."""

    machine: Machine = field(default_factory=Machine)
    teacher: Teacher | None = None
    """Trained once for both in the same folder `work`; without one the judge learns from labels
    alone."""

    steps: int | None = None
    """Instead of the recipe's."""
    seed: int = 0
    name: ClassVar[str]
    usual: ClassVar[RowRecipe]
    facts: ClassVar[Mapping[str, Any]]
    """What its card says, whatever it was trained on."""

    @property
    def recipe(self) -> RowRecipe:
        steps = self.steps or self.usual.steps
        return replace(self.usual, steps=steps, seed=self.seed)

    @abstractmethod
    def make_model(self) -> TunedMiniLM:
        """The model that learns."""

    @abstractmethod
    def score_with(self, expert: ShelvedExpert) -> CaseScores:
        """What the trained expert makes of a case's sentences."""

    def read_cases(self, part: Part) -> list[JudgedCase]:
        """The cases of a part of all sets. Raises `BadConfig` for a split of other data."""
        chosen = read_split(self.split).choose_items(read_pair_questions(self.data), part)
        cases = pair_cases([one for one in chosen if not _is_navigation(one)])
        cases += [one for one in covid_cases(self.data) if part_of_document(one.document) == part]
        labels = sorted(self.split.parent.glob(LABELS))
        if not labels and part == "train":
            lacking = self.split.parent / LABELS
            raise BadConfig(f"{lacking} is not there", fix="give the split of the benchmarks")
        if labels:
            with open_texts(self.data, self.work) as kb:
                for path in labels:
                    cases += read_labels(path, kb, part, self.data)
        return cases

    def read_learnt(self, progress: Progress | None = None) -> list[JudgedCase]:
        """What is trained on: the train part, and with a teacher also what nobody labelled."""
        self.work.mkdir(parents=True, exist_ok=True)
        cases = self.read_cases("train")
        if self.teacher is None:
            return cases
        with open_texts(self.data, self.work) as kb:
            cases += read_unlabelled(self.split.parent / QUESTIONS, kb, read_split(self.split))
        return self.teacher.teach_cases(cases, self.work, self.machine, progress)

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Trains on the train part. Writes weights and card."""
        learnt = self.read_learnt(progress)
        # What was learnt from labels alone is not gone on with beside a teacher.
        work = self.work / (f"{self.name}-taught" if self.teacher else self.name)
        model = train_rows(self.make_model(), learnt, work, progress=progress)
        hashes = write_shards(model.export_deltas(), self.out)
        list_questions(self.out, (one.question for one in learnt))
        cases = {part: self.read_cases(part) for part in PARTS} | {"train": learnt}
        card = self.start_card(
            self.name,
            made=self._made,
            seed=self.seed,
            base=BASE,
            weights=hashes[0],
            further=tuple(hashes[1:]),
            default=True,
            data=_count_cases(cases),
            **self.facts,
        )
        return self.write_card(card)

    @property
    def _made(self) -> str:
        taught = " --teacher FOLDER" if self.teacher else ""
        return f"osler experts train {self.name} --data FOLDER --split FILE --out FOLDER{taught}"

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """Share of test questions whose answering sentence stands first among those of its case,
        beside the cosine; the figures go onto the card."""
        expert = open_expert(self.name, self.out)
        scores = self.score_with(expert)
        figures = _measure_first(self.read_cases("test"), scores, limit, progress)
        return self.write_card(expert.card.model_copy(update={"figures": figures}))


@dataclass(frozen=True)
class JudgeJob(TaughtJob):
    """Trains and measures the judge."""

    name = JUDGE
    usual = JudgeRecipe()
    facts: ClassVar[Mapping[str, Any]] = {
        "question": "Does this sentence, where it stands, answer this question?",
        "family": "pair",
        "replaces": "the cosine of question and sentence",
        "weak": _JUDGE_WEAK,
        "parameters": PARAMETERS,
    }

    def make_model(self) -> JudgeModel:
        return JudgeModel(self.recipe, self.machine)

    def score_with(self, expert: ShelvedExpert) -> CaseScores:
        judge = JudgeExpert(expert, threads=self.machine.threads)

        def score_case(case: JudgedCase) -> Sequence[float]:
            return judge.score_lines(case.question, [text.to_line() for text in case.texts])

        return score_case


@dataclass(frozen=True)
class MatchJob(TaughtJob):
    """Trains and measures the encoder `match`."""

    name = MATCH
    usual = MatchRecipe()
    facts: ClassVar[Mapping[str, Any]] = {
        "question": "How near does this sentence lie to what would answer this question?",
        "family": "encoder",
        "replaces": "the cosine of question and sentence",
        "weak": _MATCH_WEAK,
    }

    def make_model(self) -> MatchModel:
        return MatchModel(self.recipe, self.machine)

    def read_learnt(self, progress: Progress | None = None) -> list[JudgedCase]:
        """Raises `BadConfig` without a teacher."""
        if self.teacher is None:
            raise BadConfig("the encoder `match` learns from a larger one", fix="give --teacher")
        return super().read_learnt(progress)

    def score_with(self, expert: ShelvedExpert) -> CaseScores:
        return _score_by_cosine(MatchEncoder(expert, threads=self.machine.threads))


def _count_cases(found: Mapping[Part, Sequence[JudgedCase]]) -> tuple[ExpertData, ...]:
    """The cases of each part by set, for a card."""
    counts = Counter((one.source, part) for part, cases in found.items() for one in cases)
    return tuple(
        ExpertData(name=name, licence=licence, **{p: counts[name, p] for p in PARTS})
        for name, licence in SETS.items()
        if any(counts[name, p] for p in PARTS)
    )


def _score_by_cosine(encoder: Encoder) -> CaseScores:
    """The cosines of a case's sentences, each under its heading, with its question."""

    def score_case(case: JudgedCase) -> Sequence[float]:
        asked = encoder.encode([case.question], kind="query")[0]
        said = [f"{text.heading}. {text.sentence}" for text in case.texts]
        return [float(one) for one in encoder.encode(said, kind="passage") @ asked]

    return score_case


def _measure_first(
    cases: Sequence[JudgedCase],
    score_case: CaseScores,
    limit: int | None,
    progress: Progress | None,
) -> tuple[ExpertFigure, ...]:
    """For each set, at most `limit` cases of it: the share of the cases whose answering sentence
    stands first, beside the packaged encoder's cosine."""
    rule = _score_by_cosine(MiniLMEncoder())
    cases = [one for one in cases if 1.0 in one.worth and 0.0 in one.worth]
    figures = []
    for name in SETS:
        own = [one for one in cases if one.source == name]
        own = own[:: max(1, len(own) // limit)][:limit] if limit else own
        ours, theirs = [], []
        for number, case in enumerate(own, 1):
            ours.append(_is_first(case, score_case(case)))
            theirs.append(_is_first(case, rule(case)))
            if progress is not None:
                progress(f"measuring {name}", number, len(own))
        if own:
            figures.append(
                ExpertFigure(
                    on=f"{name}, test",
                    measure="an answering sentence is first",
                    n=len(own),
                    expert=figure_of(mean(ours)),
                    rule="cosine",
                    rule_figure=figure_of(mean(theirs)),
                    gain=figure_of(difference(theirs, ours)),
                )
            )
    return tuple(figures)


def _is_navigation(one: PairQuestion) -> bool:
    """Whether a list of links is its answer: no quote should be one."""
    return one.right[0].text.startswith("These resources address")


def _is_first(case: JudgedCase, scores: Sequence[float]) -> float:
    return float(case.worth[max(range(len(scores)), key=scores.__getitem__)] == 1)

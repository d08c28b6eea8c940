"""Making and measuring the judge, from data as published and labels to a folder with its card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from osler.errors import BadConfig
from osler.evaluate.intervals import difference, mean
from osler.evaluate.trained_on import list_questions
from osler.jobs.runner import Progress
from osler.kb.encoders.base import Encoder, MiniLMEncoder
from osler.llm.transformers.hub import import_extra
from osler.retrieve.experts.cards import ExpertCard, ExpertData, ExpertFigure
from osler.retrieve.experts.judge import JUDGE, JudgeExpert
from osler.retrieve.experts.shelf import BASE, open_expert
from osler.train.experts.folder import ExpertFolderJob
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
from osler.train.experts.judge_training import JudgeModel, JudgeRecipe, train_judge
from osler.train.experts.linear import figure_of, write_shards
from osler.train.experts.pair_questions import LICENCES, PairQuestion, read_pair_questions
from osler.train.experts.splits import (
    PARTS,
    DataSplit,
    Part,
    make_split,
    read_split,
    write_split,
)
from osler.train.experts.teacher import Teacher
from osler.train.experts.tuned_models import Machine
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
_WEAK = (
    "English only: Chinese questions keep the cosine",
    "it judges whether a sentence answers, not whether it is true",
    "what a text is about it knows by names and words; checks of names stand beside it",
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
class JudgeJob(ExpertFolderJob):
    """Trains and measures the judge."""

    recipe: JudgeRecipe = field(default_factory=JudgeRecipe)
    machine: Machine = field(default_factory=Machine)
    teacher: Teacher | None = None
    """Without one the judge learns from labels alone."""

    @property
    def labels(self) -> list[Path]:
        return sorted(self.split.parent.glob(LABELS))

    def read_cases(self, part: Part) -> list[JudgedCase]:
        """The cases of a part of all sets. Raises `BadConfig` for a split of other data."""
        split, questions = self._read_split()
        chosen = split.choose_items(questions, part)
        cases = pair_cases([one for one in chosen if not _is_navigation(one)])
        cases += [one for one in covid_cases(self.data) if part_of_document(one.document) == part]
        if self.labels:
            with open_texts(self.data, self.work) as kb:
                for path in self.labels:
                    cases += read_labels(path, kb, part, self.data)
        elif part == "train":
            lacking = self.split.parent / LABELS
            raise BadConfig(f"{lacking} is not there", fix="give the split of the benchmarks")
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

    def _read_split(self) -> tuple[DataSplit, list[PairQuestion]]:
        questions = read_pair_questions(self.data)
        if not self.split.is_file():
            write_split(make_split(questions), self.split)
        return read_split(self.split), questions

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Trains on the train part; dev is followed for the log. Writes weights and card."""
        learnt, dev = self.read_learnt(progress), self.read_cases("dev")
        followed = [one for one in dev if one.source == LABELLED][:100] or dev[:100]
        model = train_judge(
            learnt,
            self.recipe,
            # What was learnt from labels alone is not gone on with beside a teacher.
            self.work / (f"{JUDGE}-taught" if self.teacher else JUDGE),
            progress=progress,
            measure_dev=lambda model: _dev_accuracy(model, followed),
            machine=self.machine,
        )
        hashes = write_shards(model.export_deltas(), self.out)
        card = self.start_card(
            JUDGE,
            made=made_by(JUDGE, self.teacher),
            question="Does this sentence, where it stands, answer this question?",
            family="pair",
            replaces="the cosine of question and sentence",
            seed=self.recipe.seed,
            base=BASE,
            weights=hashes[0],
            further=tuple(hashes[1:]),
            weak=_WEAK,
            default=True,
            parameters=PARAMETERS,
            data=count_cases({"train": learnt, "dev": dev, "test": self.read_cases("test")}),
        )
        list_questions(self.out, (one.question for one in (*learnt, *dev)))
        return self.write_card(card)

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """Share of test questions whose answering sentence stands first among those of its case,
        beside the cosine; the figures go onto the card."""
        judge = JudgeExpert(open_expert(JUDGE, self.out), threads=self.machine.threads)

        def score_case(case: JudgedCase) -> Sequence[float]:
            return judge.score_lines(case.question, [text.to_line() for text in case.texts])

        figures = measure_first(self.read_cases("test"), score_case, limit, progress)
        card = open_expert(JUDGE, self.out).card
        return self.write_card(card.model_copy(update={"figures": figures}))


def made_by(name: str, teacher: Teacher | None) -> str:
    """The command that makes an expert again, for its card."""
    taught = " --teacher FOLDER" if teacher else ""
    return f"osler experts train {name} --data FOLDER --split FILE --out FOLDER{taught}"


def count_cases(found: Mapping[Part, Sequence[JudgedCase]]) -> tuple[ExpertData, ...]:
    """The cases of each part by set, for a card."""
    counts = Counter((one.source, part) for part, cases in found.items() for one in cases)
    return tuple(
        ExpertData(name=name, licence=licence, **{p: counts[name, p] for p in PARTS})
        for name, licence in SETS.items()
        if any(counts[name, p] for p in PARTS)
    )


def score_by_cosine(encoder: Encoder) -> CaseScores:
    """The cosines of a case's sentences, each under its heading, with its question."""

    def score_case(case: JudgedCase) -> Sequence[float]:
        asked = encoder.encode([case.question], kind="query")[0]
        said = [f"{text.heading}. {text.sentence}" for text in case.texts]
        return [float(one) for one in encoder.encode(said, kind="passage") @ asked]

    return score_case


def measure_first(
    cases: Sequence[JudgedCase],
    score_case: CaseScores,
    limit: int | None,
    progress: Progress | None,
) -> tuple[ExpertFigure, ...]:
    """For each set, at most `limit` cases of it: the share of the cases whose answering sentence
    stands first, beside the packaged encoder's cosine."""
    rule = score_by_cosine(MiniLMEncoder())
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


def _dev_accuracy(model: JudgeModel, cases: Sequence[JudgedCase]) -> float:
    """Share of the cases with an answering sentence that have one first."""
    torch = import_extra("torch")
    firsts = []
    with torch.no_grad():
        for case in cases:
            if 1.0 in case.worth and 0.0 in case.worth:
                scores = model.score_pairs([(case.question, text) for text in case.texts])
                firsts.append(_is_first(case, scores.tolist()))
    return sum(firsts) / max(1, len(firsts))

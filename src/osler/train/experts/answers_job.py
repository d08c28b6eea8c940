"""Making and measuring the expert `answers`, from data as published to a folder with its card."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from osler.evaluate.trained_on import list_questions
from osler.jobs.runner import Progress
from osler.kb.encoders.base import MiniLMEncoder
from osler.llm.transformers.hub import import_extra
from osler.retrieve.experts.answer_cues import FEATURES
from osler.retrieve.experts.answering import AnswersExpert
from osler.retrieve.experts.cards import ExpertCard, ExpertData
from osler.retrieve.experts.pair_input import LONGEST
from osler.retrieve.experts.shelf import BASE, open_expert
from osler.train.experts.answer_fit import fit_tensors, neutral_tensors
from osler.train.experts.folder import ExpertFolderJob
from osler.train.experts.hard_negatives import add_hard_negatives
from osler.train.experts.linear import write_shards
from osler.train.experts.pair_evaluation import (
    PairCase,
    calibration_facts,
    compare_scores,
    cosine_score,
    near_cases,
    page_cases,
    score_cases,
)
from osler.train.experts.pair_questions import (
    LICENCES,
    PairQuestion,
    read_mined_questions,
    read_pair_questions,
    write_pair_questions,
)
from osler.train.experts.pair_training import PairModel, PairRecipe, train_pairs
from osler.train.experts.quote_fit import fit_quotes, read_labels
from osler.train.experts.splits import (
    PARTS,
    DataSplit,
    Part,
    make_split,
    read_split,
    write_split,
)

ANSWERS = "answers"
_NAVIGATION = "These resources address"
"""How answers of MedQuAD begin that are lists of links: never a right text in training."""
_DEV_QUESTIONS = 60
"""Cases that training is followed on."""
_DEV_CASES = 30
"""Cases of each task that the linear models are fitted on: some 1,700 texts."""
_WEAK = (
    "letters, case histories, questions of several sentences or of more than 64 word pieces: it"
    " does not judge them, and the rule chooses",
    "English only: Chinese questions keep the rule",
    "an answer in other words than the question's has a low probability, though it may stand first",
    "it judges whether a sentence answers, not whether it is true",
    "what a text is about it knows by names and words: the same statement about a look-alike is"
    " left to the check of names",
    "what it does not quote may answer all the same: of 33 unseen questions that it refused, the"
    " rule's first quote was right on 13",
)


@dataclass(frozen=True)
class AnswersJob(ExpertFolderJob):
    """Trains and measures the expert `answers`."""

    recipe: PairRecipe = field(default_factory=PairRecipe)
    threads: int = 1

    def read_parts(self) -> tuple[DataSplit, list[PairQuestion]]:
        """The split and all questions. Raises `BadConfig` for a split of other data."""
        questions = read_pair_questions(self.data)
        if not self.split.is_file():
            write_split(make_split(questions), self.split)
        return read_split(self.split), questions

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Trains on the train part, calibrates on dev, writes weights and card."""
        split, questions = self.read_parts()
        learnt = self._mine_part(split, answered_questions(questions), "train")
        dev = self._mine_part(split, questions, "dev")
        cases = all_cases(dev)[:: max(1, len(all_cases(dev)) // _DEV_QUESTIONS)]
        model = train_pairs(
            learnt,
            self.recipe,
            self.work,
            progress=progress,
            measure_dev=lambda model: _dev_accuracy(model, cases),
            threads=self.threads,
        )
        card = self._write_expert(model, split, questions, dev, progress)
        list_questions(self.out, (one.text for one in (*learnt, *dev)))
        return card

    def _write_expert(
        self,
        model: PairModel,
        split: DataSplit,
        questions: Sequence[PairQuestion],
        dev: Sequence[PairQuestion],
        progress: Progress | None,
    ) -> ExpertCard:
        learnt = model.export_deltas()
        hashes = write_shards(learnt | neutral_tensors(), self.out)
        card = self.start_card(
            ANSWERS,
            question="Does this text answer this question?",
            family="pair",
            replaces="cosine and likelihood of sentences",
            seed=self.recipe.seed,
            base=BASE,
            weights=hashes[0],
            further=tuple(hashes[1:]),
            weak=_WEAK,
            features=FEATURES,
            default=True,
            parameters={
                "longest": LONGEST,
                "steps": self.recipe.steps,
                "layers": len(self.recipe.layers),
            },
            data=_count_items(split, questions),
        )
        self.write_card(card)
        # Put together as it runs, in 8 bits, on questions that it did not learn from.
        cases = _spread(all_cases(dev), _DEV_CASES)
        fitted = fit_tensors(cases, self._open().score_logits)
        own = split.choose_items(answered_questions(questions), "train")
        fitted |= fit_quotes(own, read_labels(self.data), self.data, self._open().score_logits)
        hashes = write_shards(learnt | fitted, self.out)
        update = {"weights": hashes[0], "further": tuple(hashes[1:])}
        card = self.write_card(card.model_copy(update=update))
        facts = calibration_facts(score_cases(cases, self._open().judge_texts, progress))
        parameters = {**card.parameters, **{f"dev_{key}": value for key, value in facts.items()}}
        return self.write_card(card.model_copy(update={"parameters": parameters}))

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """Measures the expert in `out` on the test part; the figures go onto its card."""
        split, questions = self.read_parts()
        card = open_expert(ANSWERS, self.out).card
        test = answered_questions(self._mine_part(split, questions, "test"))
        cases = _spread(all_cases(test), limit)
        ours = score_cases(cases, self._open().judge_texts, progress)
        encoder = MiniLMEncoder(threads=self.threads)
        figures = compare_scores(ours, score_cases(cases, cosine_score(encoder)), on="test")
        facts = calibration_facts(ours)
        parameters = {**card.parameters, **{f"test_{key}": value for key, value in facts.items()}}
        update = {"figures": tuple(figures), "parameters": parameters}
        return self.write_card(card.model_copy(update=update))

    def _open(self) -> AnswersExpert:
        return AnswersExpert(open_expert(ANSWERS, self.out), threads=self.threads)

    def _mine_part(
        self, split: DataSplit, questions: Sequence[PairQuestion], part: Part
    ) -> list[PairQuestion]:
        """The questions of a part with hard negatives, kept in the work folder."""
        chosen = split.choose_items(questions, part)
        named = hashlib.sha256("\n".join(one.id for one in chosen).encode()).hexdigest()[:12]
        path = self.work / f"{part}-{named}.jsonl"
        if not path.is_file():
            mined = add_hard_negatives(chosen, MiniLMEncoder(threads=self.threads))
            self.work.mkdir(parents=True, exist_ok=True)
            write_pair_questions(mined, path)
        return read_mined_questions(path)


def answered_questions(questions: Iterable[PairQuestion]) -> list[PairQuestion]:
    """The questions without those that a list of links answers: no quote should be one."""
    return [one for one in questions if not one.right[0].text.startswith(_NAVIGATION)]


def all_cases(questions: Sequence[PairQuestion]) -> list[PairCase]:
    """The cases of both tasks in both forms."""
    return [
        case
        for form in ("passage", "sentence")
        for case in (*page_cases(questions, form), *near_cases(questions, form))
    ]


def _spread(cases: list[PairCase], limit: int | None) -> list[PairCase]:
    """At most `limit` cases of each task, evenly from all."""
    if limit is None:
        return cases
    kept: list[PairCase] = []
    for task in dict.fromkeys(case.task for case in cases):
        own = [case for case in cases if case.task == task]
        kept += [own[at * len(own) // limit] for at in range(limit)] if len(own) > limit else own
    return kept


def _dev_accuracy(model: PairModel, cases: Sequence[PairCase]) -> float:
    """Share of cases whose right text the model puts first."""
    torch = import_extra("torch")
    with torch.no_grad():
        scored = score_cases(
            cases,
            lambda question, texts: model.score_pairs(
                [(question, one.text, one.title) for one in texts]
            ).tolist(),
        )
    firsts = scored.firsts
    return sum(firsts) / len(firsts)


def _count_items(split: DataSplit, questions: Sequence[PairQuestion]) -> tuple[ExpertData, ...]:
    counts = Counter((one.source, split.part_of(one)) for one in questions)

    def count_of(name: str, part: Part) -> int:
        return counts[name, part]

    return tuple(
        ExpertData(name=name, licence=licence, **{part: count_of(name, part) for part in PARTS})
        for name, licence in LICENCES.items()
    )

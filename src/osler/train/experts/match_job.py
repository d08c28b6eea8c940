"""Making and measuring the encoder `match`, from the judge's cases and its teacher."""

from __future__ import annotations

from dataclasses import dataclass, field

from osler.errors import BadConfig
from osler.evaluate.trained_on import list_questions
from osler.jobs.runner import Progress
from osler.retrieve.experts.cards import ExpertCard
from osler.retrieve.experts.matching import MATCH, MatchEncoder
from osler.retrieve.experts.shelf import BASE, open_expert
from osler.train.experts.folder import ExpertFolderJob
from osler.train.experts.judge_job import (
    JudgeJob,
    count_cases,
    made_by,
    measure_first,
    score_by_cosine,
)
from osler.train.experts.linear import write_shards
from osler.train.experts.match_training import MatchRecipe, train_match
from osler.train.experts.teacher import Teacher
from osler.train.experts.tuned_models import Machine

_WEAK = (
    "English only",
    "it knows what a sentence is about, not whether it is true",
    "an amount, a name or a direction of another kind lies near; checks stand beside it",
)


@dataclass(frozen=True)
class MatchJob(ExpertFolderJob):
    """Trains and measures the encoder."""

    recipe: MatchRecipe = field(default_factory=MatchRecipe)
    machine: Machine = field(default_factory=Machine)
    teacher: Teacher | None = None
    """Only training needs one: the judge's, trained once for both in the same folder `work`."""

    @property
    def _judge(self) -> JudgeJob:
        return JudgeJob(
            self.data, self.split, self.out, self.work, machine=self.machine, teacher=self.teacher
        )

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Trains on the train part. Writes weights and card."""
        if self.teacher is None:
            raise BadConfig("the encoder `match` learns from a larger one", fix="give --teacher")
        learnt = self._judge.read_learnt(progress)
        model = train_match(
            learnt, self.recipe, self.work / MATCH, progress=progress, machine=self.machine
        )
        hashes = write_shards(model.export_deltas(), self.out)
        list_questions(self.out, (one.question for one in learnt))
        return self.write_card(
            self.start_card(
                MATCH,
                made=made_by(MATCH, self.teacher),
                question="How near does this sentence lie to what would answer this question?",
                family="encoder",
                replaces="the cosine of question and sentence",
                seed=self.recipe.seed,
                base=BASE,
                weights=hashes[0],
                further=tuple(hashes[1:]),
                weak=_WEAK,
                default=True,
                data=count_cases({"train": learnt}),
            )
        )

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """As the judge is measured: an answering sentence first, beside the cosine."""
        expert = open_expert(MATCH, self.out)
        encoder = MatchEncoder(expert, threads=self.machine.threads)
        cases = self._judge.read_cases("test")
        figures = measure_first(cases, score_by_cosine(encoder), limit, progress)
        return self.write_card(expert.card.model_copy(update={"figures": figures}))

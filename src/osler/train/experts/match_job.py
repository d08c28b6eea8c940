"""Making and measuring the encoder `match`, from the judge's cases and a teacher."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from osler.errors import BadConfig
from osler.evaluate.trained_on import list_questions
from osler.jobs.runner import Progress
from osler.retrieve.experts.cards import ExpertCard, ExpertData
from osler.retrieve.experts.matching import MATCH, MatchEncoder
from osler.retrieve.experts.shelf import BASE, open_expert
from osler.train.experts.folder import ExpertFolderJob
from osler.train.experts.judge_cases import JudgedCase
from osler.train.experts.judge_job import SETS, JudgeJob, measure_first, score_by_cosine
from osler.train.experts.linear import write_shards
from osler.train.experts.match_rows import TAKEN, MatchRows, MatchSampler, teach_scores
from osler.train.experts.match_training import MatchRecipe, train_match

_WEAK = (
    "English only",
    "it knows what a sentence is about, not whether it is true",
    "an amount, a name or a direction of another kind lies near; checks stand beside it",
)
_MADE = f"osler experts train {MATCH} --data FOLDER --split FILE --out FOLDER --teacher FOLDER"
_TAUGHT = "taught.npy"


@dataclass(frozen=True)
class MatchJob(ExpertFolderJob):
    """Trains and measures the encoder."""

    teacher: Path | None = None
    """Folder of the larger encoder; only training needs it."""
    recipe: MatchRecipe = field(default_factory=MatchRecipe)
    threads: int = 1

    @property
    def _judge(self) -> JudgeJob:
        return JudgeJob(self.data, self.split, self.out, self.work)

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Trains on the train part. Writes weights and card."""
        if self.teacher is None:
            raise BadConfig("the encoder `match` learns from a larger one", fix="give --teacher")
        self.work.mkdir(parents=True, exist_ok=True)
        cases = self._judge.read_cases("train")
        data = MatchRows.collect(cases, self.recipe.seed)
        taught = teach_scores(data, self.teacher, self.work / _TAUGHT, progress)
        r = self.recipe
        sampler = MatchSampler(
            data, taught, r.labelled, r.others, r.texts, r.right, r.wrong, r.seed
        )
        model = train_match(sampler, r, self.work, progress=progress, threads=self.threads)
        hashes = write_shards(model.export_deltas(), self.out)
        list_questions(self.out, (row.question for row in data.rows))
        return self.write_card(
            self.start_card(
                MATCH,
                made=_MADE,
                question="How near does this sentence lie to what would answer this question?",
                family="encoder",
                replaces="the cosine of question and sentence",
                seed=r.seed,
                base=BASE,
                weights=hashes[0],
                further=tuple(hashes[1:]),
                weak=_WEAK,
                default=True,
                data=_count_rows(cases),
            )
        )

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """As the judge is measured: an answering sentence first, beside the cosine."""
        expert = open_expert(MATCH, self.out)
        encoder = MatchEncoder(expert, threads=self.threads)
        cases = self._judge.read_cases("test")
        figures = measure_first(cases, score_by_cosine(encoder), limit, progress)
        return self.write_card(expert.card.model_copy(update={"figures": figures}))


def _count_rows(cases: Sequence[JudgedCase]) -> tuple[ExpertData, ...]:
    counts = Counter(one.source for one in cases)
    return tuple(
        ExpertData(
            name=name,
            licence=licence,
            train=min(counts[name], TAKEN.get(name, counts[name])),
            dev=0,
            test=0,
        )
        for name, licence in SETS.items()
    )

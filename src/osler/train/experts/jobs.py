"""One job for each expert: trained on the train part, measured on the test part."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol, assert_never, get_args

from osler.jobs.runner import Progress
from osler.retrieve.experts.cards import ExpertCard
from osler.train import choose_named

ExpertKind = Literal["judge", "match", "supports"]
EXPERT_KINDS: tuple[ExpertKind, ...] = get_args(ExpertKind)


class ExpertJob(Protocol):
    """What makes an expert, from data and split to a folder with weights and card."""

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Trains on the train part alone; dev chooses and calibrates."""

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """Measures on the test part; the card of the folder gets the figures."""


def make_job(
    name: str,
    data: Path,
    split: Path,
    out: Path,
    work: Path,
    *,
    threads: int = 1,
    steps: int | None = None,
    seed: int = 0,
    teacher: Path | None = None,
) -> ExpertJob:
    """The job of an expert; `teacher` is the folder of the larger encoder of `match`.

    Raises `BadConfig` for a name that has no job.
    """
    kind = choose_named(name, EXPERT_KINDS, "expert")
    match kind:
        case "judge":
            from osler.train.experts.judge_job import JudgeJob
            from osler.train.experts.judge_training import JudgeRecipe

            cycles = (steps,) if steps else JudgeRecipe().cycles
            recipe = JudgeRecipe(cycles=cycles, seed=seed)
            return JudgeJob(data, split, out, work, recipe, threads)
        case "match":
            from osler.train.experts.match_job import MatchJob
            from osler.train.experts.match_training import MatchRecipe

            learnt = MatchRecipe(steps=steps or MatchRecipe().steps, seed=seed)
            return MatchJob(data, split, out, work, teacher, learnt, threads)
        case "supports":
            from osler.train.experts.supports_job import SupportsJob

            return SupportsJob(data, split, out, work, seed, threads)
        case _ as never:
            assert_never(never)

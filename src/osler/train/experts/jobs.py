"""One job for each expert: trained on the train part, measured on the test part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol, get_args

from osler.errors import BadConfig
from osler.jobs.runner import Progress
from osler.retrieve.experts.cards import ExpertCard
from osler.train import choose_named
from osler.train.experts.teacher import Teacher, TeacherRecipe
from osler.train.experts.tuned_models import CPU, Machine

ExpertKind = Literal["judge", "match", "supports"]
EXPERT_KINDS: tuple[ExpertKind, ...] = get_args(ExpertKind)


class ExpertJob(Protocol):
    """What makes an expert, from data and split to a folder with weights and card."""

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Trains on the train part alone; dev chooses and calibrates."""

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """Measures on the test part; the card of the folder gets the figures."""


@dataclass(frozen=True, slots=True)
class JobChoices:
    """What a user may choose about a training."""

    threads: int = 1
    device: str = CPU
    steps: int | None = None
    """Instead of the recipe's."""
    seed: int = 0
    teacher: Path | None = None
    """Folder of the larger encoder that `judge` and `match` learn from."""
    seeds: int | None = None
    """Teachers whose logits are averaged, instead of the recipe's."""


def make_job(
    name: str, data: Path, split: Path, out: Path, work: Path, chosen: JobChoices
) -> ExpertJob:
    """The job of an expert. Raises `BadConfig` for a name that has no job."""
    kind = choose_named(name, EXPERT_KINDS, "expert")
    if kind == "supports":
        from osler.train.experts.supports_job import SupportsJob

        return SupportsJob(data, split, out, work, chosen.threads)
    from osler.train.experts.taught_jobs import JudgeJob, MatchJob

    made = JudgeJob if kind == "judge" else MatchJob
    machine, teacher = Machine(chosen.device, chosen.threads), _choose_teacher(chosen)
    return made(data, split, out, work, machine, teacher, chosen.steps, chosen.seed)


def teach_cases(
    data: Path, split: Path, work: Path, chosen: JobChoices, progress: Progress | None = None
) -> int:
    """Trains the teacher of `judge` and `match`, and keeps its logits in `work`, where both find
    them; `chosen.steps` are its own. Gives the number of texts that it scored.

    Raises `BadConfig` without the folder of an encoder.
    """
    if chosen.teacher is None:
        raise BadConfig("a teacher is a larger encoder, tuned", fix="give its folder: --teacher")
    from osler.train.experts.taught_jobs import JudgeJob

    teacher = _choose_teacher(chosen, chosen.steps)
    machine = Machine(chosen.device, chosen.threads)
    job = JudgeJob(data, split, work, work, machine=machine, teacher=teacher)
    return sum(len(one.texts) for one in job.read_learnt(progress))


def _choose_teacher(chosen: JobChoices, steps: int | None = None) -> Teacher | None:
    if chosen.teacher is None:
        return None
    own = TeacherRecipe()
    seeds = chosen.seeds or own.seeds
    recipe = replace(own, steps=steps or own.steps, seed=chosen.seed, seeds=seeds)
    return Teacher(chosen.teacher, recipe)

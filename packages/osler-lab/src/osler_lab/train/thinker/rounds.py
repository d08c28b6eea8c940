"""Rounds of teaching and filtering (App. 9): what is dropped is tried again, otherwise seeded.

The paper trains a model on what was kept and infers anew with it. Here that is the same command
on the same log with that model as planner: its tries count by themselves, so that each teacher
has `rounds` tries at whatever no teacher has solved yet.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from osler.errors import MalformedOutput, OslerError
from osler.llm.core.base import Message
from osler.trace import BudgetExceeded, Run
from osler_lab.evaluate.judges import Judge
from osler_lab.evaluate.record import Sample
from osler_lab.jobs.claims import Claims
from osler_lab.jobs.journal import make_folder, writer_name
from osler_lab.jobs.runner import JobRunner, Progress, make_batches
from osler_lab.train.thinker.dialogue import Stage, stage_messages
from osler_lab.train.thinker.filters import FilterBounds, find_fault, too_long, wrong_reason
from osler_lab.train.thinker.log import FILES, SeenTries, TeachingTry, TryKey, append_try
from osler_lab.train.thinker.quality import Inspector, QualityItem
from osler_lab.train.thinker.teacher import Teacher
from osler_lab.train.thinker.trajectory import Trajectory

BATCH = 16
"""Questions that are claimed at once."""


@dataclass(frozen=True)
class TeachingConfig:
    """Settings of teaching: models, stage, and what counts as a sample."""

    teacher: Teacher
    stage: Stage = "thinker"
    rounds: int = 3
    seed: int = 0
    bounds: FilterBounds = field(default_factory=FilterBounds)
    judge: Judge | None = None
    """Judge of answers that no formula can grade."""
    inspector: Inspector | None = None
    """Judge of quality (App. 10)."""

    def seed_of(self, sample: Sample, round: int) -> int:
        """Seed of one try; equal calls give equal seeds on every machine."""
        # Every try has a seed of its own, or a dropped question would be answered the same again.
        text = f"{self.seed}.{self.stage}.{sample.task}.{sample.id}.{self.teacher.name}.{round}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


@dataclass
class TeachingJob:
    """Process that works on a log folder; several may share one."""

    folder: Path
    course: TeachingConfig
    jobs: int = 1
    """Questions at once."""
    progress: Progress | None = None
    _seen: SeenTries = field(init=False)
    _path: Path = field(init=False)
    _samples: Sequence[Sample] = field(init=False, default=())
    _round: int = field(init=False, default=1)
    # Questions that failed in this run: not tried again before the next.
    _failed: set[TryKey] = field(init=False, default_factory=set)

    async def run(self, samples: Sequence[Sample]) -> None:
        """Returns when each question is kept, or was tried as often as the course has rounds.

        Raises `BadRun` when `HOPELESS` questions in a row have failed, with the last reason.
        """
        make_folder(self.folder)
        writer = writer_name()
        self._samples, self._seen = samples, SeenTries(self.folder)
        self._path = self.folder / f"{FILES}{writer}.jsonl"
        runner = JobRunner[Sample](
            Claims(self.folder / "claims", writer), self, self.jobs, "questions"
        )
        batches = make_batches(
            samples, BATCH, lambda _, first: f"{self.course.stage}.{first.task}.{first.id}"
        )
        # Round by round over all questions, not question by question: what a stopped run leaves is
        # then an even sample.
        for number in range(1, self.course.rounds + 1):
            self._round = number
            await runner.run(batches)

    def refresh(self) -> None:
        self._seen.refresh()

    def is_due(self, sample: Sample) -> bool:
        key = self._key_of(sample)
        tried = self._seen.tries[key, self.course.teacher.name]
        return key not in self._seen.kept and key not in self._failed and tried < self._round

    def _key_of(self, sample: Sample) -> TryKey:
        return TryKey(self.course.stage, sample.task, sample.id)

    async def try_item(self, sample: Sample) -> str:
        one = await teach_once(self.course, sample, self._round)
        append_try(self._path, one)
        self._seen.refresh()
        if self.progress is not None:
            known = sum(self._key_of(each) in self._seen.kept for each in self._samples)
            label = f"{self.course.stage}, round {self._round}, kept"
            self.progress(label, known, len(self._samples))
        if one.status != "failed":
            return ""
        self._failed.add(one.key)
        return one.why


async def teach_once(course: TeachingConfig, sample: Sample, number: int) -> TeachingTry:
    """Teaches and filters one question. A failure is a result, with its reason."""
    began, when = time.perf_counter(), datetime.now(UTC).isoformat(timespec="milliseconds")
    seed = course.seed_of(sample, number)
    blank = TeachingTry(
        course.stage, sample, course.teacher.name, number, seed, "failed", "", when, 0.0,
        inspector=course.inspector.name if course.inspector else "",
        student=course.teacher.student.model.name if course.stage == "thinker" else "",
    )  # fmt: skip
    costs: list[Run] = []
    try:
        trajectory, why = await _teach_and_judge(course, sample, seed, costs)
        done = replace(blank, status="dropped" if why else "kept", why=why)
        done = done if why else replace(done, trajectory=trajectory)
    except BudgetExceeded:
        done = replace(blank, status="dropped", why="the budget was spent")
    # Replies that cannot be read are the teacher's fault and cost a round; other errors do not.
    except MalformedOutput as error:
        done = replace(blank, status="dropped", why=f"no {error.expected}")
    except OslerError as error:
        done = replace(blank, why=f"{type(error).__name__}: {error}")
    usage = sum((run.usage for run in costs), blank.usage)
    return replace(done, usage=usage, seconds=round(time.perf_counter() - began, 4))


async def _teach_and_judge(
    course: TeachingConfig, sample: Sample, seed: int, costs: list[Run]
) -> tuple[Trajectory, str]:
    """The trajectory, and why it is none to keep; the cheap reasons first."""
    trajectory, run = await course.teacher.teach_question(sample.question, course.stage, seed)
    costs.append(run)
    if why := find_fault(trajectory, course.stage):
        return trajectory, why
    chat = stage_messages(trajectory, course.stage, sample.question.language)
    if why := too_long(chat, course.bounds):
        return trajectory, why
    # A run of its own: the judge must not spend the teacher's budget.
    judging = Run(id=run.id, seed=seed)
    costs.append(judging)
    if why := await wrong_reason(
        trajectory, sample, course.stage, course.bounds, course.judge, judging
    ):
        return trajectory, why
    if course.inspector is not None:
        inspection = await course.inspector.inspect(item_of(sample, chat, course.stage), judging)
        if inspection.bad:
            return trajectory, f"inspection: {', '.join(inspection.bad)}"
    return trajectory, ""


def item_of(sample: Sample, chat: Sequence[Message], stage: Stage) -> QualityItem:
    """A sample as its quality is judged."""
    question = sample.question
    options = question.lettered
    lettered = " ".join(f"{letter}. {text}" for letter, text in options)
    asked = f"{question.text}\n{lettered}".strip()
    return QualityItem(question.id, tuple(chat), asked, golds_of(sample, stage), question.language)


def golds_of(sample: Sample, stage: Stage) -> tuple[str, ...]:
    """Gold answers for a stage: none for a plan, words for a deep search."""
    question, gold = sample.question, sample.gold
    if stage == "logical-form":
        return ()
    if stage == "deep-search" and len(gold.letters) == 1:
        return (question.option_text(gold.letters[0]),)
    return gold.letters or gold.texts

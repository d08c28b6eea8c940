"""Rounds of teaching and filtering (App. 9): what is dropped is tried again, otherwise seeded.

    tries-WRITER.jsonl   one line a try: what was taught, kept or dropped, by whom
    claims/              who works on which batch (`osler_lab.jobs.runner`)

Only its writer appends to a file, and a line counts once its line break is there: what is killed
loses the try that it was in. The paper trains a model on what was kept and infers anew with it.
Here that is the same command on the same log with that model as planner: its tries count by
themselves, so that each teacher has `rounds` tries at whatever no teacher has solved yet.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from osler.errors import BadRun, MalformedOutput, OslerError
from osler.llm.core.base import Message
from osler.trace import BudgetExceeded, Run
from osler.types import Usage
from osler_lab.evaluate.judges import Judge
from osler_lab.evaluate.record import Sample
from osler_lab.jobs.journal import (
    MEND,
    LineFormat,
    NewLines,
    append_line,
    make_folder,
    read_lines,
    writer_name,
)
from osler_lab.jobs.runner import Claims, JobRunner, Progress, make_batches
from osler_lab.train.thinker.dialogue import (
    FilterBounds,
    Stage,
    find_fault,
    stage_messages,
    too_long,
    wrong_reason,
)
from osler_lab.train.thinker.quality import Inspector, QualityItem
from osler_lab.train.thinker.teacher import Teacher
from osler_lab.train.thinker.trajectory import Trajectory

FILES = "tries-"
Status = Literal["kept", "dropped", "failed"]
"""A sample; none, for a reason; an error of a model or a source."""


class TryKey(NamedTuple):
    stage: Stage
    task: str
    id: str


@dataclass(frozen=True, slots=True)
class TeachingTry:
    """Record of one attempt to teach a question."""

    stage: Stage
    sample: Sample
    teacher: str
    """Identity of the models."""
    round: int
    """Round from 1, counted per teacher and question."""
    seed: int
    status: Status
    why: str
    """Empty when it was kept."""
    when: str
    """ISO 8601, UTC."""
    seconds: float
    usage: Usage = field(default_factory=Usage)
    trajectory: Trajectory | None = None
    """Trajectory of a kept try."""
    inspector: str = ""
    """Name of the judge of its quality; empty = not judged."""
    student: str = ""
    """Model whose knowledge boundary was determined."""

    @property
    def key(self) -> TryKey:
        return TryKey(self.stage, self.sample.task, self.sample.id)


_LINES: LineFormat[TeachingTry] = LineFormat(TeachingTry, "not a try")


@dataclass
class SeenTries:
    """Index of the log; reads only what was added since."""

    folder: Path
    kept: set[TryKey] = field(default_factory=set)
    tries: Counter[tuple[TryKey, str]] = field(default_factory=Counter)
    """Tries that were kept or dropped, by question and teacher; a failed one is no try."""
    _lines: NewLines = field(init=False)

    def __post_init__(self) -> None:
        self._lines = NewLines(self.folder, f"{FILES}*.jsonl")

    def refresh(self) -> None:
        """Raises `BadRun` for a damaged line, naming file and byte."""
        for path, at, line in self._lines.read_new():
            self.note_try(_parse_try(path, at, line))

    def note_try(self, one: TeachingTry) -> None:
        if one.status == "kept":
            self.kept.add(one.key)
        # A failure is the server's fault, not the teacher's: it costs no round.
        if one.status != "failed":
            self.tries[one.key, one.teacher] += 1


def read_tries(folder: Path) -> Iterator[TeachingTry]:
    """Yields every try of a log. Raises `BadRun` for a folder without one, or a damaged line."""
    if not any(folder.glob(f"{FILES}*.jsonl")):
        raise BadRun(f"{folder} is not a log of training data", fix="`osler train thinker-data`")
    for path in sorted(folder.glob(f"{FILES}*.jsonl")):
        for at, line in read_lines(path):
            yield _parse_try(path, at, line)


def kept_tries(folder: Path) -> Mapping[TryKey, TeachingTry]:
    """Returns the newest kept try of each question."""
    newest: dict[TryKey, TeachingTry] = {}
    for one in read_tries(folder):
        known = newest.get(one.key)
        # ISO 8601 in UTC sorts as text.
        if one.status == "kept" and (known is None or known.when <= one.when):
            newest[one.key] = one
    return dict(sorted(newest.items()))


def _parse_try(path: Path, at: int, line: bytes) -> TeachingTry:
    return _LINES.decode_line(line, f"{path} at byte {at}", fix=MEND)


GUESS: dict[Stage, int] = {"logical-form": 1, "deep-search": 6, "thinker": 16}
"""Model calls of one try, about: three steps, a search and a half for each."""


@dataclass(frozen=True, slots=True)
class TeachingLoad:
    questions: int
    kept: int
    left: int
    most_calls: int
    """Model calls, about, if none of those left is ever kept."""


def load_of(folder: Path, stage: Stage, samples: Sequence[Sample], rounds: int) -> TeachingLoad:
    """Raises `BadRun` for a damaged log; a folder that is not there holds nothing."""
    seen = SeenTries(folder)
    if any(folder.glob(f"{FILES}*.jsonl")):
        seen.refresh()
    kept = sum(TryKey(stage, s.task, s.id) in seen.kept for s in samples)
    left = len(samples) - kept
    return TeachingLoad(len(samples), kept, left, left * rounds * GUESS[stage])


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
        append_line(self._path, _LINES.encode_line(one))
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

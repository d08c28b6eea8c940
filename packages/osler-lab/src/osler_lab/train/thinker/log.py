"""The shared log of a data run: what was taught, kept and dropped, by whom.

    tries-WRITER.jsonl   one line a try; only its writer appends to it
    claims/              who works on which batch (`osler_lab.jobs.claims`)

A line counts once its line break is there. What is killed loses the try that it was in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from osler.errors import BadRun
from osler.types import Usage
from osler_lab.evaluate.record import Sample
from osler_lab.jobs.journal import MEND, LineFormat, NewLines, append_line, read_lines
from osler_lab.train.thinker.dialogue import Stage
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


def append_try(path: Path, one: TeachingTry) -> None:
    """Raises `BadRun`."""
    append_line(path, _LINES.encode_line(one))


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
"""Model calls of one try, where none was measured: three steps, a search and a half for each."""


@dataclass(frozen=True, slots=True)
class TeachingLoad:
    questions: int
    kept: int
    left: int
    most_tries: int
    """Tries if none of those left is ever kept."""
    calls_a_try: float
    measured_tries: int
    """Tries that the mean is of; 0 = it is a guess."""
    most_calls: int
    most_tokens: int
    """0 where nothing was measured."""


def load_of(folder: Path, stage: Stage, samples: Sequence[Sample], rounds: int) -> TeachingLoad:
    """Raises `BadRun` for a damaged log; a folder that is not there holds nothing."""
    seen, usage, measured = SeenTries(folder), Usage(), 0
    if any(folder.glob("tries-*.jsonl")):
        seen.refresh()
        for one in read_tries(folder):
            if one.stage == stage and one.status != "failed":
                usage, measured = usage + one.usage, measured + 1
    kept = sum(TryKey(stage, s.task, s.id) in seen.kept for s in samples)
    left = len(samples) - kept
    # Failed tries are left out of the mean: most of them end at the first call.
    calls = usage.calls / measured if measured else GUESS[stage]
    tokens = (usage.prompt_tokens + usage.completion_tokens) / measured if measured else 0
    tries = left * rounds
    return TeachingLoad(
        len(samples),
        kept,
        left,
        tries,
        calls,
        measured,
        round(tries * calls),
        round(tries * tokens),
    )

"""Exploring and judging many cases: a folder that is the checkpoint, shared by processes and hosts.

    explored.json, explored-WRITER.jsonl      how it was explored, and a line a case
    judged.NAME.json, judged.NAME-WRITER.jsonl    the same of each judge
    failed-STAGE-WRITER.jsonl   cases that failed, with the reason; they are tried again next time
    claims/                 who works on which batch, until when (`osler_lab.jobs.runner`)

Only its writer appends to a file. A line counts once its line break is there, so a process that is
killed loses what it was at and nothing else. A case that two writers did counts once: the first by
name of file. What was explored is kept with the texts that were found, so judging needs no
knowledge base, and another judge on the same folder judges the same queries.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from osler.errors import BadRun
from osler.methods.omni.planners import SourceDescription
from osler.text import make_slug
from osler_lab.jobs.journal import (
    MEND,
    LineFormat,
    NewLines,
    append_line,
    facts_of,
    failure_reason,
    make_folder,
    read_lines,
    require_agreement,
    writer_name,
)
from osler_lab.jobs.runner import Claims, JobRunner, Progress, make_batches
from osler_lab.train.spo.explore import Exploration, ExploredCase, TrainingCase
from osler_lab.train.spo.judge import JudgedCase, JudgingSignal, judge_case

I = TypeVar("I")  # noqa: E741  an item
R = TypeVar("R")

BATCH = 8
"""Items that are claimed at once."""
# The key stands first in every line, so that resuming reads keys without parsing results.
_KEY, _VALUE = b'{"key":', b',"value":'


class ResultPlace(NamedTuple):
    """Place of a result: file and byte."""

    path: Path
    byte: int


@dataclass(frozen=True)
class JobStage(Generic[R]):
    """Stage of a job: one kind of result in a folder."""

    folder: Path
    name: str
    """A slug; it begins the names of its files."""
    kind: type[R]
    key: Callable[[R], str]
    """Function from a result to the key of its item."""

    @cached_property
    def _format(self) -> LineFormat[R]:
        return LineFormat(self.kind, f"no result of {self.name}")

    def result_line(self, result: R) -> bytes:
        head = json.dumps(self.key(result), ensure_ascii=False).encode()
        return _KEY + head + _VALUE + self._format.encode_line(result)[:-1] + b"}\n"

    def places(self) -> dict[str, ResultPlace]:
        """Finds the place of each item's first result, in the order of the keys.

        Raises `BadRun` naming the file for a line that is none.
        """
        places: dict[str, ResultPlace] = {}
        for path in sorted(self.folder.glob(f"{self.name}-*.jsonl")):
            for at, line in read_lines(path):
                # Files in order of their names: every reader takes the same one of two results.
                places.setdefault(_key_of(line, path), ResultPlace(path, at))
        return dict(sorted(places.items()))

    def read_at(self, place: ResultPlace) -> R:
        """Raises `BadRun` naming file and byte for a damaged result."""
        with place.path.open("rb") as file:
            file.seek(place.byte)
            line = file.readline()
        where = f"{place.path} at byte {place.byte}"
        # Without the closing brace and the line break.
        value = line[len(_key_bytes(line)) + len(_VALUE) : -2]
        return self._format.decode_line(value, where, fix=MEND)

    def results(self) -> Iterator[R]:
        """Yields each item's first result, by key. Raises `BadRun` as `read_at` does."""
        for place in self.places().values():
            yield self.read_at(place)

    def failed_reasons(self) -> dict[str, str]:
        """Returns the last reason of each item that failed and was not done since."""
        reasons: dict[str, str] = {}
        for path in sorted(self.folder.glob(f"failed-{self.name}-*.jsonl")):
            reasons.update(json.loads(line) for _, line in read_lines(path))
        done = DoneItems(self.folder, self.name).refresh_done()
        return {key: why for key, why in reasons.items() if key not in done}


@dataclass
class DoneItems:
    """Keys of the items that are done; reads only what was added since."""

    folder: Path
    name: str
    keys: set[str] = field(default_factory=set)
    _lines: NewLines = field(init=False)

    def __post_init__(self) -> None:
        self._lines = NewLines(self.folder, f"{self.name}-*.jsonl")

    def refresh_done(self) -> set[str]:
        """Raises `BadRun` naming the file for a line without a key."""
        self.keys.update(_key_of(line, path) for path, _, line in self._lines.read_new())
        return self.keys


def _key_bytes(line: bytes) -> bytes:
    end = line.find(_VALUE)
    return line[:end] if line.startswith(_KEY) and end > 0 else b""


def _key_of(line: bytes, path: Path) -> str:
    try:
        return str(json.loads(_key_bytes(line)[len(_KEY) :]))
    except ValueError as error:
        raise BadRun(f"{path}: a line without a key: {line[:60]!r}", fix=MEND) from error


@dataclass
class StageJob(Generic[I, R]):
    """Process that works on a stage; several may share its folder."""

    stage: JobStage[R]
    do: Callable[[I], Awaitable[R]]
    key: Callable[[I], str]
    """Function from an item to its key: equal to the stage's key of the result of `do`."""
    jobs: int = 1
    """Items at once."""
    progress: Progress | None = None
    _writer: str = field(init=False, default_factory=writer_name)
    # Failed in this run: not tried again before the next.
    _given_up: set[str] = field(init=False, default_factory=set)
    _total: int = field(init=False, default=0)
    _tally: DoneItems = field(init=False)

    def __post_init__(self) -> None:
        self._tally = DoneItems(self.stage.folder, self.stage.name)

    async def run(self, items: Sequence[I]) -> None:
        """Returns when every item was done, or has failed once in this run.

        Raises `BadRun` when `HOPELESS` items in a row have failed, with the last reason.
        """
        make_folder(self.stage.folder)
        self._total = len(items)
        claims = Claims(self.stage.folder / "claims", self._writer)
        batches = make_batches(
            items, BATCH, lambda _, first: f"{self.stage.name}.{self.key(first)}"
        )
        await JobRunner[I](claims, self, self.jobs).run(batches)

    def refresh(self) -> None:
        self._tally.refresh_done()

    def is_due(self, item: I) -> bool:
        key = self.key(item)
        return key not in self._tally.keys and key not in self._given_up

    async def try_item(self, item: I) -> str:
        key, reason = self.key(item), ""
        try:
            line, file = self.stage.result_line(await self.do(item)), self.stage.name
        except Exception as failure:  # one item is noted with its reason; the others go on
            reason = failure_reason(failure)
            self._given_up.add(key)
            line, file = json.dumps([key, reason]).encode() + b"\n", f"failed-{self.stage.name}"
        append_line(self.stage.folder / f"{file}-{self._writer}.jsonl", line)
        if self.progress:
            # The folder may hold items of an earlier, larger run: never more than asked for.
            done = len(self._tally.refresh_done())
            self.progress(self.stage.name, min(done, self._total), self._total)
        return reason


EXPLORED, JUDGED = "explored", "judged."


def explored_in(folder: Path) -> JobStage[ExploredCase]:
    return JobStage(folder, EXPLORED, ExploredCase, lambda one: one.key)


def judged_in(folder: Path, name: str) -> JobStage[JudgedCase]:
    """Stage of the verdicts of the signal called `name`."""
    return JobStage(folder, _file_name(name), JudgedCase, lambda one: one.key)


def _file_name(name: str) -> str:
    # The slug is for people; the digest keeps apart names that differ in marks alone.
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{JUDGED}{make_slug(name)[:40]}.{digest}"


@dataclass(frozen=True)
class SharedFolder:
    """Settings of a process that works on a shared folder."""

    folder: Path
    jobs: int = 1
    """Cases at once."""
    seed: int = 0
    progress: Progress | None = None


async def explore_cases(
    working: SharedFolder,
    exploration: Exploration,
    cases: Sequence[TrainingCase],
    snapshot: str = "",
) -> None:
    """Returns when every case was tried by somebody. Raises `BadRun` as `StageJob` does, and where
    the folder was made otherwise."""
    require_agreement(
        working.folder,
        EXPLORED,
        {
            "explorer": exploration.explorer.name,
            "offers": [[offer.name, list(offer.titles)] for offer in exploration.offers],
            "k": exploration.retriever.k,
            "snapshot": snapshot,
            "seed": working.seed,
        },
    )
    job = StageJob[TrainingCase, ExploredCase](
        explored_in(working.folder),
        lambda case: exploration.explore(case, working.seed),
        lambda case: case.key,
        working.jobs,
        working.progress,
    )
    await job.run(cases)


async def judge_cases(working: SharedFolder, signal: JudgingSignal) -> None:
    """Judges all that is explored. Raises `BadRun` as `StageJob` does, and for a folder without."""
    explored = explored_in(working.folder)
    places = explored.places()
    if not places:
        raise BadRun(
            f"nothing is explored in {working.folder}", fix="`osler train explore` comes first"
        )
    require_agreement(working.folder, _file_name(signal.name), {"judge": signal.name})
    job = StageJob[tuple[str, ResultPlace], JudgedCase](
        judged_in(working.folder, signal.name),
        # Cases are read one at a time from their places: an exploration holds whole passages.
        lambda item: judge_case(signal, explored.read_at(item[1]), working.seed),
        lambda item: item[0],
        working.jobs,
        working.progress,
    )
    await job.run(list(places.items()))


def stored_judges(folder: Path) -> dict[str, JobStage[JudgedCase]]:
    """The judges of a folder by name."""
    names = [
        str(facts_of(folder, path.stem)["judge"]) for path in sorted(folder.glob(f"{JUDGED}*.json"))
    ]
    return {name: judged_in(folder, name) for name in names}


def chosen_judge(folder: Path, name: str = "") -> tuple[str, JobStage[JudgedCase]]:
    """The judge whose name begins so, or the only one. Raises `BadRun` for none or several."""
    every = stored_judges(folder)
    matching = [(judge, stage) for judge, stage in every.items() if judge.startswith(name)]
    if len(matching) == 1:
        return matching[0]
    if not every:
        raise BadRun(f"nothing is judged in {folder}", fix="`osler train judge` comes first")
    raise BadRun(
        f"{len(matching)} judges of {folder} are named {name!r}", fix=f"--judge: {', '.join(every)}"
    )


def exploration_of(folder: Path) -> dict[str, Any]:
    """Reads how the folder was explored. Raises `BadRun` for a folder that was not."""
    return facts_of(folder, EXPLORED)


def offers_of(folder: Path) -> tuple[SourceDescription, ...]:
    """The sources that were on offer, in their order."""
    return tuple(
        SourceDescription(name, tuple(titles)) for name, titles in exploration_of(folder)["offers"]
    )

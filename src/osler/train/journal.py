"""A job over many items that several processes and hosts share: its folder is the checkpoint.

    STAGE-WRITER.jsonl      one line an item that was done; only its writer appends to it
    failed-STAGE-WRITER.jsonl   items that failed, with the reason; they are tried again next time
    claims/                 who works on which batch, until when (`evaluate.claims`)

A line counts once its line break is there, so a process that is killed loses what it was at and
nothing else. An item that two writers did counts once: the first by name of file.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from osler.errors import BadRun, OslerError
from osler.evaluate.claims import Claims
from osler.evaluate.log import writer_name
from osler.trace.ordered import gather

I = TypeVar("I")  # noqa: E741  an item
R = TypeVar("R")

Progress = Callable[[str, int, int | None], None]
BATCH = 8
"""Items that are claimed at once."""
HOPELESS = 20
"""Failures in a row after which a job stops."""
_POLL = 0.5
"""Seconds between two looks at batches that others hold."""
_KEY, _VALUE = b'{"key":', b',"value":'
_MEND = "take that line out, or the file away: what is left counts"


class ResultPlace(NamedTuple):
    """Where a result stands."""

    path: Path
    byte: int


@dataclass(frozen=True)
class JobStage(Generic[R]):
    """One kind of result in a folder."""

    folder: Path
    name: str
    """A slug; it begins the names of its files."""
    kind: type[R]
    key: Callable[[R], str]
    """Which item a result is of."""

    @cached_property
    def _adapter(self) -> TypeAdapter[R]:
        return TypeAdapter(self.kind)

    def result_line(self, result: R) -> bytes:
        head = json.dumps(self.key(result), ensure_ascii=False).encode()
        return _KEY + head + _VALUE + self._adapter.dump_json(result) + b"}\n"

    def places(self) -> dict[str, ResultPlace]:
        """Where each item's first result stands, in the order of the keys.

        Raises `BadRun` naming the file for a line that is none.
        """
        found: dict[str, ResultPlace] = {}
        for path in sorted(self.folder.glob(f"{self.name}-*.jsonl")):
            for at, line in _whole_lines(path):
                found.setdefault(_key_of(line, path), ResultPlace(path, at))
        return dict(sorted(found.items()))

    def read_at(self, place: ResultPlace) -> R:
        """Raises `BadRun` naming file and byte for a damaged result."""
        with place.path.open("rb") as file:
            file.seek(place.byte)
            line = file.readline()
        head = _key_bytes(line)
        try:
            return self._adapter.validate_json(line[len(head) + len(_VALUE) : -2])
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "line"
            raise BadRun(
                f"{place.path} at byte {place.byte}: no result of {self.name}: {where}:"
                f" {first['msg']}",
                fix=_MEND,
            ) from error

    def results(self) -> Iterator[R]:
        """Each item's first, by key, one in memory at a time. Raises `BadRun` as `at` does."""
        for place in self.places().values():
            yield self.read_at(place)

    def failed_reasons(self) -> dict[str, str]:
        """The last reason of each item that failed, and was not done since."""
        told: dict[str, str] = {}
        for path in sorted(self.folder.glob(f"failed-{self.name}-*.jsonl")):
            told.update(json.loads(line) for _, line in _whole_lines(path))
        done = DoneItems(self.folder, self.name).refresh_done()
        return {key: why for key, why in told.items() if key not in done}


@dataclass
class DoneItems:
    """Which items are done, kept up to date by reading only what was added."""

    folder: Path
    name: str
    _keys: set[str] = field(default_factory=set)
    _read: dict[str, int] = field(default_factory=dict)

    def refresh_done(self) -> set[str]:
        """Raises `BadRun` naming the file for a line that is none."""
        for path in sorted(self.folder.glob(f"{self.name}-*.jsonl")):
            start = self._read.get(path.name, 0)
            if path.stat().st_size > start:
                for at, line in _whole_lines(path, start):
                    self._keys.add(_key_of(line, path))
                    self._read[path.name] = at + len(line)
        return self._keys


def _whole_lines(path: Path, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """With where each begins. Half a line at the end is none: its writer was killed."""
    with path.open("rb") as file:
        file.seek(start)
        for line in file:
            if line.endswith(b"\n"):
                yield start, line
            start += len(line)


def _key_bytes(line: bytes) -> bytes:
    end = line.find(_VALUE)
    return line[:end] if line.startswith(_KEY) and end > 0 else b""


def _key_of(line: bytes, path: Path) -> str:
    try:
        return str(json.loads(_key_bytes(line)[len(_KEY) :]))
    except ValueError as error:
        raise BadRun(f"{path}: a line without a key: {line[:60]!r}", fix=_MEND) from error


@dataclass
class StageJob(Generic[I, R]):
    """One process that works on a stage."""

    stage: JobStage[R]
    do: Callable[[I], Awaitable[R]]
    key: Callable[[I], str]
    """As the stage's key of what `do` makes of it."""
    jobs: int = 1
    """Items at once."""
    progress: Progress | None = None
    _writer: str = field(init=False, default_factory=writer_name)
    _row: int = field(init=False, default=0)
    _given_up: set[str] = field(init=False, default_factory=set)
    """Failed in this run: not tried again before the next."""
    _total: int = field(init=False, default=0)
    _tally: DoneItems = field(init=False)

    def __post_init__(self) -> None:
        self._tally = DoneItems(self.stage.folder, self.stage.name)

    async def run(self, items: Sequence[I]) -> None:
        """Returns when every item was done, or has failed once in this run.

        Raises `BadRun` when `HOPELESS` items in a row have failed, with the last reason.
        """
        _make_folder(self.stage.folder)
        claims = Claims(self.stage.folder / "claims", self._writer)
        batches = [items[start : start + BATCH] for start in range(0, len(items), BATCH)]
        self._total = len(items)
        while left := self._open_batches(batches):
            worked = False
            for batch, due in left.items():
                worked |= await self._is_claimed(claims, batch, due)
            if not worked:
                await asyncio.sleep(_POLL)  # the rest is in other hands

    def _open_batches(self, batches: Sequence[Sequence[I]]) -> dict[str, list[I]]:
        done = self._tally.refresh_done() | self._given_up
        open_ = {
            f"{self.stage.name}.{self.key(batch[0])}.{len(batch)}": [
                item for item in batch if self.key(item) not in done
            ]
            for batch in batches
        }
        return {name: due for name, due in open_.items() if due}

    async def _is_claimed(self, claims: Claims, batch: str, due: list[I]) -> bool:
        if not claims.take_batch(batch):
            return False
        alive = asyncio.create_task(_keep_alive(claims, batch))
        try:
            done = self._tally.refresh_done()  # what its last holder did
            await self._run_batch([item for item in due if self.key(item) not in done])
        finally:
            alive.cancel()
            claims.release_batch(batch)
        return True

    async def _run_batch(self, due: Sequence[I]) -> None:
        todo = iter(due)

        async def work_through() -> None:
            for item in todo:
                await self._run_one(item)

        await gather([work_through() for _ in range(min(self.jobs, len(due)))])
        if self.progress:
            done = len(self._tally.refresh_done())
            self.progress(self.stage.name, min(done, self._total), self._total)

    async def _run_one(self, item: I) -> None:
        key = self.key(item)
        try:
            line, file = self.stage.result_line(await self.do(item)), self.stage.name
            self._row = 0
        except Exception as failure:  # one item is noted with its reason; the others go on
            why = _failure_reason(failure)
            self._row += 1
            self._given_up.add(key)
            line, file = json.dumps([key, why]).encode() + b"\n", f"failed-{self.stage.name}"
        _append_line(self.stage.folder / f"{file}-{self._writer}.jsonl", line)
        if self._row >= HOPELESS:
            raise BadRun(
                f"{self._row} items in a row have failed; the last: {why}",
                fix="mend that, and run the same command again: what is done is kept",
            )


def _failure_reason(failure: Exception) -> str:
    told = f"{type(failure).__name__}: {failure}"
    if isinstance(failure, OslerError):
        return told
    last = traceback.extract_tb(failure.__traceback__)[-1]
    return f"{told} ({Path(last.filename).name}:{last.lineno})"


async def _keep_alive(claims: Claims, batch: str) -> None:
    while True:
        await asyncio.sleep(claims.lease / 4)
        claims.touch_claim(batch)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRun(f"{folder} cannot be made: {error.strerror}") from error


def _append_line(path: Path, line: bytes) -> None:
    try:
        with path.open("ab") as file:
            file.write(line)
    except OSError as error:
        raise BadRun(f"{path} cannot be written: {error.strerror}", fix="make room") from error


def facts_of(folder: Path, name: str) -> dict[str, Any]:
    """What `require_agreement` wrote. Raises `BadRun` where nobody did."""
    path = folder / f"{name}.json"
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadRun(f"{path} cannot be read: {error}") from error
    return found


def require_agreement(folder: Path, name: str, facts: dict[str, Any]) -> None:
    """What all who work on a stage must have in common; the first one says it.

    Raises `BadRun` naming what differs.
    """
    _make_folder(folder)
    path = folder / f"{name}.json"
    text = json.dumps(facts, ensure_ascii=False, sort_keys=True, indent=1)
    draft = folder / f".{name}.{writer_name()}"
    try:
        draft.write_text(text, encoding="utf-8")
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)  # whole or not at all, also for who reads it meanwhile
        draft.unlink()
    except OSError as error:
        raise BadRun(f"{path} cannot be written: {error.strerror}") from error
    known = facts_of(folder, name)
    now = json.loads(text)
    differs = [key for key in sorted(known.keys() | now.keys()) if known.get(key) != now.get(key)]
    if differs:
        told = "; ".join(f"{key} {known.get(key)!r}, now {now.get(key)!r}" for key in differs)
        raise BadRun(
            f"{path} was made otherwise: {told}", fix="run as before, or use another --log-dir"
        )

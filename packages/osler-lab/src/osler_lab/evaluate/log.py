"""The log folder of an evaluation: the checkpoint that many processes and hosts share.

    plan.json               what is run: data, strategies, seed (see `plan`)
    records-WRITER.jsonl    one line a tried sample; only its writer appends to it
    traces-WRITER.jsonl     the events of the runs; a record says where its own stand
    runs/NAME/              a run with its tape, where tapes are kept; a record names its own
    claims/                 who works on which batch, until when

A line counts once its line break is there, and a record is written after its trace. So a
process that is killed leaves at most the samples that it was working on, and a half-written
last line, which is ignored. Nobody ever writes into a file of somebody else.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from osler.errors import BadRun, translate_os_errors
from osler.kb.store.durable import sync_path
from osler.runs.files import RECORDS, TRACES
from osler.trace import Event
from osler.trace import from_line as event_from
from osler.trace import to_line as event_line
from osler_lab.evaluate.record import (
    RECORD_LINES,
    SampleKey,
    SampleRecord,
    Status,
    TraceSpan,
    key_of,
)
from osler_lab.jobs.journal import NewLines, read_lines, writer_name

RUNS = "runs"


@dataclass
class LogWriter:
    """Appends to the two files that are this process's own."""

    folder: Path
    name: str = field(default_factory=writer_name)
    _records: int = field(init=False, default=-1)
    _traces: int = field(init=False, default=-1)
    _at: int = field(init=False, default=0)

    def __enter__(self) -> Self:
        # Descriptors, not buffered files: what is written survives a kill of the process.
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
        with translate_os_errors(f"cannot write to {self.folder}", BadRun):
            self._records = os.open(self.folder / f"{RECORDS}{self.name}.jsonl", flags, 0o644)
            self._traces = os.open(self.folder / f"{TRACES}{self.name}.jsonl", flags, 0o644)
            sync_path(self.folder)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._records)
        os.close(self._traces)

    def write_trace(self, events: list[Event]) -> TraceSpan:
        """Writes the events of one run; returns where they stand."""
        data = b"".join(event_line(event).encode() + b"\n" for event in events)
        _write_all(self._traces, data)
        # The file is this writer's alone and begins empty, so counting bytes is enough.
        self._at += len(data)
        return TraceSpan(f"{TRACES}{self.name}.jsonl", self._at - len(data), len(data))

    def write_record(self, record: SampleRecord) -> None:
        """Writes the record; from here on the sample counts as tried."""
        _write_all(self._records, RECORD_LINES.encode_line(record))


def _write_all(descriptor: int, data: bytes) -> None:
    """Writes all bytes and flushes them: a single write to a full disk may take fewer, and a
    power cut must not keep a record without its trace. Raises `BadRun`."""
    view = memoryview(data)
    with translate_os_errors("the log cannot be written", BadRun, "make room"):
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)


@dataclass
class TriedSamples:
    """Index of the samples that were tried; reads only what was added since."""

    folder: Path
    status: dict[SampleKey, Status] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Samples that were tried, by strategy and task."""
    _lines: NewLines = field(init=False)

    def __post_init__(self) -> None:
        self._lines = NewLines(self.folder, f"{RECORDS}*.jsonl")

    def refresh(self) -> None:
        """Reads what any writer added since. Raises `BadRun` naming file and byte."""
        for path, at, line in self._lines.read_new():
            self.note_try(*key_of(line, f"{path} at byte {at}"))

    def note_try(self, key: SampleKey, status: Status) -> None:
        """Counts a try; a failed one never hides a done one."""
        if key not in self.status:
            self.counts[key.strategy, key.task] += 1
        if self.status.get(key) != "done":
            self.status[key] = status

    def is_done(self, key: SampleKey, *, again: bool) -> bool:
        """Whether nothing is left to do; `again`: a failed try is no try."""
        return self.status.get(key) in (("done",) if again else ("done", "failed"))


def read_records(folder: Path) -> Iterator[SampleRecord]:
    """The try that counts of each key: done before failed, then the newest.

    Memory is that of one record and the places of all. Raises `BadRun` for a folder without
    a log, and for a damaged line, naming file and byte.
    """
    if not folder.is_dir():
        raise BadRun(f"{folder} is not a log folder", fix="`osler eval run --log-dir` makes one")
    chosen: dict[SampleKey, tuple[tuple[bool, str], Path, int]] = {}
    for path in sorted(folder.glob(f"{RECORDS}*.jsonl")):
        for at, line in read_lines(path):
            record = RECORD_LINES.decode_line(line, f"{path} at byte {at}")
            rank = (record.status == "done", record.when)
            # Ranks compare done above failed, then time; of equals the first file stays.
            if record.key not in chosen or chosen[record.key][0] < rank:
                chosen[record.key] = (rank, path, at)
    for _, path, at in chosen.values():
        with path.open("rb") as file:
            file.seek(at)
            yield RECORD_LINES.decode_line(file.readline(), f"{path} at byte {at}")


def read_trace(folder: Path, trace: TraceSpan) -> list[Event]:
    """The events of one run. Raises `BadRun` where they are not there, or damaged."""
    # The name alone: a record of a foreign log must not point out of the folder.
    path = folder / Path(trace.file).name
    with translate_os_errors(f"{path} cannot be read", BadRun), path.open("rb") as file:
        file.seek(trace.start)
        data = file.read(trace.length)
    if len(data) < trace.length:
        raise BadRun(f"{path} ends before byte {trace.start + trace.length}")
    try:
        return [event_from(line) for line in data.decode().split("\n") if line]
    except UnicodeDecodeError as error:
        raise BadRun(f"{path} at byte {trace.start + error.start}: not text") from error
    except BadRun as error:
        raise BadRun(f"{path} from byte {trace.start}: {error.message}") from error

"""Files that are read in a second process: big ones, so that two cores work on one file, and
those of strangers, so that what a file costs has a bound.

The first process prepares and stores what the second has read. Batches of records pass between
them as lines of JSON, through a pipe, which is bounded: memory does not grow with the file, and
a reader that a file took over can send nothing but records.
"""

from __future__ import annotations

import io
import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from pydantic import TypeAdapter, ValidationError
from typing_extensions import Buffer

from osler.errors import KnowledgeBaseError, MalformedSource
from osler.kb.ingest.prepare import IngestOptions, Outcome, prepare_batch
from osler.sources.discover import Found, FoundFile, FoundFolder
from osler.sources.formats.containers import as_utf8, open_file
from osler.sources.formats.registry import FolderParser, by_name
from osler.sources.reading import read_records
from osler.sources.records import Document, Parser, Record, Section, SourceFile

BATCH = 256
"""Records that are handed on together."""
WORTH = 1 << 21
"""Bytes of a file on disk from which on a second process (0.4 s to start) saves time."""
_BLOCK, _BLOCKS_AHEAD = 1 << 18, 8
_PIPE = 1 << 20
"""The most that Linux grants an ordinary user (`/proc/sys/fs/pipe-max-size`)."""
_CHILD = (
    "import sys; sys.path[:] = {path!r}; from osler.kb.ingest.reader_process import work; work()"
)
_SECTIONS = 50
"""Sections for each document that is allowed: a textbook is one document."""
_LINES = 16
"""A record has at most this part of the memory."""
_PATIENCE = 2
"""Seconds on the clock for each of a processor's: what is read may have to stand back."""
_END = b"null\n"
_BATCHES: TypeAdapter[list[Record]] = TypeAdapter(list[Record])


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """What one file may cost."""

    seconds: float
    """Of a processor; by the clock, twice as many."""
    memory: int
    """Bytes of the process that reads. Not bounded on systems without `resource`."""
    documents: int
    """And 50 times as many sections."""


class FileTooCostly(MalformedSource):
    """A file that is over a limit. Nothing of it was kept."""


def read_batches(found: Found, limits: ReadLimits | None = None) -> Iterator[list[Record]]:
    """Yields the records of a file in order, some at a time.

    With `limits` any file is read by a second process. Raises `KnowledgeBaseError` when that dies,
    and `FileTooCostly`.
    """
    if limits is None and not _is_worth_it(found):
        yield from read_here(found)
    else:
        yield from _read_in_process(found, limits)


def read_outcomes(
    found: Found, how: IngestOptions, limits: ReadLimits | None = None
) -> Iterator[list[Outcome]]:
    """Yields the records of `read_batches`, prepared for the store. Raises the same."""
    for batch in read_batches(found, limits):
        yield prepare_batch(batch, how)


def work() -> None:
    """Runs the second process: what to read comes in, batches go out, `null` ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    sys.setswitchinterval(0.0005)  # the thread that decompresses waits less for its turn
    path, name, parser, *limits = json.loads(sys.stdin.buffer.readline())
    if limits:
        _limit_process(*limits)
    out = sys.stdout.buffer
    try:
        found = found_file(Path(path), name, by_name(parser))
        # Of a stranger's file one record a line, so that a line has a bound.
        for batch in read_here(found, 1 if limits else BATCH):
            out.write(json.dumps(batch, ensure_ascii=False, default=_list_fields).encode() + b"\n")
        out.write(_END)
        out.flush()
    except (BrokenPipeError, MemoryError):
        os._exit(1)  # nobody is left to tell, or nothing to tell it with


def _list_fields(value: Record | Section) -> dict[str, object]:
    # Not by pydantic: where memory ends, its library stands still instead of failing.
    return {name: getattr(value, name) for name in value.__slots__}


def _is_worth_it(found: Found) -> bool:
    path = found.file.path
    if found.file.member or (os.cpu_count() or 1) < 2 or not sys.executable:
        return False
    if type(by_name(found.parser.name)) is not type(found.parser) or found.beside:
        return False  # another process would not find it, or its companions
    files = path.iterdir() if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files if file.is_file()) >= WORTH


def read_here(found: Found, size: int = BATCH) -> Iterator[list[Record]]:
    """Yields the same records as `read_batches`, in this process, `size` at a time."""
    records = read_records(found)
    while batch := list(islice(records, size)):
        yield batch


def _limit_process(seconds: int, memory: int) -> None:
    with suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it would hold the file's text


def _read_in_process(found: Found, limits: ReadLimits | None) -> Iterator[list[Record]]:
    asked: list[object] = [os.fspath(found.file.path), found.name, found.parser.name]
    asked += [math.ceil(limits.seconds), limits.memory] if limits else []
    with _start_reader(limits) as (requests, replies):
        # A missing reply shows that the child is dead already.
        with suppress(BrokenPipeError), requests:
            requests.write(json.dumps(asked).encode() + b"\n")
        yield from _receive_batches(replies, found, limits)


@contextmanager
def _start_reader(limits: ReadLimits | None) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Yields the pipes of a process, which ends with the block, or when its time is over."""
    with subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-c", _CHILD.format(path=sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if limits else None,  # the file's text may be in it
    ) as child:
        requests, replies = cast(BinaryIO, child.stdin), cast(BinaryIO, child.stdout)
        _widen_pipe(replies)
        clock = threading.Timer(_PATIENCE * limits.seconds if limits else 0, child.kill)
        if limits:
            clock.start()
        try:
            yield requests, replies
        finally:
            clock.cancel()
            child.kill()


def _widen_pipe(pipe: BinaryIO) -> None:
    """Enlarges the pipe to hold some batches, so that neither process waits at each of them."""
    with suppress(ImportError, AttributeError, OSError):  # a smaller one is only slower
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


def _receive_batches(
    stream: BinaryIO, found: Found, limits: ReadLimits | None
) -> Iterator[list[Record]]:
    documents = sections = 0
    while (line := stream.readline(limits.memory // _LINES if limits else -1)) != _END:
        try:
            batch = _BATCHES.validate_json(line)
        except ValidationError as error:
            raise _ended_early(found, limits) from error
        for record in batch:
            if isinstance(record, Document):
                documents += 1
                sections += len(record.sections)
        if limits and max(documents, sections / _SECTIONS) > limits.documents:
            raise FileTooCostly(
                f"{found.name} has over {limits.documents:,} documents"
                f" or {limits.documents * _SECTIONS:,} sections",
                fix="split it",
            )
        yield batch


def _ended_early(found: Found, limits: ReadLimits | None) -> KnowledgeBaseError:
    if limits is None:
        return KnowledgeBaseError(
            f"the process that read {found.name} ended before the file did",
            fix="nothing of the file was kept; add it again, with more memory if that ran out",
        )
    return FileTooCostly(
        f"{found.name} cannot be read in {limits.seconds:g} s with {limits.memory >> 20:,} MiB",
        fix="split it, or save it in another format",
    )


def found_file(path: Path, name: str, parser: Parser | FolderParser) -> Found:
    """Describes a file on disk, to be read and decompressed some blocks ahead."""
    file = SourceFile(path)
    if isinstance(parser, FolderParser):
        return FoundFolder(file, name, parser)
    if getattr(parser, "seeks", False):  # it reads here and there
        return FoundFile(file, name, parser, lambda: open_file(path))
    return FoundFile(
        file, name, parser, lambda: as_utf8(io.BufferedReader(_ReadAheadFile(path), _BLOCK))
    )


class _ReadAheadFile(io.RawIOBase):
    """A file that another thread reads and decompresses some blocks ahead."""

    def __init__(self, path: Path) -> None:
        self._blocks: queue.Queue[bytes | BaseException] = queue.Queue(_BLOCKS_AHEAD)
        self._rest = memoryview(b"")
        self._ended = False
        threading.Thread(target=self._fill_blocks, args=(path,), daemon=True).start()

    def _fill_blocks(self, path: Path) -> None:
        try:
            with closing(open_file(path)) as file:
                while block := file.read(_BLOCK):
                    self._blocks.put(block)
            self._blocks.put(b"")
        except BaseException as error:  # whatever it is, the reader must not wait for ever
            self._blocks.put(error)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        if not self._rest and not self._ended:
            block = self._blocks.get()
            if isinstance(block, BaseException):
                raise block
            self._rest, self._ended = memoryview(block), not block
        target = memoryview(buffer).cast("B")
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

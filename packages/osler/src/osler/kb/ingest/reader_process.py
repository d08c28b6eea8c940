"""Big files are read in a second process, so that two cores work on one file.

The first process prepares and stores what the second has read. Batches of records pass
between them through a pipe, which is bounded: memory does not grow with the file.
"""

from __future__ import annotations

import io
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, cast

from typing_extensions import Buffer

from osler.errors import KnowledgeBaseError
from osler.kb.ingest.prepare import IngestOptions, Outcome, prepare_batch
from osler.sources.discover import Found, FoundFile, FoundFolder, read_records
from osler.sources.formats.containers import open_file
from osler.sources.formats.registry import FolderParser, by_name
from osler.sources.records import Parser, Record, SourceFile

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


def read_batches(found: Found) -> Iterator[list[Record]]:
    """Yields the records of a file in order, some at a time.

    Raises `KnowledgeBaseError` when the second process dies.
    """
    yield from _read_in_process(found) if _is_worth_it(found) else read_here(found)


def read_outcomes(found: Found, how: IngestOptions) -> Iterator[list[Outcome]]:
    """Yields the records of `read_batches`, prepared for the store. Raises the same."""
    for batch in read_batches(found):
        yield prepare_batch(batch, how)


def work() -> None:
    """Runs the second process: what to read comes in, batches go out, `None` ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    sys.setswitchinterval(0.0005)  # the thread that decompresses waits less for its turn
    path, name, parser = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own process
    reading = found_file(path, name, by_name(parser))
    try:
        for batch in chain(read_here(reading), [None]):
            pickle.dump(batch, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os._exit(1)  # the first process is gone, and nobody is left to tell


def _is_worth_it(found: Found) -> bool:
    path = found.file.path
    if found.file.member or (os.cpu_count() or 1) < 2 or not sys.executable:
        return False
    if not is_registered(found):
        return False
    files = path.iterdir() if path.is_dir() else (path,)
    return sum(file.stat().st_size for file in files if file.is_file()) >= WORTH


def is_registered(found: Found) -> bool:
    """Returns whether another process finds the file's parser by name."""
    return type(by_name(found.parser.name)) is type(found.parser)


def read_here(found: Found) -> Iterator[list[Record]]:
    """Yields the same batches as `read_batches`, in this process."""
    records = read_records(found)
    while batch := list(islice(records, BATCH)):
        yield batch


def _read_in_process(found: Found) -> Iterator[list[Record]]:
    with subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-c", _CHILD.format(path=sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        try:
            requests, replies = cast(BinaryIO, child.stdin), cast(BinaryIO, child.stdout)
            _widen_pipe(replies)
            # A missing reply shows that the child is dead already.
            with suppress(BrokenPipeError), requests:
                pickle.dump((found.file.path, found.name, found.parser.name), requests)
            while (batch := _receive_batch(replies, found)) is not None:
                yield batch
        finally:
            child.kill()


def _widen_pipe(pipe: BinaryIO) -> None:
    """Enlarges the pipe to hold some batches, so that neither process waits at each of them."""
    with suppress(ImportError, AttributeError, OSError):  # a smaller one is only slower
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


def _receive_batch(stream: BinaryIO, found: Found) -> list[Record] | None:
    try:
        batch: list[Record] | None = pickle.load(stream)  # noqa: S301 - from our own process
    except (EOFError, pickle.UnpicklingError) as error:
        raise KnowledgeBaseError(
            f"the process that read {found.name} ended before the file did",
            fix="nothing of the file was kept; add it again, with more memory if that ran out",
        ) from error
    return batch


def found_file(path: Path, name: str, parser: Parser | FolderParser) -> Found:
    """Describes a file on disk, to be read and decompressed some blocks ahead."""
    if isinstance(parser, FolderParser):
        return FoundFolder(SourceFile(path), name, parser)
    return FoundFile(
        SourceFile(path), name, parser, lambda: io.BufferedReader(_ReadAheadFile(path), _BLOCK)
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

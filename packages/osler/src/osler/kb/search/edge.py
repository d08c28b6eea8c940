"""The embedded search backend: Qdrant Edge, in worker processes of its own.

Edge holds the interpreter's lock in every call, so it may not live in the process that
serves. Each process that searches starts its own workers, up to one a core, and they all
map the same files: the memory is there once, nobody has to find, lock or outlive anybody
else, and searches scale with the cores.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import weakref
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, BinaryIO

from osler.errors import BadConfig, KnowledgeBaseError
from osler.kb.search import generation, sparse
from osler.kb.search.base import Floats, PassageFilter, Ranking, merge_rankings, shelves_for
from osler.kb.search.generation import CurrentGeneration

VERSION = f"4/{sparse.VERSION}"
"""Version of layout and word vectors: an index of another version is made anew."""

_STOP_S = 5.0
"""Seconds that a worker gets to end by itself."""


def is_installed() -> bool:
    return find_spec("qdrant_edge") is not None


def require_installed() -> None:
    """Raises `BadConfig`."""
    if not is_installed():
        raise BadConfig(
            "the embedded engine needs the package qdrant-edge-py",
            fix='pip install "osler[edge]", or set kb.engine = "sqlite"',
        )


@dataclass(frozen=True)
class _OpenGeneration:
    """A generation that is being searched."""

    stamp: int
    current: CurrentGeneration
    pool: _WorkerGroup


class EdgeBackend(sparse.SparseDenseBackend):
    """A `SearchBackend` over the current generation in the folder of a knowledge base."""

    def __init__(self, kb: Path, *, workers: int | None = None) -> None:
        """`workers` at a time, at most; by default one a core. Raises `BadConfig`."""
        require_installed()
        self._kb = kb
        self._most = workers or os.cpu_count() or 1
        self._stems = sparse.StemHasher()
        self._opening = threading.Lock()
        self._open: _OpenGeneration | None = None

    def encoder_identity(self) -> str:
        """Identity of the encoder whose vectors are searched."""
        return self._open_generation().current.encoder

    def close(self) -> None:
        with self._opening:
            if self._open:
                self._open.pool.close()
            self._open = None
        self._stems.close()

    def _search(
        self, k: int, within: PassageFilter, words: sparse.Sparse | None, dense: Floats | None
    ) -> list[Ranking]:
        while True:
            opened = self._open_generation()
            try:
                return self._ask_pool(opened, k, within, words, dense)
            except _PoolClosed:
                continue  # another thread has opened the next generation meanwhile

    @staticmethod
    def _ask_pool(
        opened: _OpenGeneration,
        k: int,
        within: PassageFilter,
        words: sparse.Sparse | None,
        dense: Floats | None,
    ) -> list[Ranking]:
        present = [name for name in shelves_for(within) if name in opened.current.points]
        replies = [
            opened.pool.send_request(
                {
                    "shelf": name,
                    "k": k,
                    "conditions": _filter_conditions(within, opened.current.sources[name]),
                    "words": words,
                },
                b"" if dense is None else dense.astype("float32").tobytes(),
            )
            for name in present
        ]
        rankings = (words is not None) + (dense is not None)
        if not replies:
            return [[] for _ in range(rankings)]
        return [merge_rankings(of, k) for of in zip(*replies, strict=True)]

    def _open_generation(self) -> _OpenGeneration:
        """The current generation. After a swap one caller opens the new one; the others go on
        with the old one until it is there."""
        stamp, opened = generation.read_stamp(self._kb), self._open
        if opened is not None and opened.stamp == stamp:
            return opened
        if not self._opening.acquire(blocking=opened is None):
            assert opened is not None  # noqa: S101 - else it would have waited
            return opened
        try:
            return self._opened_now()
        finally:
            self._opening.release()

    def _opened_now(self) -> _OpenGeneration:
        while True:
            stamp, previous = generation.read_stamp(self._kb), self._open
            if previous is not None and previous.stamp == stamp:
                return previous
            current = generation.read_current(self._kb)
            if current is None:
                raise KnowledgeBaseError(
                    f"{self._kb} has no embedded index", fix="run `osler kb build`"
                )
            pool = _WorkerGroup(self._kb / generation.FOLDER / current.name, self._most)
            try:
                pool.start_first()
            except KnowledgeBaseError:
                pool.close()
                if generation.read_stamp(self._kb) != stamp:
                    continue  # swept away in this moment: another one is current
                raise
            self._open = _OpenGeneration(stamp, current, pool)
            if previous is not None:
                previous.pool.close()
            return self._open


def _filter_conditions(within: PassageFilter, present: Sequence[str]) -> dict[str, Any]:
    """Lists the conditions that a shelf with the sources `present` does not meet by itself."""
    conditions = within.conditions()
    if within.sources is not None and set(present) - set(within.sources):
        conditions["source"] = list(within.sources)
    return conditions


# A message is a JSON document and some bytes: numbers travel as they lie in memory.
_HEAD = struct.Struct("<II")


def send_message(stream: BinaryIO, document: dict[str, Any], data: bytes = b"") -> None:
    """Raises `OSError` if the reader has closed."""
    text = json.dumps(document, ensure_ascii=False).encode()
    stream.write(b"".join((_HEAD.pack(len(text), len(data)), text, data)))
    stream.flush()


def receive_message(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """`None` when the other side is gone, be it in the middle of a message."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    text_size, data_size = _HEAD.unpack(head)
    body = stream.read(text_size + data_size)
    if len(body) < text_size + data_size:
        return None
    return json.loads(body[:text_size]), body[text_size:]


class _PoolClosed(Exception):
    """Raised when the group's generation is no longer searched."""


class _WorkerDied(Exception):
    """Raised when a worker ended, or its reply cannot be read."""


class _Worker:
    """One process with the shards of one generation; asked by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        """Raises `_WorkerDied` when it does not come up."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        command = [sys.executable, "-m", "osler.kb.search.shard", str(folder)]
        try:
            self.process = subprocess.Popen(  # noqa: S603 - our own module
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
            )
        except OSError as error:
            self._errors.close()
            raise _WorkerDied(f"not started: {error}") from error
        try:
            self._read_reply()
        except BaseException:
            self.stop()
            raise

    def send_request(self, request: dict[str, Any], data: bytes) -> list[Ranking]:
        try:
            send_message(self._require_pipe(self.process.stdin), request, data)
        except (OSError, ValueError) as error:
            raise _WorkerDied(self._last_words()) from error
        reply, ids = self._read_reply()
        if "error" in reply:
            raise KnowledgeBaseError(
                f"the embedded engine failed: {reply['error']}",
                fix="run `osler kb build --rebuild`",
            )
        return _unpack_rankings(reply["sizes"], ids)

    def stop(self) -> None:
        """Ends it and waits for its end."""
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # it died with half a message in the pipe
                self._require_pipe(stream).close()
        try:
            self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._errors.close()

    def _read_reply(self) -> tuple[dict[str, Any], bytes]:
        try:
            reply = receive_message(self._require_pipe(self.process.stdout))
        except (OSError, ValueError) as error:
            raise _WorkerDied(self._last_words()) from error
        if reply is None:
            raise _WorkerDied(self._last_words())
        return reply

    @staticmethod
    def _require_pipe(stream: IO[bytes] | None) -> Any:
        assert stream is not None  # noqa: S101 - opened as pipes
        return stream

    def _last_words(self) -> str:
        """Describes how the process ended, with the last line that it wrote."""
        try:
            status = self.process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            status = None
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f"exit status {status}" + (f": {lines[-1]}" if lines else "")


def _unpack_rankings(sizes: list[int], data: bytes) -> list[Ranking]:
    total = sum(sizes)
    numbers, scores = array("q"), array("f")
    numbers.frombytes(data[: 8 * total])
    scores.frombytes(data[8 * total :])
    pairs = list(zip(numbers, scores, strict=True))
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    # Edge leaves the order of equal scores open.
    return [
        sorted(pairs[start : start + size], key=lambda pair: (-pair[1], pair[0]))
        for start, size in zip(starts, sizes, strict=True)
    ]


class _WorkerGroup:
    """The workers of one generation, as many as are in use at one time, up to `most`."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most
        self._idle: list[_Worker] = []
        self._started = 0
        self._changed = threading.Condition()
        self._closed = False
        self._closing = weakref.finalize(self, _stop_all, self._idle)

    def start_first(self) -> None:
        """Starts the first worker. Raises `KnowledgeBaseError` when it cannot work."""
        self._started = 1
        self._return_worker(self._start_worker())

    def send_request(self, request: dict[str, Any], data: bytes) -> list[Ranking]:
        """A worker that dies is replaced once. Raises `KnowledgeBaseError` when the next one
        dies of the same request, and `_PoolClosed`."""
        worker: _Worker | None = self._take_worker()
        try:
            assert worker is not None  # noqa: S101
            try:
                return worker.send_request(request, data)
            except _WorkerDied:
                worker.stop()
                worker = None
                worker = self._start_worker()
                return self._ask_again(worker, request, data)
        finally:
            self._return_worker(worker)

    @staticmethod
    def _ask_again(worker: _Worker, request: dict[str, Any], data: bytes) -> list[Ranking]:
        try:
            return worker.send_request(request, data)
        except _WorkerDied as died:
            raise _worker_error(died) from died

    def close(self) -> None:
        """Stops those that are idle now, and those in use when they come back."""
        with self._changed:
            self._closed = True
            self._closing()
            self._changed.notify_all()

    def _take_worker(self) -> _Worker:
        with self._changed:
            while not (worker := self._pop_idle()):
                if self._closed:
                    raise _PoolClosed
                if self._started == 0:
                    self._started = 1
                    break
                if self._started < self._most:
                    self._started += 1
                    threading.Thread(target=self._add_worker, daemon=True).start()
                self._changed.wait()
            else:
                return worker
        try:
            return self._start_worker()
        except BaseException:
            self._return_worker(None)
            raise

    def _pop_idle(self) -> _Worker | None:
        """An idle worker that lives. One that died meanwhile is no death of a request's worker."""
        while self._idle:
            worker = self._idle.pop()
            if worker.process.poll() is None:
                return worker
            worker.stop()
            self._started -= 1
        return None

    def _add_worker(self) -> None:
        """Starts one more worker for those who wait; they go on without it if that fails."""
        worker = None
        with suppress(KnowledgeBaseError):
            worker = self._start_worker()
        self._return_worker(worker)

    def _start_worker(self) -> _Worker:
        """One that does not come up is tried once more: the machine may be short for a moment."""
        try:
            with suppress(_WorkerDied):
                return _Worker(self._folder)
            return _Worker(self._folder)
        except _WorkerDied as died:
            raise _worker_error(died) from died

    def _return_worker(self, worker: _Worker | None) -> None:
        """Takes a worker back; `None` = it is no more."""
        with self._changed:
            if worker is None:
                self._started -= 1
            elif self._closed:
                worker.stop()
            else:
                self._idle.append(worker)
            self._changed.notify()


def _stop_all(idle: list[_Worker]) -> None:
    while idle:
        idle.pop().stop()


def _worker_error(died: _WorkerDied) -> KnowledgeBaseError:
    return KnowledgeBaseError(
        f"the worker of the embedded engine died twice ({died})",
        fix="free some memory; if that does not help, run `osler kb build --rebuild`",
    )


def remove_index(kb: Path) -> None:
    """Deletes the embedded index."""
    shutil.rmtree(kb / generation.FOLDER, ignore_errors=True)

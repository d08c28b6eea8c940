"""Uploads one after another, in a process apart from the threads that answer; keys take turns.

The process stores, deletes, and encodes what waits for its vector whenever no file does. It
starts with the first upload and ends when there has been nothing to do for a while.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from osler.settings import Settings
from osler_serve.keys import Caller
from osler_serve.problems import RefusedRequest, error_code

_LOG = logging.getLogger("osler_serve")
_CHILD = (
    "import sys; sys.path[:] = {path!r}; from osler_serve.ops.upload_worker import work; work()"
)
_LINE = 1 << 20
# Seconds without an upload before the next passages are encoded, and before the process ends.
_LULL, _IDLE = 0.2, 60.0
# Seconds until what failed for a reason that may pass is tried again, and until a process ends.
_AGAIN, _END = 5.0, 5.0
_BUSY = "KnowledgeBaseBusy"


@dataclass
class _Job:
    asked: tuple[str, ...]
    done: asyncio.Future[Any] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class _WorkFailed(Exception):
    """What the process says went wrong, or that it is gone."""

    def __init__(self, kind: str, message: str, fix: str) -> None:
        super().__init__(message)
        self.kind, self.message, self.fix = kind, message, fix

    def as_refusal(self) -> RefusedRequest:
        if self.kind == "BadUpload":
            return RefusedRequest(422, "bad_upload", self.message, fix=self.fix)
        code = error_code(self.kind)
        return RefusedRequest(503, code, self.message, fix=self.fix, retry_after=_AGAIN)


class UploadQueue:
    """The uploads of a server that wait or are read. `work` is its life."""

    problem = ""
    """Why passages are not encoded; "" while they are."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._inside = Counter[str]()
        # The first key is the next to have its turn.
        self._waiting: dict[str, deque[_Job]] = {}
        self._more = asyncio.Event()
        self._process: Process | None = None
        self._to_encode = bool(settings.serve.uploads)

    @contextmanager
    def hold_place(self, caller: Caller) -> Iterator[None]:
        """Holds a place of the caller's share for a request, before its body is read.

        Raises `RefusedRequest`: 429 beyond the share, 503 beyond what the server takes.
        """
        limits = self._settings.serve
        if self._inside[caller.id] >= limits.caller_uploads:
            said = f"{limits.caller_uploads} uploads of yours are being read"
            raise RefusedRequest(429, "too_many_uploads", said, retry_after=_AGAIN)
        if self._inside.total() >= limits.uploads_waiting:
            raise RefusedRequest(503, "busy", "too many uploads at once", retry_after=_AGAIN)
        self._inside[caller.id] += 1
        try:
            yield
        finally:
            self._inside[caller.id] -= 1

    async def ask(self, caller: Caller, *asked: str) -> Any:
        """What the process answers, when it is the caller's turn. Raises `RefusedRequest`."""
        job = _Job(asked)
        self._waiting.setdefault(caller.id, deque()).append(job)
        self._more.set()
        try:
            return await job.done
        except _WorkFailed as error:
            raise error.as_refusal() from error

    async def work(self) -> None:
        """Does what is asked, and encodes in between, until it is cancelled."""
        try:
            while True:
                self._more.clear()
                if job := self._next_job():
                    await self._do_job(job)
                elif self._to_encode and not await self._wait_for_more(_LULL):
                    await self._encode()
                elif not self._to_encode and not await self._wait_for_more(_IDLE):
                    await self._end_process()
                    await self._more.wait()
        finally:
            await self._end_process()

    def _next_job(self) -> _Job | None:
        """The first of the key whose turn it is; the key then stands last."""
        for key in self._waiting:
            jobs = self._waiting.pop(key)
            job = jobs.popleft()
            if jobs:
                self._waiting[key] = jobs
            return job
        return None

    async def _wait_for_more(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._more.wait()
        return False

    async def _do_job(self, job: _Job) -> None:
        try:
            done = await self._ask_process(*job.asked)
        except _WorkFailed as error:
            job.done.set_exception(error)
        else:
            if not job.done.done():
                job.done.set_result(done)
        self._to_encode = True

    async def _encode(self) -> None:
        """Some passages; what fails is tried again after the next upload."""
        try:
            behind = await self._ask_process("encode")
        except _WorkFailed as error:
            if error.kind == _BUSY:
                await self._wait_for_more(_AGAIN)
                return
            self.problem = f"{error.message}; {error.fix}" if error.fix else error.message
            _LOG.warning("uploads are not encoded: %s", self.problem)
            self._to_encode = False
        else:
            self.problem, self._to_encode = "", behind > 0

    async def _ask_process(self, *asked: str) -> Any:
        """Raises `_WorkFailed`."""
        if self._process is None:
            self._process = await self._start_process()
        process = self._process
        assert process.stdin is not None  # noqa: S101  both are pipes
        assert process.stdout is not None  # noqa: S101
        line = b""
        with suppress(ConnectionError, RuntimeError):  # the latter is uvloop's, of a closed pipe
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
        if not line:
            await self._end_process()
            raise _WorkFailed("WorkerGone", "the process that reads uploads ended", "try again")
        reply = json.loads(line)
        if "failed" in reply:
            raise _WorkFailed(*reply["failed"])
        return reply["done"]

    async def _start_process(self) -> Process:
        child = _CHILD.format(path=sys.path)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", child, stdin=PIPE, stdout=PIPE, limit=_LINE
        )
        assert process.stdin  # noqa: S101  it is a pipe
        process.stdin.write(self._settings.model_dump_json().encode() + b"\n")
        return process

    async def _end_process(self) -> None:
        """It ends by itself when nothing more can come; what it is at may be finished."""
        if (process := self._process) is None:
            return
        self._process = None
        assert process.stdin  # noqa: S101  it is a pipe
        process.stdin.close()
        try:
            async with asyncio.timeout(_END):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

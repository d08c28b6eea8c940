"""Several processes of one server: they share its address and its home.

The parent listens and starts them; one that dies is started again, and the others go on with its
runs (`handover`). A worker whose parent has gone stops too.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from socket import socket
from typing import TYPE_CHECKING

from osler.errors import BadConfig
from osler.settings import Settings
from osler_serve.metrics import METRICS_FOLDER

if TYPE_CHECKING:
    from osler_serve.state import ServerState

_LOG = logging.getLogger("osler_serve")
# What uvicorn ends with where the application cannot start.
_NO_START = 3
# Seconds before a worker that died is started again: one that always dies must not burn a core.
_PAUSE = 0.5
# Seconds beyond the draining that a worker has to end.
_END = 15.0

ServeWorker = Callable[[Settings, socket, int], None]


def check_workers(settings: Settings) -> None:
    """Raises `BadConfig` for what only a single process can do."""
    if settings.serve.workers == 1:
        return
    if not settings.runs.keep:
        said = "several workers know of each other's runs by what is kept"
        raise BadConfig(said, fix="set serve.workers = 1, or runs.keep = true")
    if settings.serve.launch_servers is not None:
        said = "who came by a launch is known to one process alone"
        raise BadConfig(said, fix="set serve.workers = 1, or take serve.launch_servers out")


def run_workers(site: ServerState, sock: socket, level: int, serve: ServeWorker) -> None:
    """Serves until SIGTERM or SIGINT; `serve` runs in each process, and `site` is the parent's
    own. Raises `BadConfig` where a worker cannot start."""
    settings = site.settings
    counts = settings.home / "serve" / "metrics"
    shutil.rmtree(counts, ignore_errors=True)
    counts.mkdir(parents=True)
    os.environ[METRICS_FOLDER] = str(counts)
    # While it is held the server lives: where all workers died at once, the next ones go on.
    with site.ledger.hold_open(site.desk.is_kept):
        team = _Team(settings, sock, level, serve)
        for kind in (signal.SIGTERM, signal.SIGINT):
            signal.signal(kind, lambda *_: team.over.set())
        team.run()
    site.ledger.close()


class _Team:
    def __init__(self, settings: Settings, sock: socket, level: int, serve: ServeWorker) -> None:
        self._settings, self._parts = settings, (settings, sock, level, serve)
        self.over = threading.Event()
        self._workers = [self._start() for _ in range(settings.serve.workers)]

    def _start(self) -> SpawnProcess:
        # spawn: a child forked from a process with threads may inherit locks held for ever.
        worker = multiprocessing.get_context("spawn").Process(target=_work, args=self._parts)
        worker.start()
        return worker

    def run(self) -> None:
        failed = False
        while not self.over.is_set() and not failed:
            wait([one.sentinel for one in self._workers], timeout=_PAUSE)
            for at, worker in enumerate(self._workers):
                if worker.exitcode is None or self.over.is_set():
                    continue
                _LOG.warning("worker %s ended with %s", worker.pid, worker.exitcode)
                failed = worker.exitcode == _NO_START
                time.sleep(_PAUSE)
                self._workers[at] = self._start()
        self._stop()
        if failed:
            raise BadConfig("a worker could not start", fix="its reason is in the log above")

    def _stop(self) -> None:
        for worker in self._workers:
            worker.terminate()
        until = time.monotonic() + self._settings.serve.drain_seconds + _END
        for worker in self._workers:
            worker.join(max(0.0, until - time.monotonic()))
            worker.kill()
            worker.join()


def _work(settings: Settings, sock: socket, level: int, serve: ServeWorker) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    serve(settings, sock, level)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None  # noqa: S101  it was started by one
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)

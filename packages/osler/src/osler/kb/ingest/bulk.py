"""Bulk work on many processes or machines: pure functions, mapped over shards of the work.

Whatever a shard gives is a function of the shard alone, and is written under a name that
is a hash of the shard: a shard that is done twice is done once, one whose worker died is
done again, and a job that was killed finds what it had done. One process, the one that
was asked, writes to the knowledge base; workers share with it only the folder.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from importlib.metadata import version
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from osler.errors import KnowledgeBaseError, StorageFailed, require_extra, translate_os_errors
from osler.kb.index import leases
from osler.kb.store.access import write_transaction
from osler.kb.store.passages import Progress, indexed_text, read_meta
from osler.llm.core.cache import write_whole

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder

FOLDER = "bulk"
"""Subfolder of a knowledge base with results that it has not stored yet."""

SIZE = 1024
"""Passages of a shard at most: about 15 s of the default encoder on one core."""
# Of a small knowledge base a shard has fewer, so that every worker has some and progress is seen.
_FEWEST, _SHARDS = 64, 32

_TRIES = 4
"""Tries of a shard before it is held responsible for the death of its workers."""

Make = Callable[[], Callable[[Any], Any]]
"""Makes a stage in a worker, once: it loads the model there. It must be picklable."""


class WorkerPool(Protocol):
    """Maps a stage over tasks."""

    def map(self, make: Make, tasks: Iterable[Any]) -> Iterator[Any]:
        """Results as they come, in any order. Raises what a stage raises, and
        `KnowledgeBaseError` for a task of which worker after worker dies."""


def _pack_stage(make: Make) -> bytes:
    return pickle.dumps((version("osler"), pickle.dumps(make)))


@lru_cache(maxsize=2)
def _make_stage(packed: bytes) -> Callable[[Any], Any]:
    """Raises `KnowledgeBaseError` on a machine with another version, whose results may differ."""
    asking, make = pickle.loads(packed)  # noqa: S301 - from our own process
    if asking != (own := version("osler")):
        raise KnowledgeBaseError(
            f"{gethostname()} has Osler {own}, and who asks has {asking}",
            fix="install the same version on every node; what is done is kept",
        )
    stage: Callable[[Any], Any] = pickle.loads(make)()  # noqa: S301
    return stage


def _call_stage(make: bytes, task: Any) -> Any:
    return _make_stage(make)(task)


@dataclass(frozen=True, slots=True)
class ProcessWorkerPool:
    """Workers on this machine."""

    workers: int

    def map(self, make: Make, tasks: Iterable[Any]) -> Iterator[Any]:
        pickled, waiting, tries = _pack_stage(make), iter(tasks), dict[bytes, int]()
        begun: list[Any] = []
        while True:
            # spawn: a child forked from a process with threads may inherit locks held for ever.
            with ProcessPoolExecutor(self.workers, get_context("spawn")) as pool:
                try:
                    yield from self._map_through(pool, pickled, waiting, begun)
                except BrokenProcessPool as error:
                    _count_tries(begun, tries, error)
                    continue
            return

    def _map_through(
        self, pool: ProcessPoolExecutor, make: bytes, waiting: Iterator[Any], begun: list[Any]
    ) -> Iterator[Any]:
        """`begun` holds the tasks without a result yet, also when the pool breaks."""
        running: dict[Future[Any], Any] = {
            pool.submit(_call_stage, make, task): task for task in begun
        }
        while True:
            # Two tasks a worker: none stands idle, and a broken pool repeats little.
            for task in islice(waiting, max(0, 2 * self.workers - len(running))):
                begun.append(task)
                running[pool.submit(_call_stage, make, task)] = task
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                result = future.result()
                begun.remove(running.pop(future))
                yield result


def _count_tries(begun: Sequence[Any], tries: dict[bytes, int], error: BaseException) -> None:
    for task in begun:
        key = sha256(pickle.dumps(task)).digest()
        tries[key] = tries.get(key, 0) + 1
        if tries[key] >= _TRIES:
            raise KnowledgeBaseError(
                f"a worker died {_TRIES} times on the same shard",
                fix="use fewer workers if memory ran out; what is done is kept",
            ) from error


@dataclass(frozen=True, slots=True)
class RayWorkerPool:
    """Workers of a Ray cluster (extra `ray`); without an address, of one on this machine."""

    workers: int
    address: str | None = None

    def map(self, make: Make, tasks: Iterable[Any]) -> Iterator[Any]:
        with require_extra("ray", "work on a Ray cluster needs the package ray"):
            import ray

        with self._connect_cluster(ray):
            call = ray.remote(num_cpus=1, max_retries=_TRIES - 1)(_call_stage)
            pickled, waiting = ray.put(_pack_stage(make)), iter(tasks)
            running = [call.remote(pickled, task) for task in islice(waiting, 2 * self.workers)]
            while running:
                (done,), running = ray.wait(running)
                try:
                    yield ray.get(done)
                except ray.exceptions.RayTaskError as error:
                    raise error.cause from error
                except ray.exceptions.WorkerCrashedError as error:
                    raise KnowledgeBaseError(
                        f"a worker died {_TRIES} times on the same shard",
                        fix="give the workers more memory; what is done is kept",
                    ) from error
                running += [call.remote(pickled, task) for task in islice(waiting, 1)]

    @contextmanager
    def _connect_cluster(self, ray: Any) -> Iterator[None]:
        if ray.is_initialized():
            yield
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it reports to its makers else
        own = {} if self.address else {"num_cpus": self.workers, "include_dashboard": False}
        # Without an address Ray would join whatever cluster this machine has begun last.
        address = self.address or "local"
        ray.init(address=address, log_to_driver=False, configure_logging=False, **own)
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def open_spool(kb: Path) -> Iterator[Path]:
    """The folder of what shards give. A job that ends well leaves none; one that was killed
    leaves what it had done to the next."""
    folder = kb / FOLDER
    folder.mkdir(exist_ok=True)
    yield folder
    shutil.rmtree(folder)


# Encoding


@dataclass(frozen=True, slots=True)
class EncodingShard:
    """Passages to encode, and where their vectors go."""

    key: str
    """Hash of the encoder's identity and of all ids and texts."""
    passages: leases.Batch
    file: Path


def make_shard(identity: str, passages: leases.Batch, folder: Path) -> EncodingShard:
    digest = sha256(identity.encode() + b"\n")
    for _, passage in passages:
        digest.update(passage.id.encode() + b"\n")
        digest.update(sha256(indexed_text(passage).encode()).digest())
    key = digest.hexdigest()[:32]
    return EncodingShard(key, passages, folder / f"{key}.npy")


def _load_encoding(make: Callable[[], Encoder]) -> Callable[[EncodingShard], EncodingShard]:
    return partial(_encode_shard, make())


def _encode_shard(encoder: Encoder, shard: EncodingShard) -> EncodingShard:
    if not shard.file.exists():
        vectors = leases.encode_batch(encoder, [passage for _, passage in shard.passages])
        failed = f"{gethostname()} cannot write a result"
        fix = "make room there and build again; what is done is kept"
        # Whole or not at all: a shard that another worker did too stays whole.
        with translate_os_errors(failed, StorageFailed, fix), write_whole(shard.file) as draft:
            np.save(draft, vectors)
    return shard


def encode_pending(
    db: sqlite3.Connection,
    folder: Path,
    make: Callable[[], Encoder],
    runner: WorkerPool,
    *,
    progress: Progress,
    size: int = 0,
) -> int:
    """Encodes all passages that want a vector; returns how many vectors it wrote.

    `size`: passages of a shard; 0 = by how many passages there are in all, so that a build that
    goes on cuts the same shards.

    `db` is that of the one process that builds, whose encoder is adopted
    (`index.begin_build`); `folder` is one that all workers see.
    """
    total, written = leases.count_pending(db), 0
    if not size:
        (every,) = db.execute("SELECT count(*) FROM passage").fetchone()
        size = min(SIZE, max(_FEWEST, every // _SHARDS))
    progress("encode", 0, total)
    identity = read_meta(db, "encoder")
    shards = (make_shard(identity, rows, folder) for rows in leases.pending_batches(db, size))
    for done in runner.map(partial(_load_encoding, make), shards):
        with write_transaction(db):
            written += leases.insert_vectors(db, done.passages, np.load(done.file))
        done.file.unlink(missing_ok=True)
        progress("encode", written, total)
    return written

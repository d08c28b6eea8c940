"""Bulk work on many processes or machines: the same pure functions, mapped over shards.

Whatever a shard gives is a function of the shard alone, and is written under a name that
is a hash of the shard: a shard that is done twice is done once, one whose worker died is
done again, and a job that was killed finds what it had done. One process, the one that
was asked, writes to the knowledge base; workers share with it only the folder.
"""

from __future__ import annotations

import io
import os
import pickle
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from osler.errors import BadConfig, KnowledgeBaseError
from osler.kb.index.leases import encode_batch
from osler.kb.ingest import file_table, reader_process
from osler.kb.ingest.prepare import IngestOptions, Outcome, prepare_batch
from osler.kb.store.access import write_transaction
from osler.kb.store.passages import Progress, indexed_text, read_meta, read_numbered
from osler.sources.discover import Found, discover
from osler.sources.formats import by_name
from osler.sources.records import Drop
from osler.types import Passage

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder

FOLDER = "bulk"
"""Of a knowledge base: what shards have given and the knowledge base has not taken yet."""

SIZE = 1024
"""Passages of a shard: about 15 s of the default encoder on one core."""

_TRIES = 4
"""Times that a shard is begun before a worker that always dies of it is believed."""

Outcomes = Callable[[Found, IngestOptions], Iterator[list[Outcome]]]
"""A file's records, prepared, some at a time; `aside.outcomes` is the ordinary one."""

Make = Callable[[], Callable[[Any], Any]]
"""Makes a stage in a worker, once: it loads the model there. It must be picklable."""


class WorkerPool(Protocol):
    """Maps a stage over tasks."""

    def map(self, make: Make, tasks: Iterable[Any]) -> Iterator[Any]:
        """Results as they come, in any order. Raises what a stage raises, and
        `KnowledgeBaseError` for a task of which worker after worker dies."""
        ...


@lru_cache(maxsize=2)
def _make_stage(make: bytes) -> Callable[[Any], Any]:
    made: Callable[[Any], Any] = pickle.loads(make)()  # noqa: S301 - from our own process
    return made


def _call_stage(make: bytes, task: Any) -> Any:
    return _make_stage(make)(task)


@dataclass(frozen=True, slots=True)
class ProcessWorkerPool:
    """Workers on this machine."""

    workers: int

    def map(self, make: Make, tasks: Iterable[Any]) -> Iterator[Any]:
        pickled, waiting, tries = pickle.dumps(make), iter(tasks), dict[bytes, int]()
        begun: list[Any] = []
        while True:
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
                f"a worker died {_TRIES} times of the same shard",
                fix="use fewer workers if memory ran out; what is done is kept",
            ) from error


@dataclass(frozen=True, slots=True)
class RayWorkerPool:
    """Workers of a Ray cluster (extra `ray`); without an address, of one on this machine."""

    workers: int
    address: str | None = None

    def map(self, make: Make, tasks: Iterable[Any]) -> Iterator[Any]:
        if find_spec("ray") is None:
            raise BadConfig(
                "work on a Ray cluster needs the package ray", fix='pip install "osler[ray]"'
            )
        import ray

        with self._connect_cluster(ray):
            call = ray.remote(num_cpus=1, max_retries=_TRIES - 1)(_call_stage)
            pickled, waiting = ray.put(pickle.dumps(make)), iter(tasks)
            running = [call.remote(pickled, task) for task in islice(waiting, 2 * self.workers)]
            while running:
                (done,), running = ray.wait(running)
                try:
                    yield ray.get(done)
                except ray.exceptions.RayTaskError as error:
                    raise error.cause from error
                except ray.exceptions.WorkerCrashedError as error:
                    raise KnowledgeBaseError(
                        f"a worker died {_TRIES} times of the same shard",
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
        ray.init(address=self.address, log_to_driver=False, configure_logging=False, **own)
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
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


# Encoding


@dataclass(frozen=True, slots=True)
class EncodingShard:
    """Passages to encode, and where their vectors go."""

    key: str
    """Hash of the encoder's identity and of all ids and texts."""
    passages: tuple[tuple[int, Passage], ...]
    file: Path


def make_shard(
    identity: str, passages: Sequence[tuple[int, Passage]], folder: Path
) -> EncodingShard:
    digest = sha256(identity.encode() + b"\n")
    for _, passage in passages:
        digest.update(passage.id.encode() + b"\n")
        digest.update(sha256(indexed_text(passage).encode()).digest())
    key = digest.hexdigest()[:32]
    return EncodingShard(key, tuple(passages), folder / f"{key}.npy")


@dataclass(frozen=True)
class EncodingStage:
    """The stage: vectors of a shard, written whole or not at all."""

    encoder: Encoder

    def __call__(self, given: EncodingShard) -> EncodingShard:
        if not given.file.exists():
            vectors = encode_batch(self.encoder, [passage for _, passage in given.passages])
            whole = io.BytesIO()
            np.save(whole, vectors)
            draft = given.file.with_suffix(f".{os.getpid()}.new")
            draft.write_bytes(whole.getvalue())
            os.replace(draft, given.file)
        return given


@dataclass(frozen=True)
class EncodingStageFactory:
    """Makes the stage in a worker."""

    encoder: Callable[[], Encoder]

    def __call__(self) -> EncodingStage:
        return EncodingStage(self.encoder())


def encode_pending(
    db: sqlite3.Connection,
    folder: Path,
    make: Callable[[], Encoder],
    runner: WorkerPool,
    *,
    progress: Progress,
    total: int,
    size: int = SIZE,
) -> int:
    """Vectors for all passages that want one; returns how many it wrote.

    `db` is that of the one process that builds, whose encoder is adopted (`index.begin`);
    `folder` is one that all workers see.
    """
    progress("encode", 0, total)
    written = 0
    for done in runner.map(EncodingStageFactory(make), _pending_shards(db, folder, size)):
        written += _store_shard(db, done)
        progress("encode", written, total)
    return written


_WANTING = (
    "SELECT * FROM passage WHERE number > ? AND instr(?, ' ' || language || ' ')"
    " AND number NOT IN (SELECT passage FROM vector) ORDER BY number LIMIT ?"
)


def _pending_shards(db: sqlite3.Connection, folder: Path, size: int) -> Iterator[EncodingShard]:
    last, languages = 0, f" {read_meta(db, 'languages')} "
    while rows := list(read_numbered(db, _WANTING, (last, languages, size))):
        yield make_shard(read_meta(db, "encoder"), rows, folder)
        last = rows[-1][0]


def _store_shard(db: sqlite3.Connection, done: EncodingShard) -> int:
    """The vectors into the knowledge base; once, however often the shard was done."""
    vectors = np.load(done.file)
    with write_transaction(db):
        rows = [(n, v.tobytes()) for (n, _), v in zip(done.passages, vectors, strict=True)]
        written = db.executemany("INSERT OR IGNORE INTO vector VALUES (?, ?)", rows).rowcount
    done.file.unlink(missing_ok=True)
    return written


# Parsing


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A file to read and prepare, and where its records go."""

    path: Path
    name: str
    parser: str
    how: IngestOptions
    file: Path


@dataclass(frozen=True)
class PreparationStage:
    """The stage: a file's records, each ready for the store, written whole or not at all."""

    def __call__(self, given: UnreadFile) -> UnreadFile:
        if not given.file.exists():
            found = reader_process.found_file(given.path, given.name, by_name(given.parser))
            draft = given.file.with_suffix(f".{os.getpid()}.new")
            with draft.open("wb") as file:
                for batch in reader_process.read_here(found):
                    prepared = prepare_batch(batch, given.how)
                    pickle.dump(prepared, file, protocol=pickle.HIGHEST_PROTOCOL)
            os.replace(draft, given.file)
        return given


def prepare_files(
    db: sqlite3.Connection,
    paths: Sequence[Path],
    how: IngestOptions,
    folder: Path,
    runner: WorkerPool,
    progress: Progress,
) -> Outcomes:
    """Reads and prepares the files that are new or changed, and returns what `ingest` asks for
    their records. Members of archives are left to the process that writes."""
    for done, _ in enumerate(
        runner.map(PreparationStage, _unread_files(db, paths, how, folder)), 1
    ):
        progress("files read", done, None)

    def spooled_outcomes(found: Found, how: IngestOptions) -> Iterator[list[Outcome]]:
        file = folder / f"{_spool_key(found, how)}.records"
        yield from _read_spool(file) if file.exists() else reader_process.read_outcomes(found, how)

    return spooled_outcomes


def _unread_files(
    db: sqlite3.Connection, paths: Sequence[Path], how: IngestOptions, folder: Path
) -> Iterator[UnreadFile]:
    known = (
        "SELECT 1 FROM file WHERE source = ? AND path = ? AND complete AND (size, mtime) = (?, ?)"
    )
    for found in discover(paths, fmt=how.fmt):
        if isinstance(found, Drop) or found.file.member or not reader_process.is_registered(found):
            continue
        path = found.file.path
        stamp = file_table.stamp_of(path)
        if db.execute(known, (how.source, str(path), stamp.size, stamp.mtime)).fetchone() is None:
            file = folder / f"{_spool_key(found, how)}.records"
            yield UnreadFile(path, found.name, found.parser.name, how, file)


def _spool_key(found: Found, how: IngestOptions) -> str:
    """Equal for a file that has not changed and is read in the same way."""
    stamp = file_table.stamp_of(found.file.path)
    parts = (str(found.file), str(found.file.path), stamp, found.parser.name, how)
    return sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()[:32]


def _read_spool(file: Path) -> Iterator[list[Outcome]]:
    with file.open("rb") as stream:
        while stream.peek(1):
            yield pickle.load(stream)  # noqa: S301 - our own workers wrote it
    file.unlink()

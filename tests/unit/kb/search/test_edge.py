"""The embedded engine: its processes, its generations, and what happens when they are killed."""

import asyncio
import errno
import os
import select
import signal
import sqlite3
import subprocess
import sys
import threading
from array import array
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from osler.errors import (
    BadConfig,
    KnowledgeBaseError,
    KnowledgeBaseMismatch,
    KnowledgeBaseUnbuilt,
    SourceUnavailable,
)
from osler.kb.base import KnowledgeBase
from osler.kb.search import backends, edge_build, generation, shard
from osler.kb.search import edge as edge_module
from osler.kb.search.base import BackendChoice
from osler.retrieve.hybrid import HybridRetriever, LexicalRetriever, retriever_over
from osler_lab.testing.scripted import HashingEncoder

from .conftest import add, describe

pytest.importorskip("qdrant_edge", reason="the extra edge is not installed")

QUERY = "ferrous salts for iron deficiency anaemia"


class Other(HashingEncoder):
    identity = "other-64"


def children() -> Iterator[tuple[int, str]]:
    """Processes of ours and how they are ("S" sleeps, "Z" is a zombie)."""
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            try:
                yield int(pid), Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except FileNotFoundError:
                continue


def workers(module: str = "search.shard") -> list[int]:
    return [
        pid
        for pid, state in children()
        if state != "Z" and module in Path(f"/proc/{pid}/cmdline").read_text()
    ]


async def ids(kb: KnowledgeBase, query: str = QUERY, k: int = 9) -> list[str]:
    return [
        hit.passage.id for hit in await HybridRetriever(kb, HashingEncoder()).search(query, k=k)
    ]


def prints(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def current(kb: KnowledgeBase) -> generation.CurrentGeneration:
    found = generation.read_current(kb.path)
    assert found is not None
    return found


# Processes


async def test_a_killed_worker_is_replaced_and_the_search_goes_on(edge: KnowledgeBase) -> None:
    before = await ids(edge)
    (worker,) = workers()
    os.kill(worker, signal.SIGKILL)
    assert await ids(edge) == before
    assert workers() != [worker]


async def test_a_worker_that_died_idle_counts_for_no_death_of_a_search(
    edge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await ids(edge)
    (idle,) = workers()
    os.kill(idle, signal.SIGKILL)
    ended = os.WEXITED | os.WNOWAIT  # and is not reaped
    await asyncio.to_thread(os.waitid, os.P_PID, idle, ended)
    start = edge_module._WorkerGroup._start_worker
    killed: list[edge_module._Worker] = []

    def start_killed_once(group: edge_module._WorkerGroup) -> edge_module._Worker:
        worker = start(group)
        if not killed:
            worker.process.kill()
            worker.process.wait()
            killed.append(worker)
        return worker

    monkeypatch.setattr(edge_module._WorkerGroup, "_start_worker", start_killed_once)
    assert await ids(edge) == before
    assert len(killed) == 1


async def test_searches_in_whose_midst_workers_are_killed_find_what_they_would_have(
    edge: KnowledgeBase,
) -> None:
    before, killed = await ids(edge), set()
    for _ in range(3):
        searches = [asyncio.ensure_future(ids(edge)) for _ in range(4)]
        await asyncio.wait(searches, return_when=asyncio.FIRST_COMPLETED)
        for worker in workers():
            os.kill(worker, signal.SIGKILL)
            killed.add(worker)
        assert await asyncio.gather(*searches) == [before] * 4
        # So that none meets a second kill: a request of which two workers die is given up.
        assert await asyncio.gather(*(ids(edge) for _ in range(4))) == [before] * 4
    assert len(killed) >= 3


async def test_a_worker_that_cannot_come_back_is_one_clear_error(edge: KnowledgeBase) -> None:
    await ids(edge)
    for part in (edge.path / "edge" / current(edge).name / "texts").rglob("segment.json"):
        part.write_text("{")
    (worker,) = workers()
    os.kill(worker, signal.SIGKILL)
    with pytest.raises(SourceUnavailable, match="worker of the embedded engine died"):
        await ids(edge)


@pytest.mark.parametrize(("failing", "found"), [(1, True), (2, False)])
async def test_a_worker_that_the_system_cannot_start_is_tried_once_more(
    edge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch, failing: int, found: bool
) -> None:
    start = subprocess.Popen
    failed: list[list[str]] = []

    def start_later(command: list[str], **pipes: Any) -> subprocess.Popen[bytes]:
        if len(failed) < failing:
            failed.append(command)
            raise OSError(errno.EAGAIN, "no process to be had")
        return start(command, **pipes)

    monkeypatch.setattr(subprocess, "Popen", start_later)
    if found:
        assert await ids(edge)
    else:
        with pytest.raises(SourceUnavailable, match="no process to be had"):
            await ids(edge)
        assert await ids(edge)  # the next search starts anew
    assert len(failed) == failing


async def test_closing_leaves_no_process_and_no_zombie(edge: KnowledgeBase) -> None:
    await ids(edge)
    assert len(workers()) == 1
    before = {pid for pid, _ in children()}
    edge.close()
    gone = before - {pid for pid, _ in children()}
    assert len(gone) == 1
    assert workers() == []


def test_workers_end_with_the_process_that_was_killed(edge: KnowledgeBase) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from osler.kb.base import KnowledgeBase\n"
        "from osler.kb.search.base import BackendChoice\n"
        "kb = KnowledgeBase.open(Path(sys.argv[1]), BackendChoice('edge'))\n"
        "kb.by_words(['iron'], k=1)\n"
        "print(Path('/proc/self/task').joinpath(str(__import__('os').getpid()), 'children')"
        ".read_text(), flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", script, str(edge.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        (worker,) = map(int, other.stdout.readline().split())
        watch = os.pidfd_open(worker)  # readable once the process has ended, reaped or not
        try:
            assert select.select([watch], [], [], 0)[0] == [], "it lives while its parent does"
            other.kill()
            ended, _, _ = select.select([watch], [], [], 10)
            assert ended == [watch], "the worker outlived the process that started it"
        finally:
            os.close(watch)


async def test_processes_share_the_files_and_change_none(edge: KnowledgeBase) -> None:
    """No lock keeps a second worker out: it reads the same files, so none may change them."""
    folder = edge.path / "edge" / current(edge).name
    before = prints(folder)
    found = await ids(edge)
    with KnowledgeBase.open(edge.path, BackendChoice("edge")) as second:
        assert await ids(second) == found
        assert len(workers()) == 2
        assert prints(folder) == before
    assert prints(folder) == before


async def test_many_threads_share_the_workers(edge: KnowledgeBase) -> None:
    alone = await ids(edge)
    seen: list[list[str]] = []
    retriever = HybridRetriever(edge, HashingEncoder())

    def ask() -> None:
        hits = [retriever.search_index(QUERY, 9) for _ in range(5)]
        seen.extend([hit.passage.id for hit in found] for found in hits)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [alone] * 40
    assert len(workers()) <= (os.cpu_count() or 1)


# Generations


async def test_a_change_travels_alone_and_a_search_sees_it(
    edge: KnowledgeBase, tmp_path: Path
) -> None:
    first = current(edge).name
    assert "wiki:scurvy#0" not in await ids(edge, "scurvy oranges")
    add(edge, tmp_path / "files", "wiki", {"scurvy": "Scurvy wants oranges."})
    edge.remove(source="wiki", document="asthma")
    told: list[tuple[str, int, int | None]] = []
    edge.build(HashingEncoder(), progress=lambda *step: told.append(step))
    assert [step for step in told if step[0] == "index"] == [("index", 1, 1)]
    assert await ids(edge, "scurvy oranges", 1) == ["wiki:scurvy#0"]
    assert "wiki:asthma#0" not in await ids(edge, "salbutamol airways")
    assert [p.name for p in (edge.path / "edge").iterdir() if p.is_dir()] == [current(edge).name]
    assert current(edge).name != first


async def test_a_document_that_is_retracted_changes_its_shelf(edge: KnowledgeBase) -> None:
    assert "research:review#0" in await ids(edge)
    describe(edge, "review", retracted=1)
    edge.build(HashingEncoder())
    assert "research:review#0" not in await ids(edge)
    assert current(edge).points == {"patients": 1, "retracted": 2, "texts": 6}
    describe(edge, "review", retracted=0)
    edge.build(HashingEncoder())
    assert "research:review#0" in await ids(edge)


async def test_a_build_without_a_change_makes_no_generation(edge: KnowledgeBase) -> None:
    before = current(edge)
    edge.build(HashingEncoder())
    assert current(edge) == before


async def test_readers_go_on_while_it_is_rebuilt(edge: KnowledgeBase, tmp_path: Path) -> None:
    retriever, stop = HybridRetriever(edge, HashingEncoder()), threading.Event()
    failures: list[Exception] = []
    searches = 0

    def read() -> None:
        nonlocal searches
        while not stop.is_set():
            try:
                assert retriever.search_index(QUERY, 3)
                searches += 1
            except Exception as error:
                failures.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    with KnowledgeBase.open(edge.path, BackendChoice("edge")) as writer:
        for n in range(2):
            add(writer, tmp_path / "files", "wiki", {f"new{n}": f"Number {n} is new."})
            writer.build(HashingEncoder())
    stop.set()
    thread.join()
    assert searches >= 2
    assert failures == []
    assert "wiki:new1#0" in await ids(edge, "number new")


async def test_what_a_killed_build_leaves_is_swept_and_the_old_one_stays(
    edge: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await ids(edge)

    def killed(what: str, done: int, total: int | None) -> None:
        if what == "index":
            raise KeyboardInterrupt

    add(edge, tmp_path / "files", "wiki", {"scurvy": "Scurvy wants oranges."})
    with pytest.raises(KeyboardInterrupt):
        edge.build(HashingEncoder(), progress=killed)
    assert len([p for p in (edge.path / "edge").iterdir() if p.is_dir()]) == 2
    assert await ids(edge) == before
    edge.build(HashingEncoder())
    assert len([p for p in (edge.path / "edge").iterdir() if p.is_dir()]) == 1
    assert await ids(edge, "scurvy", 1) == ["wiki:scurvy#0"]


@pytest.mark.parametrize("when", ["index", "optimise"])
async def test_a_builder_that_is_killed_is_one_clear_error_and_the_next_build_goes_on(
    edge: KnowledgeBase, tmp_path: Path, when: str
) -> None:
    before, killed = await ids(edge), []

    def kill(what: str, done: int, total: int | None) -> None:
        if what == when:
            killed.extend(workers("edge_build"))
            for builder in killed:
                os.kill(builder, signal.SIGKILL)

    add(edge, tmp_path / "files", "wiki", {"scurvy": "Scurvy wants oranges."})
    with pytest.raises(KnowledgeBaseError, match="could not be made"):
        edge.build(HashingEncoder(), progress=kill)
    assert len(killed) == 1
    assert await ids(edge) == before
    edge.build(HashingEncoder())
    assert await ids(edge, "scurvy", 1) == ["wiki:scurvy#0"]
    assert edge.verify() == []


async def test_after_a_rollback_the_index_of_the_later_state_is_not_searched(
    edge: KnowledgeBase, tmp_path: Path
) -> None:
    edge.take_snapshot("before")
    edge.remove(source="guideline")
    edge.build(HashingEncoder())
    KnowledgeBase.restore(edge.path, "before")
    with pytest.raises(SourceUnavailable, match="no embedded index of its last build"):
        await ids(edge)
    with KnowledgeBase.open(edge.path) as automatic:  # the file is right: it is searched
        assert "guideline:advice#0" in await ids(automatic)
    edge.build(HashingEncoder())
    assert "guideline:advice#0" in await ids(edge)


async def test_another_encoder_begins_anew(edge: KnowledgeBase) -> None:
    await ids(edge)
    edge.build(Other(), rebuild=True)
    with pytest.raises(SourceUnavailable, match=r"built by encoder other-64, not by .*hashing-64"):
        await ids(edge)
    assert current(edge).encoder == "other-64"


def test_a_retriever_wants_the_encoder_that_built_the_vectors(edge: KnowledgeBase) -> None:
    with pytest.raises(KnowledgeBaseMismatch) as caught:
        retriever_over(edge, Other())
    assert "kb build --rebuild" in caught.value.fix


def test_an_index_that_failed_to_be_made_is_one_clear_error(
    edge: KnowledgeBase, tmp_path: Path
) -> None:
    add(edge, tmp_path / "files", "wiki", {"scurvy": "Scurvy wants oranges."})
    for part in (edge.path / "edge" / current(edge).name).rglob("segment.json"):
        part.write_text("{")
    with pytest.raises(KnowledgeBaseError, match="the embedded index could not be made"):
        edge.build(HashingEncoder())
    edge.build(HashingEncoder(), rebuild=True)
    assert current(edge).points["texts"] == 8


def test_a_damaged_pointer_is_one_clear_error(edge: KnowledgeBase) -> None:
    (edge.path / "edge" / "current.json").write_text("{")
    with pytest.raises(KnowledgeBaseError, match=r"the embedded index of .* is damaged"):
        edge.by_words(["iron"], k=1)


def test_verify_tells_where_the_index_does_not_hold_what_was_built(edge: KnowledgeBase) -> None:
    assert edge.verify() == []
    points = edge.path / "edge" / current(edge).name / generation.POINTS
    with closing(sqlite3.connect(points)) as db, db:
        db.execute("DELETE FROM point WHERE number = 1")
    changed = "files of the embedded index changed since it was built: points.sqlite"
    assert edge.verify() == [changed]
    generation.swap_current(edge.path, current(edge))  # as an index that was made so
    assert edge.verify() == [
        "the embedded index lacks 1 passages of the last build and has 0 too many"
    ]
    points.unlink()
    assert edge.verify() == [f"the embedded index has lost its generation {current(edge).name}"]


# Choice


def test_without_its_package_the_engine_is_refused_with_the_command(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_module, "is_installed", lambda: False)
    with KnowledgeBase.open(folder, BackendChoice("edge")) as kb:
        with pytest.raises(BadConfig) as caught:
            kb.build(HashingEncoder())
        assert 'pip install "osler[edge]"' in caught.value.fix


async def test_auto_makes_the_index_from_a_size_on_and_takes_it_away_below(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KnowledgeBase.open(folder) as kb:
        kb.build(HashingEncoder())
        assert not (folder / "edge").exists()
        assert await ids(kb)
        monkeypatch.setattr(backends, "EDGE_FROM", 5)
        kb.build(HashingEncoder())
        assert (folder / "edge").exists()
        assert await ids(kb)
        assert len(workers()) == 1
        monkeypatch.setattr(backends, "EDGE_FROM", 5_000)
        kb.build(HashingEncoder())
        assert not (folder / "edge").exists()
        assert await ids(kb)


async def test_auto_without_the_package_searches_the_file(
    edge: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_module, "is_installed", lambda: False)
    with KnowledgeBase.open(edge.path) as kb:
        assert await ids(kb)
        assert workers() == []


async def test_before_the_first_build_there_is_nothing_to_search(folder: Path) -> None:
    with KnowledgeBase.open(folder, BackendChoice("edge")) as kb:
        with pytest.raises(SourceUnavailable):
            await LexicalRetriever(kb).search("iron", k=1)
        with pytest.raises(KnowledgeBaseUnbuilt):
            retriever_over(kb, HashingEncoder())


def test_a_sync_of_the_same_build_does_nothing(edge: KnowledgeBase) -> None:
    now = current(edge)
    assert not edge_build.sync_generation(
        edge.path,
        build=now.build,
        encoder=now.encoder,
        dimension=now.dimension,
        progress=lambda *_: None,
    )


def test_folder_of_a_builder_that_outlived_its_starter_is_nobody_elses(tmp_path: Path) -> None:
    """Nor when it was swept away meanwhile, and its number is free again."""
    first = edge_build._reserve_folder(tmp_path)
    second = edge_build._reserve_folder(tmp_path)
    assert (first.name[:6], second.name[:6]) == ("000001", "000002")
    generation.sweep_old(tmp_path)
    again = edge_build._reserve_folder(tmp_path)
    assert again.name[:6] == "000001"
    assert again != first
    with pytest.raises(FileNotFoundError, match="is gone"):
        edge_build.make_generation(tmp_path, first, None, 4)


def test_few_passages_are_searched_more_broadly_than_many() -> None:
    sizes = (1_000, 50_000, 200_000, 400_000, 1_000_000)
    assert [shard.search_breadth(size) for size in sizes] == [512, 512, 250, 125, 112]


def test_a_worker_searches_each_shelf_as_broadly_as_its_size_allows() -> None:
    asked: list[Any] = []

    class Shelf:
        def query_batch(self, batch: Any) -> list[list[Any]]:
            asked.extend(batch.queries)
            return [[]]

    request = {"shelf": "web", "k": 10, "conditions": {}, "words": None}
    told, _ = shard._answer_request({"web": (Shelf(), 512)}, request, array("f", [1.0]).tobytes())

    assert told == {"sizes": [0]}
    assert asked[0].params.hnsw_ef == 512

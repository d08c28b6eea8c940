"""Several builds at a time: each batch once, and a dead builder's batch by another."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from stores import write_corpus

from osler.errors import KnowledgeBaseBusy, KnowledgeBaseMismatch
from osler.kb import index
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Kind
from osler.kb.index import leases
from osler.kb.search.base import Floats
from osler.kb.store import access
from osler_lab.testing.scripted import HashingEncoder


class Watched(HashingEncoder):
    """Notes what it encodes, slowly enough that another gets its turn."""

    def __init__(self, gate: threading.Barrier | None = None) -> None:
        self.texts: list[str] = []
        self._gate = gate

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Floats:
        if self._gate is not None and not self.texts:
            self._gate.wait(timeout=20)
        self.texts += texts
        return super().encode(texts, kind=kind)


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([write_corpus(tmp_path / "iron.jsonl", 40)], source="book")
        yield made


def test_two_builds_at_once_share_the_work_and_do_nothing_twice(kb: KnowledgeBase) -> None:
    gate = threading.Barrier(2)
    encoders = [Watched(gate), Watched(gate)]
    builds = [
        threading.Thread(target=KnowledgeBase.open(kb.path).build, args=(one,), kwargs={"batch": 4})
        for one in encoders
    ]
    for build in builds:
        build.start()
    for build in builds:
        build.join(timeout=30)
    both = [text for one in encoders for text in one.texts]
    assert len(both) == len(set(both)) == 40
    assert all(len(one.texts) >= 4 for one in encoders), "the barrier lets both begin"
    assert kb.info().built
    assert kb.verify() == []


TWO = """
import sys
from pathlib import Path
from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder

class Met(HashingEncoder):
    met = False

    def encode(self, texts, *, kind):
        # Neither goes on before both have claimed a batch.
        if not self.met:
            print("claimed", flush=True)
            self.met = sys.stdin.readline() == "go on\\n"
        return super().encode(texts, kind=kind)

print(KnowledgeBase.open(Path(sys.argv[1])).build(Met(), batch=4).encoded)
"""


def test_two_processes_that_build_share_the_work(kb: KnowledgeBase) -> None:
    builds = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", TWO, str(kb.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for build in builds:
        assert build.stdout is not None
        assert build.stdout.readline() == "claimed\n"
    for build in builds:
        assert build.stdin is not None
        build.stdin.write("go on\n")
        build.stdin.flush()
    encoded = [int(build.communicate(timeout=60)[0]) for build in builds]
    assert sum(encoded) == 40
    assert min(encoded) >= 4
    assert kb.info().built
    assert kb.verify() == []


def test_batches_leased_by_a_live_builder_are_left_to_it(kb: KnowledgeBase) -> None:
    with access.open_for_writing(kb.path) as db:
        index.begin_build(db, HashingEncoder(), rebuild=False)
        first = leases._claim_batch(db, "a", 0, 30, 60.0)
        second = leases._claim_batch(db, "b", 0, 30, 60.0)
        assert (len(first), len(second)) == (30, 10)
        assert not {number for number, _ in first} & {number for number, _ in second}


@pytest.mark.parametrize("expires", [-1.0, 10_000.0], ids=["over", "of a clock set back"])
def test_expired_lease_is_free(kb: KnowledgeBase, expires: float) -> None:
    with access.open_for_writing(kb.path) as db:
        index.begin_build(db, HashingEncoder(), rebuild=False)
        leases._claim_batch(db, "dead", 0, 30, 60.0)
        db.execute("UPDATE lease SET expires = ?", (time.time() + expires,))
        assert len(leases._claim_batch(db, "alive", 0, 40, 60.0)) == 40


KILLED = """
import os, signal, sys
from pathlib import Path
from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder

class Killed(HashingEncoder):
    batches = 0
    def encode(self, texts, *, kind):
        Killed.batches += 1
        if Killed.batches == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts, kind=kind)

KnowledgeBase.open(Path(sys.argv[1])).build(Killed(), batch=5)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_what_a_dead_builder_had_claimed_is_done_at_once_by_the_next(kb: KnowledgeBase) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(kb.path)], check=False)  # noqa: S603
    assert killed.returncode == -signal.SIGKILL
    with closing(access.open_connection(kb.path)) as db:
        assert db.execute("SELECT count(*) FROM lease").fetchone() == (5,)
    assert kb.build(HashingEncoder()).encoded == 30
    assert kb.verify() == []


def test_a_batch_that_somebody_else_did_meanwhile_is_not_counted(kb: KnowledgeBase) -> None:
    with access.open_for_writing(kb.path) as db:
        index.begin_build(db, HashingEncoder(), rebuild=False)
        rows = leases._claim_batch(db, "slow", 0, 40, 60.0)
        vectors = leases.encode_batch(HashingEncoder(), [passage for _, passage in rows])
        assert leases._store_vectors(db, "fast", rows, vectors) == 40
        assert leases._store_vectors(db, "slow", rows, vectors) == 0


def test_adding_is_refused_while_a_build_runs(kb: KnowledgeBase, tmp_path: Path) -> None:
    with access.hold_lock(kb.path, access.LockMode.TOGETHER), pytest.raises(KnowledgeBaseBusy):
        kb.add([write_corpus(tmp_path / "b.jsonl", 2)], source="wiki")


def test_another_encoder_does_not_join(kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(HashingEncoder):
        identity = "other-64"

    monkeypatch.setattr("osler.kb.index._PATIENCE", 0.2)
    with access.open_for_writing(kb.path) as db:
        index.begin_build(db, HashingEncoder(), rebuild=False)
    with access.hold_lock(kb.path, access.LockMode.TOGETHER), pytest.raises(KnowledgeBaseBusy):
        kb.build(Other())
    with pytest.raises(KnowledgeBaseMismatch):
        kb.build(Other())


# Two writers


def test_a_second_writer_waits_says_so_and_goes_on(kb: KnowledgeBase, tmp_path: Path) -> None:
    held, said = threading.Event(), threading.Event()

    def hold() -> None:
        with access.hold_lock(kb.path):
            held.set()
            said.wait(20)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(20)
    seen: list[str] = []

    def report(what: str, done: int, total: int | None) -> None:
        seen.append(what)
        said.set()

    kb.wait = 20.0
    added = kb.add([write_corpus(tmp_path / "b.jsonl", 2)], source="wiki", progress=report)
    other.join()
    assert seen[0] == "waiting"
    assert seen.count("waiting") == 1
    assert added.documents == 2


def test_waiting_for_a_writer_ends_with_knowledge_base_busy(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.wait = 0.3
    with access.hold_lock(kb.path), pytest.raises(KnowledgeBaseBusy, match="another process"):
        kb.add([write_corpus(tmp_path / "b.jsonl", 2)], source="wiki")

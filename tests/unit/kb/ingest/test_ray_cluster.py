"""A Ray cluster of three nodes: nodes die and join, and the result is that of one process."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from osler.errors import KnowledgeBaseError, StorageFailed
from osler.kb.base import KnowledgeBase
from osler.kb.ingest import bulk
from osler.kb.ingest.bulk import RayWorkerPool
from osler.kb.store import access
from osler_lab.testing.scripted import HashingEncoder

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no extra ray"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]
NOTES = 60
SLOW = '''
import os, resource, time
from pathlib import Path
from osler_lab.testing.scripted import HashingEncoder

class Slow(HashingEncoder):
    """Takes its time without a processor, as a node that is far away."""
    def encode(self, texts, *, kind):
        time.sleep(0.3)
        full = Path(os.environ.get("FULL", "/nowhere")).exists()
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        # The system then refuses what it writes, as of a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 if full else most, most))
        return super().encode(texts, kind=kind)
'''


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An encoder in a module that workers can import too."""
    (tmp_path / "slow_encoder.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return importlib.import_module("slow_encoder").Slow


@contextmanager
def open_cluster(nodes: Sequence[dict[str, str]]) -> Iterator[Any]:
    """A head that works on nothing, and a node of one core with each environment."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    made.workers = [made.add_node(num_cpus=1, env_vars=one) for one in nodes]
    made.wait_for_nodes()
    try:
        yield made
    finally:
        made.shutdown()


@contextmanager
def join_cluster(address: str) -> Iterator[None]:
    import ray

    ray.init(address=address, log_to_driver=False, configure_logging=False)
    try:
        yield
    finally:
        ray.shutdown()


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "encode_pending", partial(bulk.encode_pending, size=4))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")


@pytest.fixture
def cluster(slow: Any) -> Iterator[Any]:
    with open_cluster([{}, {}, {}]) as made, join_cluster(made.address):
        yield made


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    folder = tmp_path / "notes"
    folder.mkdir()
    for n in range(NOTES):
        (folder / f"note{n}.md").write_text(f"# Note {n}\n\nIron is given on day {n}.\n")
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([folder], source="book")
        yield made


def vectors(kb: KnowledgeBase) -> dict[str, bytes]:
    with access.open_for_writing(kb.path) as db:
        found = db.execute("SELECT id, value FROM passage JOIN vector ON vector.passage = number")
        rows = found.fetchall()
    assert len(rows) == len(dict(rows)), "nothing twice"
    return dict(rows)


def build_while(kb: KnowledgeBase, slow: Any, happens: Any) -> None:
    """Builds on the cluster; `happens` once a fifth is done."""
    once = threading.Event()

    def progress(what: str, done: int, total: int | None) -> None:
        if what == "encode" and done >= NOTES // 5 and not once.is_set():
            once.set()
            happens()

    built = kb.build_on(RayWorkerPool(3), slow, progress=progress)
    assert once.is_set()
    assert built.encoded == NOTES
    assert len(vectors(kb)) == NOTES


def test_nodes_that_are_killed_and_added_change_nothing_in_the_result(
    cluster: Any, kb: KnowledgeBase, slow: Any, tmp_path: Path
) -> None:
    def lose_and_add() -> None:
        cluster.remove_node(cluster.workers[0], allow_graceful=False)
        cluster.remove_node(cluster.workers[1], allow_graceful=False)
        cluster.add_node(num_cpus=1)

    build_while(kb, slow, lose_and_add)
    assert vectors(kb) == vectors_of_one_process(tmp_path)


def vectors_of_one_process(place: Path) -> dict[str, bytes]:
    with KnowledgeBase.create(place / "plain") as plain:
        plain.add([place / "notes"], source="book")
        plain.build(HashingEncoder())
        return vectors(plain)


BUILD = """
import sys
from functools import partial
from pathlib import Path
from osler.kb.base import KnowledgeBase
from osler.kb.ingest import bulk
from slow_encoder import Slow
bulk.encode_pending = partial(bulk.encode_pending, size=1)
def tell(what, done, total):
    print(what, done, flush=True)
with KnowledgeBase.open(Path(sys.argv[1])) as kb:
    kb.build_on(bulk.RayWorkerPool(3, sys.argv[2]), Slow, progress=tell)
"""


def test_a_build_whose_head_is_killed_ends_and_goes_on_with_the_next_cluster(
    kb: KnowledgeBase, slow: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "3")
    kb.close()
    with open_cluster([{}, {}, {}]) as made:
        command = [sys.executable, "-c", BUILD, str(kb.path), made.address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603
            assert child.stdout is not None
            for line in child.stdout:
                if line.startswith("encode") and int(line.split()[1]) >= NOTES // 5:
                    break
            made.remove_node(made.head_node, allow_graceful=False)
            child.stdout.read()
            assert child.wait(120) != 0
    with KnowledgeBase.open(kb.path) as again:
        before = len(vectors(again))
        assert NOTES // 5 <= before < NOTES
        with open_cluster([{}]) as made:
            built = again.build_on(RayWorkerPool(1, made.address), slow)
        assert built.encoded == NOTES - before
        assert vectors(again) == vectors_of_one_process(tmp_path)


def test_a_node_with_another_version_is_refused_by_name(
    kb: KnowledgeBase, slow: Any, tmp_path: Path
) -> None:
    odd = tmp_path / "odd" / "osler-0.0.1.dist-info"
    odd.mkdir(parents=True)
    (odd / "METADATA").write_text("Metadata-Version: 2.1\nName: osler\nVersion: 0.0.1\n")
    place = {"PYTHONPATH": f"{odd.parent}{os.pathsep}{os.environ['PYTHONPATH']}"}
    with (
        open_cluster([place]) as made,
        pytest.raises(KnowledgeBaseError, match=r"has Osler 0\.0\.1, and who asks has"),
    ):
        kb.build_on(RayWorkerPool(1, made.address), slow)
    assert vectors(kb) == {}


def test_a_full_disk_at_one_node_is_said_and_what_is_done_is_kept(
    kb: KnowledgeBase, slow: Any, tmp_path: Path
) -> None:
    full = tmp_path / "full"
    with open_cluster([{}, {}, {"FULL": str(full)}]) as made, join_cluster(made.address):
        with pytest.raises(StorageFailed, match="cannot write a result"):
            build_while(kb, slow, full.touch)
        before = len(vectors(kb))
        full.unlink()
        built = kb.build_on(RayWorkerPool(3), slow)
    assert 0 < before < NOTES
    assert built.encoded == NOTES - before
    assert vectors(kb) == vectors_of_one_process(tmp_path)

"""A Ray cluster of three nodes: nodes die and join, and the result is that of one process."""

from __future__ import annotations

import importlib
import importlib.util
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

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
import time
from osler_lab.testing.scripted import HashingEncoder

class Slow(HashingEncoder):
    """Takes its time without a processor, as a node that is far away."""
    def encode(self, texts, *, kind):
        time.sleep(0.3)
        return super().encode(texts, kind=kind)
'''


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An encoder in a module that workers can import too."""
    (tmp_path / "slow_encoder.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return importlib.import_module("slow_encoder").Slow


@pytest.fixture
def cluster(slow: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head that works on nothing, and three nodes of one core each."""
    import ray
    from ray.cluster_utils import Cluster

    monkeypatch.setattr(bulk, "encode_pending", partial(bulk.encode_pending, size=4))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    made.workers = [made.add_node(num_cpus=1) for _ in range(3)]
    made.wait_for_nodes()
    ray.init(address=made.address, log_to_driver=False, configure_logging=False)
    yield made
    ray.shutdown()
    made.shutdown()


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
    with KnowledgeBase.create(tmp_path / "plain") as plain:
        plain.add([tmp_path / "notes"], source="book")
        plain.build(HashingEncoder())
        assert vectors(plain) == vectors(kb)

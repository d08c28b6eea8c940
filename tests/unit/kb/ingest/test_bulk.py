"""Bulk work: shards on workers, each done once in effect, whoever dies in between."""

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from osler.errors import BadConfig, KnowledgeBaseError, ModelError
from osler.kb.base import KnowledgeBase
from osler.kb.ingest import bulk
from osler.kb.ingest.bulk import ProcessWorkerPool, RayWorkerPool, WorkerPool
from osler.kb.store import access
from osler.types import Passage
from osler_lab.testing.scripted import HashingEncoder

has_ray = importlib.util.find_spec("ray") is not None
RUNNERS = [
    pytest.param(ProcessWorkerPool(2), id="processes"),
    pytest.param(
        RayWorkerPool(1),
        id="ray",
        marks=[
            pytest.mark.ray,
            pytest.mark.skipif(not has_ray, reason="the extra ray is not installed"),
            pytest.mark.filterwarnings("ignore"),  # Ray's own
        ],
    ),
]


DYING = '''
import os, signal
from osler_lab.testing.scripted import HashingEncoder

class Once(HashingEncoder):
    """Its process is killed in the middle of the first shard that anyone begins."""
    def __init__(self, marker):
        self.marker = marker
    def encode(self, texts, *, kind):
        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return super().encode(texts, kind=kind)
        os.kill(os.getpid(), signal.SIGKILL)

class Always(HashingEncoder):
    def encode(self, texts, *, kind):
        os.kill(os.getpid(), signal.SIGKILL)

class Flat(HashingEncoder):
    def encode(self, texts, *, kind):
        return super().encode(texts, kind=kind) * 0
'''


@pytest.fixture
def dying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Encoders in a module that workers can import too."""
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "dying_encoders.py").write_text(DYING)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    yield importlib.import_module("dying_encoders")
    del sys.modules["dying_encoders"]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for i in range(9):
        text = f"# Note {i}\n\nIron is given on day {i}.\n\n## 糖尿病\n\n控制血糖 {i}。\n"
        (folder / f"note{i}.md").write_text(text, encoding="utf-8")
    (folder / "broken.jsonl").write_text('{"id": "a", "title": "", "content": ""}\n')
    return folder


@pytest.fixture
def plain(tmp_path: Path, files: Path) -> Iterator[KnowledgeBase]:
    """Made by one process: what the others must equal."""
    with KnowledgeBase.create(tmp_path / "plain") as kb:
        kb.add([files], source="book")
        kb.build(HashingEncoder())
        yield kb


def contents(kb: KnowledgeBase) -> list[tuple[str, str, bytes]]:
    with access.open_for_writing(kb.path) as db:
        return db.execute(
            "SELECT id, text, value FROM passage JOIN vector ON vector.passage = number ORDER BY id"
        ).fetchall()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several shards of a few passages."""
    monkeypatch.setattr(bulk, "encode_pending", partial(bulk.encode_pending, size=4))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("runner", RUNNERS)
def test_a_killed_worker_changes_nothing_in_the_result(
    runner: WorkerPool, plain: KnowledgeBase, files: Path, tmp_path: Path, dying: Any
) -> None:
    with KnowledgeBase.create(tmp_path / "bulk") as kb:
        added = kb.add([files], source="book")
        built = kb.build_on(runner, partial(dying.Once, tmp_path / "died"))
        assert (tmp_path / "died").exists()
        assert contents(kb) == contents(plain)
        assert kb.snapshot == plain.snapshot
        assert added.drops == {"no text": 1}
        assert built.encoded == built.passages == 18
        assert not (kb.path / "bulk").exists()


def test_a_small_knowledge_base_has_shards_for_several_workers_and_tells_its_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        json.dumps({"id": str(n), "title": f"T{n}", "content": f"Rest {n}."}) for n in range(300)
    ]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))

    clock = [0.0]
    monkeypatch.setattr("osler.kb.base.monotonic", lambda: clock[0])

    class Here:
        def map(self, make: bulk.Make, tasks: Any) -> Iterator[object]:
            stage = make()
            for task in tasks:
                clock[0] += 2.0
                yield stage(task)

    seen: list[tuple[int, int | None]] = []

    def note(what: str, done: int, total: int | None) -> None:
        if what == "encode":
            seen.append((done, total))

    with KnowledgeBase.create(tmp_path / "bulk") as kb:
        kb.add([tmp_path / "texts.jsonl"], source="book")
        built = kb.build_on(Here(), HashingEncoder, progress=note)
    assert built.encoded == 300
    assert len({done for done, _ in seen if done}) >= 4
    assert seen[-1] == (300, 300), "what is left for the one process is nothing, and not told"
    assert built.seconds == clock[0] > 0, "the workers' time counts"


def test_doing_it_again_does_nothing(plain: KnowledgeBase) -> None:
    assert plain.build_on(ProcessWorkerPool(1), HashingEncoder).encoded == 0


@pytest.mark.usefixtures("small")
def test_shards_that_a_killed_job_had_done_are_not_done_again(
    plain: KnowledgeBase, files: Path, tmp_path: Path
) -> None:
    with KnowledgeBase.create(tmp_path / "bulk") as kb:
        kb.add([files], source="book")

        def killed(what: str, done: int, total: int | None) -> None:
            if what == "encode" and done:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            kb.build_on(ProcessWorkerPool(1), HashingEncoder, progress=killed)
        left = list((kb.path / "bulk").glob("*.npy"))
        with access.open_for_writing(kb.path) as db:
            (held,) = db.execute("SELECT count(*) FROM vector").fetchone()
        assert 0 < held < 18
        built = kb.build_on(_Counting(left), HashingEncoder)
        assert built.encoded == 18 - held
        assert contents(kb) == contents(plain)


@dataclass
class _Counting:
    """In this process; says that what is there is not made anew."""

    left: list[Path]

    def map(self, make: bulk.Make, tasks: object) -> Iterator[object]:
        stage = make()
        for task in tasks:  # type: ignore[attr-defined]
            before = task.file.stat().st_mtime_ns if task.file in self.left else None
            result = stage(task)
            assert before in (None, task.file.stat().st_mtime_ns)
            yield result


def test_the_same_shard_twice_is_once(plain: KnowledgeBase, tmp_path: Path) -> None:
    class Twice:
        def map(self, make: bulk.Make, tasks: object) -> Iterator[object]:
            stage = make()
            for task in tasks:  # type: ignore[attr-defined]
                yield stage(task)
                yield stage(task)

    before = contents(plain)
    built = plain.build_on(Twice(), HashingEncoder, rebuild=True)
    assert built.encoded == 18
    assert contents(plain) == before


def test_a_shard_that_kills_every_worker_is_one_clear_error(
    plain: KnowledgeBase, dying: Any
) -> None:
    with pytest.raises(KnowledgeBaseError, match="died 4 times on the same shard"):
        plain.build_on(ProcessWorkerPool(1), dying.Always, rebuild=True)


@pytest.mark.parametrize("runner", RUNNERS)
def test_what_a_stage_raises_arrives(runner: WorkerPool, plain: KnowledgeBase, dying: Any) -> None:
    with pytest.raises(ModelError, match="gave vectors not of length 1"):
        plain.build_on(runner, dying.Flat, rebuild=True)


def test_without_its_package_ray_is_refused_with_the_command(
    plain: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(BadConfig) as caught:
        plain.build_on(RayWorkerPool(1), HashingEncoder, rebuild=True)
    assert 'pip install "osler[ray]"' in caught.value.fix


def test_a_shard_s_key_tells_its_passages_and_its_encoder(
    plain: KnowledgeBase, tmp_path: Path
) -> None:
    found = list(plain.get_passages(range(1, 5)).items())

    def key(identity: str, passages: list[tuple[int, Passage]]) -> str:
        return bulk.make_shard(identity, passages, tmp_path).key

    assert key("one", found) == key("one", list(found))
    assert len({key("one", found), key("two", found), key("one", found[:-1])}) == 3

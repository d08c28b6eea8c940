"""Snapshots: a copy is whole or not there, and the way back is one step for every reader."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from stores import write_corpus

from osler.errors import KnowledgeBaseBusy, KnowledgeBaseError
from osler.kb.base import KnowledgeBase
from osler.kb.store import access, snapshots
from osler_lab.testing.scripted import HashingEncoder


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([write_corpus(tmp_path / "iron.jsonl", 20)], source="book")
        made.build(HashingEncoder())
        yield made


def test_a_rollback_brings_back_what_was_there(kb: KnowledgeBase, tmp_path: Path) -> None:
    before = kb.snapshot
    taken = kb.take_snapshot("monday")
    assert (taken.name, taken.snapshot, taken.passages) == ("monday", before, 20)
    kb.remove(source="book", document="iron3")
    kb.add([write_corpus(tmp_path / "zinc.jsonl", 5, "zinc")], source="wiki")
    kb.build(HashingEncoder())
    KnowledgeBase.restore(kb.path, "monday")
    assert kb.snapshot == before
    assert kb.sources == ("book",)
    assert kb.get("book:iron3#0").text == "Text 3 on iron."
    kb.require_built("hashing-64")
    assert kb.verify() == []
    assert sorted(path.name for path in kb.path.iterdir() if "draft" in path.name) == []


def test_snapshot_is_edited_as_a_copy_and_half_an_edit_leaves_it_as_it_was(
    kb: KnowledgeBase,
) -> None:
    kb.take_snapshot("monday")
    path = kb.path / snapshots.FOLDER / "monday.sqlite"
    before = path.read_bytes()

    def delete_all(db: sqlite3.Connection) -> bool:
        return db.execute("DELETE FROM passage WHERE text LIKE '%3%'").rowcount > 0

    def fail(db: sqlite3.Connection) -> bool:
        delete_all(db)
        raise sqlite3.OperationalError("database or disk is full")

    with pytest.raises(KnowledgeBaseError, match="full"):
        snapshots.edit_snapshot(kb.path, "monday", fail)
    assert snapshots.edit_snapshot(kb.path, "monday", lambda _: False) is False
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["monday.sqlite"]
    assert snapshots.edit_snapshot(kb.path, "monday", delete_all)
    assert b"Text 3 on iron." not in path.read_bytes()
    assert snapshots.list_snapshots(kb.path)[0].passages < 20


def test_vectors_of_a_later_state_are_not_found_after_a_rollback(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.take_snapshot("monday")
    kb.add([write_corpus(tmp_path / "zinc.jsonl", 5, "zinc")], source="wiki")
    kb.build(HashingEncoder())
    (query,) = HashingEncoder().encode(["Title 1 Text 1 on zinc."], kind="query")
    found = kb.by_vector(query, encoder="hashing-64", k=1)
    assert found[0][0].id == "wiki:zinc1#0"
    KnowledgeBase.restore(kb.path, "monday")
    kb.add([write_corpus(tmp_path / "gold.jsonl", 5, "gold")], source="wiki")
    kb.build(HashingEncoder())
    for passage, _ in kb.by_vector(query, encoder="hashing-64", k=30):
        assert "zinc" not in passage.id
    assert kb.verify() == []


def test_numbers_of_passages_are_not_given_out_again(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.take_snapshot("monday")
    kb.add([write_corpus(tmp_path / "zinc.jsonl", 5, "zinc")], source="wiki")
    KnowledgeBase.restore(kb.path, "monday")
    kb.add([write_corpus(tmp_path / "gold.jsonl", 1, "gold")], source="wiki")
    with closing(access.open_connection(kb.path)) as db:
        (number,) = db.execute("SELECT number FROM passage WHERE source = 'wiki'").fetchone()
    assert number == 26, "20 of iron, 5 of zinc that are gone"


def test_numbers_are_not_given_out_again_after_an_empty_snapshot(tmp_path: Path) -> None:
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.take_snapshot("empty")
        kb.add([write_corpus(tmp_path / "iron.jsonl", 3)], source="book")
        KnowledgeBase.restore(kb.path, "empty")
        kb.add([write_corpus(tmp_path / "zinc.jsonl", 1, "zinc")], source="wiki")
        assert list(kb.get_passages(range(1, 9))) == [4]


def test_reader_sees_the_state_before_or_after_a_rollback_and_none_between(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.take_snapshot("monday")
    kb.add([write_corpus(tmp_path / "zinc.jsonl", 3000, "zinc")], source="wiki")
    seen: set[int] = set()

    def look(what: str, done: int, total: int | None) -> None:
        seen.add(kb.info().documents)

    with KnowledgeBase.open(kb.path) as other:
        KnowledgeBase.restore(kb.path, "monday", progress=look)
        assert other.info().documents == 20
    assert seen == {3020, 20}


def test_snapshots_are_listed_the_oldest_first(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    for moment, name in enumerate(("b", "a", "c")):
        monkeypatch.setattr(
            "osler.kb.store.snapshots.time.time", lambda moment=moment: 1000.0 + moment
        )
        kb.take_snapshot(name)
    assert [(one.name, one.taken) for one in kb.list_snapshots()] == [
        ("b", 1000),
        ("a", 1001),
        ("c", 1002),
    ]
    kb.drop_snapshot("a")
    assert [one.name for one in kb.list_snapshots()] == ["b", "c"]
    assert kb.info().snapshots == 2


@pytest.mark.parametrize("name", ["", "../x", "a b", ".hidden", "x" * 65])
def test_snapshot_name_with_path_traversal_is_refused(kb: KnowledgeBase, name: str) -> None:
    with pytest.raises(KnowledgeBaseError, match="cannot name a snapshot"):
        kb.take_snapshot(name)


def test_a_name_is_used_once(kb: KnowledgeBase) -> None:
    kb.take_snapshot("monday")
    with pytest.raises(KnowledgeBaseError, match="already"):
        kb.take_snapshot("monday")


def test_rollback_to_an_unknown_snapshot_is_refused(kb: KnowledgeBase) -> None:
    with pytest.raises(KnowledgeBaseError, match="there is no snapshot tuesday") as caught:
        KnowledgeBase.restore(kb.path, "tuesday")
    assert "osler kb snapshot" in caught.value.fix
    kb.take_snapshot("monday")
    with pytest.raises(KnowledgeBaseError, match="choose from monday"):
        kb.drop_snapshot("tuesday")


def test_while_somebody_writes_nothing_is_taken_and_nothing_rolled_back(
    kb: KnowledgeBase,
) -> None:
    kb.take_snapshot("monday")
    with access.hold_lock(kb.path):
        with pytest.raises(KnowledgeBaseBusy):
            kb.take_snapshot("tuesday")
        with pytest.raises(KnowledgeBaseBusy):
            KnowledgeBase.restore(kb.path, "monday")


@pytest.mark.parametrize("damage", ["gone", "not a database", "a page"])
def test_a_lost_or_damaged_knowledge_base_comes_back(kb: KnowledgeBase, damage: str) -> None:
    kb.take_snapshot("monday")
    kb.close()
    file = kb.path / access.FILE
    if damage == "gone":
        file.unlink()
    elif damage == "not a database":
        file.write_bytes(b"%PDF" * 1000)
    else:
        data = bytearray(file.read_bytes())
        data[4096:8192] = b"\xff" * 4096
        file.write_bytes(data)
    KnowledgeBase.restore(kb.path, "monday")
    with KnowledgeBase.open(kb.path) as back:
        assert back.verify() == []
        assert back.info().passages == 20


def test_a_damaged_snapshot_is_not_rolled_back_to(kb: KnowledgeBase) -> None:
    kb.take_snapshot("monday")
    file = kb.path / "snapshots" / "monday.sqlite"
    data = bytearray(file.read_bytes())
    data[4096 * 3 : 4096 * 6] = b"\xff" * 4096 * 3
    file.write_bytes(data)
    with pytest.raises(KnowledgeBaseError):
        KnowledgeBase.restore(kb.path, "monday")
    assert kb.verify() == []


KILLED = """
import os, signal, sys
from pathlib import Path
from osler.kb.store import snapshots
from osler.kb.base import KnowledgeBase

at, what, path = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
snapshots._PAGES = 1
pages = 0

def kill(*_):
    global pages
    pages += 1
    if pages == at:
        os.kill(os.getpid(), signal.SIGKILL)

if what == "take":
    KnowledgeBase.open(path).take_snapshot("tuesday", progress=kill)
else:
    KnowledgeBase.restore(path, "monday", progress=kill)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("at", [1, 20])
@pytest.mark.parametrize("what", ["take", "restore"])
def test_killed_snapshot_or_rollback_leaves_no_partial_copy(
    kb: KnowledgeBase, tmp_path: Path, what: str, at: int
) -> None:
    kb.take_snapshot("monday")
    kb.add([write_corpus(tmp_path / "zinc.jsonl", 40, "zinc")], source="wiki")
    command = [sys.executable, "-c", KILLED, str(at), what, str(kb.path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL  # noqa: S603
    assert kb.info().documents == 60
    assert [one.name for one in kb.list_snapshots()] == ["monday"]
    kb.take_snapshot("tuesday")
    KnowledgeBase.restore(kb.path, "monday")
    assert kb.info().documents == 20
    left = [name for _, _, names in os.walk(kb.path) for name in names if "draft" in name]
    assert left == [], "what a killed one left is swept away"
    assert kb.verify() == []


def test_a_snapshot_of_an_older_schema_is_brought_up(kb: KnowledgeBase) -> None:
    kb.take_snapshot("monday")
    with sqlite3.connect(kb.path / "snapshots" / "monday.sqlite") as db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
    db.close()
    KnowledgeBase.restore(kb.path, "monday")
    with pytest.raises(KnowledgeBaseError, match="schema 99"):
        KnowledgeBase.open(kb.path)

"""A full disk, a folder that may not be written, damage, a moved folder: one clear error each."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from stores import write_corpus

from osler.errors import KnowledgeBaseError
from osler.kb.base import KnowledgeBase
from osler.kb.store import access
from osler_lab.testing.scripted import HashingEncoder

TEXT = " A text of some length on iron, zinc, gold and lead, and what they do. " * 8


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([write_corpus(tmp_path / "few.jsonl", 50, more=TEXT)], source="book")
        made.build(HashingEncoder())
        yield made


# No file of the process may grow beyond a limit: a write fails as it does on a full disk.
FULL = """
import resource, signal, sys
from pathlib import Path
from osler.errors import KnowledgeBaseError
from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder

what, path, other = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
size = (path / "kb.sqlite").stat().st_size
limit = {"add": size + 200_000, "build": 30_000, "snapshot": 50_000, "export": 20_000}[what]
kb = KnowledgeBase.open(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    if what == "add":
        kb.add([other], source="wiki")
    elif what == "build":
        kb.build(HashingEncoder(), rebuild=True)
    elif what == "snapshot":
        kb.take_snapshot("monday")
    else:
        kb.export(other.with_suffix(".out.jsonl"))
except KnowledgeBaseError as error:
    print(error)
    sys.exit(7)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
@pytest.mark.parametrize("what", ["add", "build", "snapshot", "export"])
def test_a_full_disk_is_one_clear_error_and_nothing_half_written(
    kb: KnowledgeBase, tmp_path: Path, what: str
) -> None:
    many = write_corpus(tmp_path / "many.jsonl", 3000, more=TEXT)
    command = [sys.executable, "-c", FULL, what, str(kb.path), str(many)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 7, done.stderr
    assert "disk" in done.stdout
    assert len(done.stdout.splitlines()) == 1
    assert kb.verify() == [] or what == "build"
    assert kb.info().documents == 50
    assert kb.list_snapshots() == []
    assert [path.name for path in tmp_path.rglob("*.out.jsonl")] == []
    kb.add([many], source="wiki")
    kb.build(HashingEncoder())
    assert kb.verify() == []
    assert kb.take_snapshot("monday").documents == 3050


def test_a_place_where_no_folder_can_be_is_an_error(kb: KnowledgeBase) -> None:
    (kb.path / "snapshots").write_text("in the way")
    with pytest.raises(KnowledgeBaseError, match="cannot be written"):
        kb.take_snapshot("monday")


def test_a_moved_knowledge_base_works_where_it_is(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.take_snapshot("monday")
    kb.close()
    moved = shutil.move(kb.path, tmp_path / "elsewhere")
    with KnowledgeBase.open(Path(moved)) as there:
        there.require_built("hashing-64")
        assert there.update().unchanged == 1
        assert there.verify() == []
        KnowledgeBase.restore(there.path, "monday")
        assert there.info().documents == 50


@pytest.mark.parametrize("table", ["passage", "lexical_data", "vector", "document_mark"])
def test_damage_anywhere_is_named_by_verify(kb: KnowledgeBase, table: str) -> None:
    """A page of each table or index, overwritten on disk."""
    import sqlite3

    kb.close()
    with sqlite3.connect(kb.path / access.FILE) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        named = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (page,) = db.execute(named, (table,)).fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    with (kb.path / access.FILE).open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    with KnowledgeBase.open(kb.path) as damaged:
        problems = damaged.verify()
    assert problems
    assert "damaged" in problems[0]


def test_a_half_written_copy_of_a_knowledge_base_is_named(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.close()
    whole = (kb.path / access.FILE).read_bytes()
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / access.FILE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(KnowledgeBaseError, match=r"malformed.*osler kb snapshot NAME --restore"):
        KnowledgeBase.open(tmp_path / "copy")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_when_the_second_process_dies_nothing_of_the_file_stays(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from osler.kb.ingest import reader_process

    monkeypatch.setattr(reader_process, "WORTH", 1)
    monkeypatch.setattr(reader_process, "_CHILD", "import os; os.kill(os.getpid(), 9) # {path!r}")
    many = write_corpus(tmp_path / "many.jsonl", 300, more=TEXT)
    with pytest.raises(KnowledgeBaseError, match=r"ended before the file did"):
        kb.add([many], source="wiki")
    assert kb.sources == ("book",)
    monkeypatch.undo()
    assert kb.add([many], source="wiki").documents == 300


def test_a_file_read_in_a_second_process_gives_the_same(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from osler.kb.ingest import reader_process

    many = write_corpus(tmp_path / "many.jsonl", 600, more=TEXT)
    with many.open("a") as file:
        file.write("{broken\n")
    snapshots = []
    for name, worth in (("one", 1 << 40), ("two", 1)):
        monkeypatch.setattr(reader_process, "WORTH", worth)
        with KnowledgeBase.create(tmp_path / name) as other:
            added = other.add([many], source="wiki")
            assert (added.documents, added.drops) == (600, {"not JSON": 1})
            snapshots.append(other.build(None).snapshot)
    assert snapshots[0] == snapshots[1]


def test_a_truncated_file_is_a_failure_in_a_second_process_too(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gzip

    from osler.kb.ingest import reader_process

    monkeypatch.setattr(reader_process, "WORTH", 1)
    whole = gzip.compress(write_corpus(tmp_path / "many.jsonl", 3000, more=TEXT).read_bytes())
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    added = kb.add([tmp_path / "cut.jsonl.gz"], source="wiki")
    assert len(added.failed) == 1
    assert kb.sources == ("book",)

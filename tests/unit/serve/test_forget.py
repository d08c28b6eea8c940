"""What is forgotten is in no file of home afterwards; raw bytes are searched."""

from __future__ import annotations

import asyncio
import gzip
import json
import sqlite3
import zipfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from served import FixedModel

from osler.answer.follow_up import Standalone
from osler.build.knowledge import open_knowledge_base
from osler.build.live import with_knowledge
from osler.build.models import LoadedModel
from osler.errors import BadConfig, StorageFailed
from osler.kb.base import KnowledgeBase
from osler.runs.answering import ask
from osler.runs.threads import ThreadStore
from osler.settings import Settings
from osler.types import Question
from osler_lab.testing.scripted import HashingEncoder
from osler_serve.ops.forget import expire_runs, forget
from osler_serve.ops.uploads import incoming_file, store_upload

MARK = "zyxomarker 肾上腺"
TEXT = f"# Note\n\nAdrenaline is given first to this patient, says {MARK} today.\n"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A home with the mark in the base, a snapshot, a run, the ledger and caches."""
    home, texts = tmp_path / "home", tmp_path / "texts"
    for source, text in (("own", TEXT), ("guideline", "# Asthma\n\nSalbutamol is given.\n")):
        (texts / source).mkdir(parents=True)
        (texts / source / "a.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr("osler_serve.ops.forget.load_encoder", lambda _: HashingEncoder())
    made = Settings.model_validate(
        {"home": str(home), "strategy": {"kind": "rag", "k": 3}, "model": {"writes": "yes"}}
    )
    with KnowledgeBase.create(made.kb.path) as kb:
        for source in ("own", "guideline"):
            kb.add([texts / source], source=source)
        kb.build(HashingEncoder())
        kb.take_snapshot("before")
        model = LoadedModel(FixedModel(), False, ())
        parts = with_knowledge(made, {"reader": model}, kb, HashingEncoder(), None)
        asyncio.run(ask(made, Question("", "What is given first to this patient?"), parts=parts))
    (home / "serve").mkdir()
    with closing(sqlite3.connect(home / "serve" / "serve.sqlite")) as db, db:
        db.execute("CREATE TABLE run(id TEXT, question TEXT, events TEXT)")
        db.execute("INSERT INTO run VALUES ('1', ?, '')", (f"Who is {MARK}?",))
        db.execute("INSERT INTO run VALUES ('2', 'another', ?)", (json.dumps({"a": MARK}),))
        db.execute("INSERT INTO run VALUES ('3', 'a third', '')")
    (home / "web").mkdir()
    with closing(sqlite3.connect(home / "web" / "web.db")) as db, db:
        db.execute("CREATE TABLE reply(url TEXT, body BLOB)")
        db.execute("INSERT INTO reply VALUES ('x', ?)", (f"<p>{MARK}</p>".encode(),))
        db.execute("INSERT INTO reply VALUES ('y', ?)", (b"another",))
    (home / "cache").mkdir()
    (home / "cache" / "reply.json").write_text(json.dumps({"reply": MARK}))
    (home / "fetched").mkdir()
    (home / "fetched" / "dump.txt.gz").write_bytes(gzip.compress(MARK.encode() * 9))
    return made


def add_conversations(home: Path, run: str) -> None:
    """Of one the question holds the mark, of one the run does, of one nothing."""
    store = ThreadStore(home)
    for id, question, answered in (
        ("asks", f"Who is {MARK}?", "r"),
        ("rests", "Why?", run),
        ("stays", "Why?", "r"),
    ):
        thread = store.create_thread(id)
        store.add_turn(thread, answered, question, Standalone(question))
        store.write_title(id, f"Of {id}")
    store.write_title("stays too", f"About {MARK}")


def add_evaluation(log: Path) -> None:
    """One sample that holds the mark in its events, one in its record, one in neither."""
    log.mkdir(parents=True)
    events, records = b"", b""
    for id, seen, said in (("a", MARK, ""), ("b", "", MARK), ("c", "", "")):
        lines = f'{{"id": "{id}"}}\n{{"found": "{seen} 铁"}}\n'.encode()
        trace = {"file": "traces-x.jsonl", "start": len(events), "length": len(lines)}
        events += lines
        record = {"id": id, "answer": said, "trace": trace}
        records += json.dumps(record, ensure_ascii=False).encode() + b"\n"
    (log / "traces-x.jsonl").write_bytes(events)
    (log / "records-x.jsonl").write_bytes(records)


def holders(home: Path, *marks: str) -> set[str]:
    forms = {form for mark in marks for form in (mark, json.dumps(mark)[1:-1])}
    return {
        path.relative_to(home).as_posix()
        for path in home.rglob("*")
        if path.is_file() and any(form.encode() in path.read_bytes() for form in forms)
    }


@pytest.mark.parametrize("what", [MARK, "zyxomarker", "own:a"])
def test_mark_is_in_no_file_of_home_afterwards(settings: Settings, what: str) -> None:
    before = holders(settings.home, MARK)
    assert {"kb/kb.sqlite", "kb/snapshots/before.sqlite", "serve/serve.sqlite"} <= before
    assert any(path.startswith("runs/") for path in before)
    if what == "own:a":  # what quotes a document is found by its passages
        (settings.home / "cache" / "reply.json").unlink()
        for file in ("serve/serve.sqlite", "web/web.db"):
            (settings.home / file).unlink()
    report = forget(settings, what)
    assert report.documents == ["own:a"]
    assert report.snapshots == ["before"]
    assert len(report.runs) == 1
    assert report.left == []
    assert holders(settings.home, MARK, "zyxomarker") == set()
    with open_knowledge_base(settings) as kb:
        assert kb.sources == ("guideline",)
        assert kb.verify() == []
        kb.require_built(HashingEncoder().identity)
    if what != "own:a":
        with closing(sqlite3.connect(settings.home / "serve" / "serve.sqlite")) as db:
            assert db.execute("SELECT id FROM run").fetchall() == [("3",)]
        with closing(sqlite3.connect(settings.home / "web" / "web.db")) as db:
            assert db.execute("SELECT url FROM reply").fetchall() == [("y",)]


def test_conversations_and_evaluated_samples_go_whole(settings: Settings) -> None:
    home = settings.home
    (run,) = settings.runs.path.iterdir()
    add_conversations(home, run.name)
    add_evaluation(home / "eval" / "trial")
    old = (home / "eval" / "trial" / "traces-x.jsonl").read_bytes()
    report = forget(settings, MARK)
    assert (sorted(report.threads), report.samples, report.left) == (["asks", "rests"], 2, [])
    assert str(home / "fetched" / "dump.txt.gz") in report.files
    assert holders(home, MARK, "zyxomarker") == set()
    assert [one.id for one in ThreadStore(home).list_threads()] == ["stays"]
    assert ThreadStore(home).read_titles() == {"stays": "Of stays"}
    (left,) = (home / "eval" / "trial" / "records-x.jsonl").read_text().splitlines()
    trace = json.loads(left)["trace"]
    now = (home / "eval" / "trial" / "traces-x.jsonl").read_bytes()
    kept = slice(trace["start"], trace["start"] + trace["length"])
    assert now[kept] == old[kept]  # what stays stands where its record says
    assert now[: trace["start"]].split() == []


def test_deleted_pages_stay_in_no_log_that_a_reader_holds_open(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a reader still looks at cannot be taken out from under it: the command says so."""
    monkeypatch.setattr("osler_serve.ops.forget._WAIT", 0.1)
    with closing(sqlite3.connect(settings.kb.path / "kb.sqlite", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM passage").fetchone()
        with pytest.raises(StorageFailed, match="cannot be rewritten"):
            forget(settings, MARK)
    report = forget(settings, MARK)
    assert report.left == []
    assert holders(settings.home, MARK, "zyxomarker") == set()


def test_disk_that_fails_is_an_error_in_words_and_the_next_run_goes_on(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("osler_serve.ops.forget._forget_runs", fail)
    with pytest.raises(StorageFailed, match="Input/output"):
        forget(settings, MARK)
    monkeypatch.undo()
    monkeypatch.setattr("osler_serve.ops.forget.load_encoder", lambda _: HashingEncoder())
    assert forget(settings, MARK).left == []
    assert holders(settings.home, MARK, "zyxomarker") == set()


def test_file_that_was_sent_goes_with_its_document(settings: Settings) -> None:
    texts = {"note.md": TEXT, "other.md": "# Other\n\nOxygen is given.\n"}
    for name, text in texts.items():
        with incoming_file(settings, text.encode()) as sent:
            done = store_upload(settings, "own", name, sent)
        # The first is in the knowledge base under another name, and is kept all the same.
        assert done.documents + sum(done.drops.values()) == 1
    report = forget(settings, MARK)
    folder = settings.home / "uploads" / "own"
    assert [path.name for path in folder.iterdir()] == ["other.md"]
    assert str(folder / "note.md") in report.files
    assert holders(settings.home, MARK, "zyxomarker") == set()


def test_packed_files_are_looked_into(settings: Settings) -> None:
    with zipfile.ZipFile(settings.home / "answer.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", "x" * 2_000_000 + MARK)
        archive.writestr("other.xml", "x")
    (settings.home / "broken.zip").write_bytes(b"PK no archive")
    (settings.home / "answer.pdf").write_bytes(b"%PDF")
    report = forget(settings, MARK)
    left = {Path(one.partition(":")[0]).name for one in report.left}
    assert left == {"answer.docx", "broken.zip"}
    assert report.unsearched == 1


def test_snapshot_that_was_forgotten_in_can_be_restored(settings: Settings) -> None:
    forget(settings, "own:a")
    KnowledgeBase.restore(settings.kb.path, "before")
    with open_knowledge_base(settings) as kb:
        assert kb.sources == ("guideline",)
        kb.build(HashingEncoder())
        assert kb.verify() == []


def test_what_is_left_is_named(settings: Settings) -> None:
    audit = settings.home / "audit"
    audit.mkdir()
    (audit / "entries.jsonl").write_text(MARK, encoding="utf-8")
    (settings.home / "mine.txt").write_text(MARK, encoding="utf-8")
    (settings.home / "old.zst").write_bytes(b"\x28\xb5")
    report = forget(settings, MARK)
    assert len(report.left) == 2
    assert any("never changed" in one for one in report.left)
    assert report.unsearched == 1
    assert any("backups" in one for one in report.elsewhere)
    with pytest.raises(BadConfig, match="too short"):
        forget(settings, " a ")


def test_runs_that_are_too_old_expire(settings: Settings) -> None:
    when = datetime.now(UTC) - timedelta(days=40)
    old = settings.runs.path / f"{when:%Y%m%d-%H%M%S}-0123456789ab"
    old.mkdir()
    assert expire_runs(settings) == []
    kept = settings.model_copy(update={"runs": settings.runs.model_copy(update={"days": 30.0})})
    assert expire_runs(kept) == [old.name]
    assert len(list(settings.runs.path.iterdir())) == 1

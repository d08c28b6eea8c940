"""What is forgotten is in no file of home afterwards; raw bytes are searched."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from osler.app.config import Settings
from osler.app.forget import expire_runs, forget
from osler.app.runs import ask
from osler.app.wiring.knowledge import open_knowledge_base
from osler.app.wiring.live import with_knowledge
from osler.app.wiring.models import LoadedModel
from osler.errors import BadConfig
from osler.kb.base import KnowledgeBase
from osler.testing.scripted import HashingEncoder
from osler.testing.served import FixedModel
from osler.types import Question

MARK = "zyxomarker 肾上腺"
TEXT = f"# Note\n\nAdrenaline is given first to this patient, says {MARK} today.\n"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A home with the mark in the base, a snapshot, a run, the ledger and caches."""
    home, texts = tmp_path / "home", tmp_path / "texts"
    for source, text in (("own", TEXT), ("guideline", "# Asthma\n\nSalbutamol is given.\n")):
        (texts / source).mkdir(parents=True)
        (texts / source / "a.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr("osler.app.forget.load_encoder", lambda _: HashingEncoder())
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
    return made


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
    (settings.home / "old.gz").write_bytes(b"\x1f\x8b")
    report = forget(settings, MARK)
    assert len(report.left) == 2
    assert any("never changed" in one for one in report.left)
    assert report.unsearched == 1
    assert any("backups" in one for one in report.elsewhere)
    with pytest.raises(BadConfig, match="too little"):
        forget(settings, " a ")


def test_runs_that_are_too_old_expire(settings: Settings) -> None:
    when = datetime.now(UTC) - timedelta(days=40)
    old = settings.runs.path / f"{when:%Y%m%d-%H%M%S}-0123456789ab"
    old.mkdir()
    assert expire_runs(settings) == []
    kept = settings.model_copy(update={"runs": settings.runs.model_copy(update={"days": 30.0})})
    assert expire_runs(kept) == [old.name]
    assert len(list(settings.runs.path.iterdir())) == 1

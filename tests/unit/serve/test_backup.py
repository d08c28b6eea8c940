"""A backup is whole or refused, is made while others write, and comes back as it was."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import zipfile
from contextlib import closing
from pathlib import Path

import pytest
from served import (
    FixedModel,
    fill_knowledge_base,
    loaded_shelf,
    no_page,
    serving_settings,
)

from osler.answer.follow_up import Standalone
from osler.audit import entries
from osler.errors import BadConfig, StorageFailed
from osler.kb.base import KnowledgeBase
from osler.runs.feedback import Feedback, FeedbackStore
from osler.runs.threads import ThreadStore
from osler.settings import Settings
from osler_lab.testing.scripted import HashingEncoder
from osler_serve.app import build_state
from osler_serve.ledger import Ledger, LedgerEntry
from osler_serve.ops.backup import MANIFEST, check_backup, make_backup, restore_backup
from osler_serve.ops.uploads import incoming_file, store_upload


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    fill_knowledge_base(made)
    run = made / "runs" / "20260102-030405-abcdef"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    ledger = Ledger(made / "serve")
    ledger.begin_runs(
        [(LedgerEntry(run.name, "default", "", "2026", "finished", "rag", "?"), None)]
    )
    ledger.close()
    thread = ThreadStore(made).create_thread("ward")
    ThreadStore(made).add_turn(thread, run.name, "Is iron given?", Standalone("Is iron given?"))
    FeedbackStore(made).add_all([Feedback("run", run.name, "unsafe", note="dose")])
    with incoming_file(serving_settings(made), b"# Ward\n\nIron is given at noon.\n") as sent:
        store_upload(serving_settings(made), "own", "ward.md", sent)
    with KnowledgeBase.open(made / "kb") as kb:
        kb.build(HashingEncoder())
    (made / "eval" / "first").mkdir(parents=True)
    (made / "eval" / "first" / "records.jsonl").write_text('{"n": 1}\n')
    entries._open_log.cache_clear()
    entries.write_entry(serving_settings(made, audit={"log": "require"}), {"what": "trial"})
    return made


def settings_of(home: Path) -> Settings:
    return serving_settings(home)


def test_a_backup_comes_back_as_it_was(home: Path, tmp_path: Path) -> None:
    (tmp_path / "osler.toml").write_text('home = "elsewhere"\n')
    made = make_backup(settings_of(home), tmp_path / "all.zip", tmp_path / "osler.toml")
    assert made.path.stat().st_mode & 0o777 == 0o600
    other = tmp_path / "other"
    assert restore_backup(made.path, settings_of(other)).parts == made.parts
    with KnowledgeBase.open(home / "kb") as one, KnowledgeBase.open(other / "kb") as two:
        assert two.verify() == []
        assert two.info().snapshot == one.info().snapshot
        two.require_built(HashingEncoder().identity)
    ledger = Ledger(other / "serve")
    assert [run.id for run in ledger.list_runs("default", before="", limit=9)] == [
        "20260102-030405-abcdef"
    ]
    ledger.close()
    assert (other / "runs" / "20260102-030405-abcdef" / "run.json").read_text() == "{}"
    assert (other / "settings" / "osler.toml").read_text() == 'home = "elsewhere"\n'


def told(home: Path) -> dict[str, object]:
    """All that a home holds, byte by byte; of a database its rows."""
    found: dict[str, object] = {}
    for path in home.rglob("*"):
        name = str(path.relative_to(home))
        if not path.is_file() or name.endswith(("-wal", "-shm", ".lock")):
            continue
        found[name] = path.read_bytes()
        if path.suffix == ".sqlite":
            with closing(sqlite3.connect(path)) as db:
                found[name] = [*db.iterdump()]
    return found


def test_a_home_that_a_server_uses_comes_back_whole(home: Path, tmp_path: Path) -> None:
    settings = settings_of(home)
    (home / "web").mkdir()
    (home / "web" / "reply").write_text("can be fetched again")
    site = build_state(settings, no_page, shelf=loaded_shelf(settings, FixedModel()))
    with site.ledger.hold_open(site.desk.is_kept), KnowledgeBase.open(home / "kb"):
        make_backup(settings, home / "all.zip")
    site.shelf.close()
    site.ledger.close()
    other = tmp_path / "other"
    restore_backup(home / "all.zip", settings_of(other))
    before = {
        name: what for name, what in told(home).items() if name not in ("web/reply", "all.zip")
    }
    assert told(other) == before
    assert {name.partition("/")[0] for name in before} == {
        *("kb", "runs", "serve", "audit", "eval", "uploads", "texts"),
        *("threads.sqlite", "feedback.sqlite"),
    }
    with pytest.raises(BadConfig, match="already exists"):
        restore_backup(home / "all.zip", settings_of(other))


def test_while_others_write_each_database_is_of_one_moment(home: Path, tmp_path: Path) -> None:
    stop, ledger = threading.Event(), Ledger(home / "serve")

    def keep_writing() -> None:
        number = 0
        while not stop.is_set():
            # Two rows at a time: an odd number would be half a moment.
            with ledger._lock_database() as db:
                db.execute("BEGIN")
                for half in "ab":
                    row = (f"{number}{half}", "w", "", "", "queued", "rag", "x" * 4000, "", "")
                    db.execute(
                        "INSERT INTO run(id, workspace, caller, created, status, strategy,"
                        " question, code, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        row,
                    )
                db.execute("COMMIT")
            number += 1

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        make_backup(settings_of(home), tmp_path / "all.zip")
    finally:
        stop.set()
        writer.join()
        ledger.close()
    restore_backup(tmp_path / "all.zip", settings_of(tmp_path / "other"))
    kept = Ledger(tmp_path / "other" / "serve")
    assert len(kept.list_runs("w", before="", limit=10**6)) % 2 == 0
    kept.close()


def test_an_archive_that_was_changed_or_cut_is_refused_and_nothing_is_put(
    home: Path, tmp_path: Path
) -> None:
    path = make_backup(settings_of(home), tmp_path / "all.zip").path
    whole, chance = path.read_bytes(), random.Random(1)
    whole_parts = check_backup(path).parts
    with zipfile.ZipFile(path) as archive:
        spans = [(i.header_offset + 100, i.compress_size - 100) for i in archive.infolist()]
    for start, length in spans:
        if length < 1:
            continue
        damaged = bytearray(whole)
        damaged[start + chance.randrange(length)] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(StorageFailed, match="incomplete backup"):
            check_backup(path)
    for _ in range(20):
        path.write_bytes(whole[: chance.randrange(len(whole))])
        with pytest.raises(StorageFailed, match="incomplete backup"):
            restore_backup(path, settings_of(tmp_path / "other"))
    assert not (tmp_path / "other" / "kb").exists()
    path.write_bytes(whole)
    assert check_backup(path).parts == whole_parts


@pytest.mark.parametrize("name", ["../up", "kb/../../up", "/etc/x", "elsewhere/x", "kb"])
def test_an_archive_with_a_place_outside_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, b"x")
        listed = {name: (1, "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881")}
        archive.writestr(MANIFEST, json.dumps({"format": 1, "when": "", "files": listed}))
    with pytest.raises(StorageFailed, match="incomplete backup"):
        restore_backup(path, settings_of(tmp_path / "home"))
    assert not (tmp_path / "up").exists()


def test_nothing_is_overwritten(home: Path, tmp_path: Path) -> None:
    path = make_backup(settings_of(home), tmp_path / "all.zip").path
    with pytest.raises(BadConfig, match="already exists"):
        make_backup(settings_of(home), path)
    with pytest.raises(BadConfig, match="not empty"):
        restore_backup(path, settings_of(home))

"""A bit that a disk turned over is found and named, and nothing is answered from it."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason='not installed: pip install "osler[serve]"')

from served import FixedModel, fill_knowledge_base, loaded_shelf, serving_settings

from osler.audit import entries
from osler.audit.checkpoints import LEDGER
from osler.cli.traces import read_report
from osler.errors import BadRun, KnowledgeBaseError, StorageFailed
from osler.kb.base import KnowledgeBase
from osler.kb.store.access import FILE
from osler.llm.recording.tape import Tape
from osler.questions import parse_question
from osler.runs.answering import FinishedRun, ask
from osler.runs.files import EVENTS, RECORD, TAPE, read_record, write_run
from osler.settings import Settings
from osler.trace import from_line
from osler_serve.ledger import Ledger, LedgerEntry, StoredKey
from osler_serve.ops.audit_proofs import verify_audit
from osler_serve.ops.backup import check_backup, make_backup

FLIPS = 60


def flip(path: Path, chance: random.Random, at: int | None = None, bit: int | None = None) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data)) if at is None else at] ^= 1 << (
        chance.randrange(8) if bit is None else bit
    )
    path.write_bytes(data)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("flips") / "home"
    made.mkdir()
    fill_knowledge_base(made)
    with closing(sqlite3.connect(made / "kb" / FILE)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return made


@pytest.fixture
def settings(home: Path, tmp_path: Path) -> Settings:
    shutil.copytree(home, tmp_path / "home")
    return serving_settings(tmp_path / "home", answer={"answers_from": 0.0, "nearest_from": 0.0})


def ask_once(settings: Settings) -> FinishedRun:
    shelf = loaded_shelf(settings, FixedModel())

    async def solve() -> FinishedRun:
        parts = await shelf.parts_for(settings)
        return await ask(settings, parse_question("What is given first?"), parts=parts)

    try:
        return asyncio.run(solve())
    finally:
        shelf.close()


def test_no_answer_is_made_of_a_text_with_a_turned_bit(settings: Settings) -> None:
    path = settings.kb.path / FILE
    whole, chance = path.read_bytes(), random.Random(40)
    word = b"Adrenaline is given first"
    for n in range(len(word)):
        flip(path, chance, whole.index(word) + n, chance.randrange(7))
        with pytest.raises(KnowledgeBaseError, match=r"kb\.sqlite is damaged"):
            ask_once(settings)
        with KnowledgeBase.open(settings.kb.path) as kb:
            assert kb.verify()
        path.write_bytes(whole)
    assert ask_once(settings).solution is not None


def test_verify_names_a_bit_that_was_turned_beside_a_text(settings: Settings) -> None:
    path, chance = settings.kb.path / FILE, random.Random(41)
    with closing(sqlite3.connect(path)) as db:
        vectors = [value for (value,) in db.execute("SELECT value FROM vector")]
    whole = path.read_bytes()
    row = b"at once.guidelineAnaphylaxis"  # text, source and title, as they lie in its table
    places = [whole.index(row) + 8, whole.index(row) + 20]
    places += [whole.index(one) + n for one in vectors for n in (0, 3, 100, 255)]
    for at in places:
        flip(path, chance, at)
        with KnowledgeBase.open(settings.kb.path) as kb:
            assert kb.verify(), at
        path.write_bytes(whole)
    with KnowledgeBase.open(settings.kb.path) as kb:
        assert kb.verify() == []


@pytest.mark.parametrize("name", [EVENTS, TAPE])
def test_a_run_with_a_turned_bit_is_not_shown(settings: Settings, name: str) -> None:
    folder = ask_once(settings).folder
    assert folder is not None
    whole, chance = (folder / name).read_bytes(), random.Random(42)
    for _ in range(FLIPS):
        flip(folder / name, chance)
        with pytest.raises(BadRun, match=name):
            read_report(folder / EVENTS)
        (folder / name).write_bytes(whole)
    assert read_report(folder / EVENTS).solution is not None
    (folder / RECORD).unlink()
    assert read_report(folder / EVENTS), "a log alone is shown as ever"


def test_what_a_killed_server_left_of_a_run_is_written_over(settings: Settings) -> None:
    folder = ask_once(settings).folder
    assert folder is not None
    record, whole = read_record(folder), (folder / EVENTS).read_bytes()
    events = [from_line(line) for line in whole.decode().splitlines()]
    folder.rename(folder.with_name(f".{folder.name}"))  # all but its name
    assert write_run(folder, record, events, Tape()) == folder
    assert (folder / EVENTS).read_bytes() == whole
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_audit_log_with_a_turned_bit_does_not_verify(tmp_path: Path) -> None:
    audit = {"log": "require", "anchor": str(tmp_path / "anchor")}
    settings = serving_settings(tmp_path, audit=audit)
    for n in range(5):
        entries.write_entry(settings, {"what": "test", "n_of_test": n})
    chance = random.Random(43)
    for path in (tmp_path / "audit" / "entries.jsonl", tmp_path / "audit" / "head"):
        whole = path.read_bytes()
        for _ in range(FLIPS):
            flip(path, chance)
            entries._open_log.cache_clear()
            is_same = path.read_bytes().lower() == whole.lower()  # a hash in capitals
            assert verify_audit(settings).problems or is_same
            path.write_bytes(whole)
    entries._open_log.cache_clear()
    assert verify_audit(settings).problems == ()


def test_a_backup_with_a_turned_bit_is_refused(settings: Settings, tmp_path: Path) -> None:
    path = make_backup(settings, tmp_path / "all.zip").path
    whole, chance, told = path.read_bytes(), random.Random(44), check_backup(path)
    for _ in range(FLIPS // 2):
        flip(path, chance)
        with suppress(StorageFailed):  # what a zip says of times and systems is no content
            assert check_backup(path) == told
        path.write_bytes(whole)


RUN = LedgerEntry(
    "r1", "north", "caller-a", "2026-01-02", "finished", "strat", "asked", "why", "told", "reach-r"
)
KEY = StoredKey("k1", "north-key", "ward", b"HASHHASH", "2025", 7, 9, "ward-scope")


@pytest.mark.parametrize(
    "word",
    [
        b"r1northcaller-a2026-01-02finishedstrataskedwhytoldevent",
        b"k1north-keywardHASHHASH2025\x07\x09",
        *(b"reach-r", b"ward-scope", b"northr1", b"north-keyk1"),
    ],
)
def test_a_row_of_the_ledger_with_a_turned_bit_is_not_gone_by(tmp_path: Path, word: bytes) -> None:
    first = Ledger(tmp_path)
    first.begin_runs([(replace(RUN, status="running", code="", detail=""), None)])
    first.end_run("r1", "finished", code="why", detail="told", events="event")
    first.add_key(KEY)
    assert first.find_run("r1") == RUN
    assert first.list_keys() == [KEY]
    first.close()
    path, chance = tmp_path / LEDGER, random.Random(45)
    whole = path.read_bytes()
    for at in range(whole.index(word), whole.index(word) + len(word)):
        flip(path, chance, at)
        again = Ledger(tmp_path)
        with suppress(StorageFailed):
            assert again.find_run("r1") in (None, RUN)
        with suppress(StorageFailed):
            assert again.run_lines("r1") in ([], ["event"])
        with suppress(StorageFailed):
            assert again.list_keys() in ([], [KEY])
        for workspace in ("north", "nortj", "nosth"):
            with suppress(StorageFailed):
                assert again.list_runs(workspace, before="", limit=9) in ([], [RUN])
        again.close()
        path.write_bytes(whole)

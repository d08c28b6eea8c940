"""Threads: kept, full, deleted, and asked in by two at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from osler.answer.follow_up import Standalone
from osler.errors import BadArgument, OslerError, StorageFailed
from osler.runs.threads import FILE, MOST_TURNS, ThreadMoved, ThreadStore, UnknownThread

PRIVATE = "Is metformin safe for me, Jane Doe?"


def test_turns_are_kept_in_order_with_both_forms_of_the_question(tmp_path: Path) -> None:
    store = ThreadStore(tmp_path)
    thread = store.create_thread("mine")
    store.add_turn(thread, "r1", "What is gout?", Standalone("What is gout?"))
    store.add_turn(store.read_thread("mine"), "r2", "Why?", Standalone("Why (gout)?", "rule"))
    again = ThreadStore(tmp_path).read_thread("mine")
    assert [(turn.n, turn.run, turn.question) for turn in again.turns] == [
        *((1, "r1", "What is gout?"), (2, "r2", "Why?")),
    ]
    assert again.asked == ["What is gout?", "Why (gout)?"]
    assert again.turns[1].origin == "rule"
    assert [one.id for one in store.list_threads()] == ["mine"]


def test_each_workspace_sees_its_own(tmp_path: Path) -> None:
    store = ThreadStore(tmp_path)
    store.create_thread("same", "one")
    with pytest.raises(UnknownThread):
        store.read_thread("same", "two")
    assert store.list_threads("two") == []


@pytest.mark.parametrize("name", ["../x", "a b", "x" * 65, ".hidden", "线"])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadArgument):
        ThreadStore(tmp_path).create_thread(name)


def test_of_two_browsers_in_one_thread_one_is_told_to_read_again(tmp_path: Path) -> None:
    store = ThreadStore(tmp_path)
    seen = store.create_thread("mine")

    def ask(browser: int) -> bool:
        try:
            store.add_turn(seen, f"r{browser}", "Why?", Standalone("Why?"))
        except ThreadMoved:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) == 1
    assert len(store.read_thread("mine").turns) == 1


def test_a_deleted_thread_leaves_no_words_in_the_file(tmp_path: Path) -> None:
    store = ThreadStore(tmp_path)
    thread = store.create_thread("mine")
    store.add_turn(thread, "r1", PRIVATE, Standalone(PRIVATE))
    store.write_pin("mine", True)
    store.delete_thread("mine")
    assert not store.read_pins()
    assert b"Jane Doe" not in (tmp_path / FILE).read_bytes()
    with pytest.raises(UnknownThread):
        store.add_turn(thread, "r2", "Why?", Standalone("Why?"))
    with pytest.raises(UnknownThread):
        store.delete_thread("mine")


def test_a_thread_has_an_end(tmp_path: Path) -> None:
    store = ThreadStore(tmp_path)
    thread = store.create_thread("mine")
    turn = store.add_turn(thread, "r1", "Why?", Standalone("Why?"))
    full = replace(thread, turns=(turn,) * MOST_TURNS)
    with pytest.raises(BadArgument, match="500 turns"):
        store.add_turn(full, "r", "Why?", Standalone("Why?"))


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"noise" * 1000)
    with pytest.raises(StorageFailed) as caught:
        ThreadStore(tmp_path).list_threads()
    assert isinstance(caught.value, OslerError)

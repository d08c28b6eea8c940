"""A knowledge base of another schema is refused whole, with what to do about it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from stores import damage_database, write_corpus

from osler.errors import KnowledgeBaseError, KnowledgeBaseMismatch
from osler.kb import store
from osler.kb.base import KnowledgeBase
from osler.kb.store import access
from osler_lab.testing.scripted import HashingEncoder


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([write_corpus(tmp_path / "iron.jsonl", 3)], source="book")
        made.build(HashingEncoder())
        yield made


def set_schema(kb: KnowledgeBase, version: str) -> None:
    sql = f"UPDATE meta SET value = '{version}' WHERE key = 'schema'"  # noqa: S608 - ours
    damage_database(kb, sql)


def rows(folder: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / access.FILE)) as db:
        return db.execute(sql).fetchall()


TABLES = "SELECT name, sql FROM sqlite_master ORDER BY name"
OTHERS = ["0", "1", str(store.SCHEMA - 1), str(store.SCHEMA + 1), "new"]


@pytest.mark.parametrize("version", OTHERS)
def test_another_schema_is_refused_with_its_fix(kb: KnowledgeBase, version: str) -> None:
    set_schema(kb, version)
    with pytest.raises(KnowledgeBaseMismatch) as caught:
        KnowledgeBase.open(kb.path)
    assert f"has schema {version}" in caught.value.message
    assert f"reads schema {store.SCHEMA}" in caught.value.message
    assert str(kb.path) in caught.value.message
    assert "make a new folder with `osler kb add`" in caught.value.fix
    assert "the version that made this one" in caught.value.fix


@pytest.mark.parametrize("version", OTHERS)
def test_what_is_refused_stays_as_it_is(kb: KnowledgeBase, version: str) -> None:
    set_schema(kb, version)
    tables, meta = rows(kb.path, TABLES), rows(kb.path, "SELECT * FROM meta ORDER BY key")
    with pytest.raises(KnowledgeBaseMismatch):
        KnowledgeBase.open(kb.path)
    assert rows(kb.path, TABLES) == tables
    assert rows(kb.path, "SELECT * FROM meta ORDER BY key") == meta
    assert rows(kb.path, "SELECT count(*) FROM passage") == [(3,)]


def test_no_new_one_is_made_in_its_place(kb: KnowledgeBase) -> None:
    set_schema(kb, "1")
    with pytest.raises(KnowledgeBaseError, match="holds a knowledge base already"):
        KnowledgeBase.create(kb.path)
    assert rows(kb.path, "SELECT value FROM meta WHERE key = 'schema'") == [("1",)]


def test_a_snapshot_of_another_schema_is_refused_once_it_is_back(kb: KnowledgeBase) -> None:
    set_schema(kb, "1")
    kb.take_snapshot("old")
    set_schema(kb, str(store.SCHEMA))
    KnowledgeBase.restore(kb.path, "old")
    with pytest.raises(KnowledgeBaseMismatch, match="schema 1"):
        KnowledgeBase.open(kb.path)


def test_a_new_one_says_its_schema_and_opens(tmp_path: Path) -> None:
    KnowledgeBase.create(tmp_path / "new").close()
    written = rows(tmp_path / "new", "SELECT value FROM meta WHERE key = 'schema'")
    assert written == [(str(store.SCHEMA),)]
    with KnowledgeBase.open(tmp_path / "new") as again:
        assert again.verify()[0].startswith("it is not built")
        assert again.info().passages == 0

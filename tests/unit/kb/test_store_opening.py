"""Opening: what is refused and why, what cannot be found, and what damage looks like."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from stores import damage_database, write_corpus

from osler.errors import (
    KnowledgeBaseError,
    KnowledgeBaseMismatch,
    KnowledgeBaseMissing,
    UnknownPassage,
)
from osler.kb.base import KnowledgeBase
from osler.kb.store import access
from osler_lab.testing.scripted import HashingEncoder


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([write_corpus(tmp_path / "iron.jsonl", 20)], source="book")
        yield made


# Opening


@pytest.mark.parametrize("inside", [None, b""], ids=["no folder", "an empty file"])
def test_opening_an_absent_knowledge_base_is_an_error(tmp_path: Path, inside: bytes | None) -> None:
    folder = tmp_path / "kb"
    if inside is not None:
        folder.mkdir()
        (folder / access.FILE).write_bytes(inside)
    with pytest.raises(KnowledgeBaseMissing) as caught:
        KnowledgeBase.open(folder)
    assert "osler kb build --sample" in caught.value.fix
    KnowledgeBase.create(folder).close()
    KnowledgeBase.open(folder).close()


def test_a_file_of_another_kind_is_no_knowledge_base(tmp_path: Path) -> None:
    (tmp_path / access.FILE).write_bytes(b"%PDF-1.7 and then more text" * 100)
    with pytest.raises(KnowledgeBaseMismatch, match="not a knowledge base"):
        KnowledgeBase.open(tmp_path)
    with pytest.raises(KnowledgeBaseMismatch, match="not a knowledge base"):
        KnowledgeBase.create(tmp_path)


def test_somebody_elses_database_is_no_knowledge_base(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / access.FILE) as db:
        db.execute("CREATE TABLE invoice(id)")
    db.close()
    with pytest.raises(KnowledgeBaseMismatch, match="not a knowledge base"):
        KnowledgeBase.open(tmp_path)


def test_a_database_that_names_no_schema_is_none_of_ours(kb: KnowledgeBase) -> None:
    damage_database(kb, "DELETE FROM meta")
    with pytest.raises(KnowledgeBaseMismatch, match="not a knowledge base"):
        KnowledgeBase.open(kb.path)


def test_another_schema_is_refused(kb: KnowledgeBase) -> None:
    damage_database(kb, "UPDATE meta SET value = '99' WHERE key = 'schema'")
    with pytest.raises(KnowledgeBaseMismatch, match="schema 99"):
        KnowledgeBase.open(kb.path)


def test_creating_over_an_existing_knowledge_base_is_refused(kb: KnowledgeBase) -> None:
    with pytest.raises(KnowledgeBaseError, match="already"):
        KnowledgeBase.create(kb.path)


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(KnowledgeBaseError, match="cannot be made"):
        KnowledgeBase.create(tmp_path / "file" / "kb")


def test_a_folder_with_odd_characters_in_its_name_is_a_folder(tmp_path: Path) -> None:
    with KnowledgeBase.create(tmp_path / "知识 %20?#x") as kb:
        kb.add([write_corpus(tmp_path / "iron.jsonl", 2)], source="book")
    with KnowledgeBase.open(kb.path) as again:
        assert again.info().passages == 2


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user who owns nothing; one who is not root already owns too little."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs the rights of POSIX")
def test_a_folder_that_may_not_be_written_to_can_be_searched_but_not_added_to(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.build(HashingEncoder())
    kb.close()
    # Not under tmp_path, which only its owner may enter.
    with tempfile.TemporaryDirectory() as name:
        shutil.copy(kb.path / access.FILE, name)
        (Path(name) / access.FILE).chmod(0o444)
        Path(name).chmod(0o555)
        with without_rights(), KnowledgeBase.open(Path(name)) as locked:
            assert len(locked.by_words(["iron"], k=3)) == 3
            assert locked.verify() == []
            with pytest.raises(KnowledgeBaseError, match="cannot be written"):
                locked.remove(source="book")
            with pytest.raises(KnowledgeBaseError, match="cannot be written"):
                locked.update()
            with pytest.raises(KnowledgeBaseError, match="cannot be written"):
                locked.take_snapshot("monday")
            with pytest.raises(KnowledgeBaseError, match="cannot be written"):
                locked.build(HashingEncoder())
        Path(name).chmod(0o755)


# Asking for what is not there


def test_an_unknown_passage_of_a_known_document_names_the_range(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    with pytest.raises(UnknownPassage) as caught:
        kb.get("book:iron3#7")
    assert caught.value.fix == "the document has 1, book:iron3#0 to book:iron3#0"


def test_an_unknown_document_names_what_stands_beside_it(kb: KnowledgeBase) -> None:
    with pytest.raises(UnknownPassage) as caught:
        kb.neighbours("book:iron5x#0", 1)
    assert caught.value.fix == "the nearest are book:iron5#0 and book:iron6#0"


def test_an_id_of_an_unknown_source_names_the_sources(kb: KnowledgeBase) -> None:
    with pytest.raises(UnknownPassage) as caught:
        kb.get("nope:1#0")
    assert caught.value.fix == "there is no source 'nope', but book"


def test_lone_surrogate_in_a_passage_id_is_an_unknown_passage(kb: KnowledgeBase) -> None:
    with pytest.raises(UnknownPassage):
        kb.get("book:iron\udcff#0")


def test_in_an_empty_knowledge_base_nothing_is_near(tmp_path: Path) -> None:
    with KnowledgeBase.create(tmp_path / "kb") as kb, pytest.raises(UnknownPassage, match="empty"):
        kb.get("book:x#0")


# Damage

NAN = f"x'{np.full(64, np.nan, np.float32).tobytes().hex()}'"


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("DELETE FROM vector WHERE passage = 3", "1 passages have no vector"),
        ("UPDATE vector SET value = x'0000' WHERE passage = 3", "2 bytes instead of 256"),
        ("UPDATE vector SET value = zeroblob(256) WHERE passage = 3", "not of length 1 but 0"),
        ("UPDATE passage SET text = 'Forged.' WHERE number = 3", "changed since it was built"),
        ("DELETE FROM document WHERE number = 3", "belongs to no document"),
        ("UPDATE passage SET language = 'xx' WHERE number = 3", "does not know the language xx"),
        ("INSERT INTO lexical(lexical) VALUES ('delete-all')", "20 passages are not in both"),
        ("UPDATE meta SET value = '' WHERE key = 'built'", "it is not built: 0 of 20"),
    ],
)
def test_verify_names_the_damage(kb: KnowledgeBase, sql: str, problem: str) -> None:
    kb.build(HashingEncoder())
    damage_database(kb, sql)
    assert any(problem in line for line in kb.verify()), kb.verify()


def test_vectors_that_are_not_numbers_are_named(kb: KnowledgeBase) -> None:
    kb.build(HashingEncoder())
    damage_database(kb, f"UPDATE vector SET value = {NAN} WHERE passage = 3")  # noqa: S608
    assert "book:iron2#0 has a vector not finite" in kb.verify()


def test_a_damaged_file_is_named(kb: KnowledgeBase) -> None:
    """No page may be empty any more, as if the file had been altered by hand."""
    kb.build(HashingEncoder())
    with closing(sqlite3.connect(kb.path / access.FILE, isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_master SET sql = replace(sql, 'page INTEGER', 'page NOT NULL')")
    kb.close()
    with KnowledgeBase.open(kb.path) as damaged:
        assert damaged.verify()[0].startswith("the file is damaged: NULL value in passage.page")


def test_a_connection_in_use_is_closed_when_it_comes_back(kb: KnowledgeBase) -> None:
    readers = access.ReaderPool(kb.path)
    with readers.borrow() as db:
        readers.close()
        assert db.execute("SELECT count(*) FROM passage").fetchone() == (20,)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")


def test_a_rebuild_mends_both_indexes(kb: KnowledgeBase) -> None:
    kb.build(HashingEncoder())
    damage_database(kb, "INSERT INTO lexical(lexical) VALUES ('delete-all')")
    damage_database(kb, "DELETE FROM vector")
    assert kb.build(HashingEncoder(), rebuild=True).encoded == 20
    assert kb.verify() == []
    assert len(kb.by_words(["iron"], k=50)) == 20


def test_a_damaged_file_is_an_error_with_advice(kb: KnowledgeBase) -> None:
    kb.build(HashingEncoder())
    kb.close()
    file = kb.path / access.FILE
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    for name in ("-wal", "-shm"):
        Path(f"{file}{name}").unlink(missing_ok=True)
    with pytest.raises(KnowledgeBaseError) as caught, KnowledgeBase.open(kb.path) as damaged:
        damaged.by_words(["iron"], k=3)
    assert caught.value.fix

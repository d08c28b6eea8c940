"""A knowledge base of an older version of Osler is brought up to this one when it is opened."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from osler.kb.base import KnowledgeBase
from osler.kb.ingest.prepare import mark_of
from osler.kb.store import access, migrate, schema
from osler.testing.encoders import HashingEncoder
from osler.text import split_words

SCHEMA_1 = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE file(
  id INTEGER PRIMARY KEY, source TEXT NOT NULL, path TEXT NOT NULL,
  fingerprint TEXT NOT NULL, format TEXT NOT NULL, complete INTEGER NOT NULL,
  UNIQUE(source, path));
CREATE INDEX file_fingerprint ON file(source, fingerprint);
CREATE TABLE document(
  number INTEGER PRIMARY KEY, source TEXT NOT NULL, id TEXT NOT NULL, title TEXT NOT NULL,
  file INTEGER NOT NULL REFERENCES file(id) ON DELETE CASCADE,
  UNIQUE(source, id));
CREATE INDEX document_file ON document(file);
CREATE TABLE passage(
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL,
  source TEXT NOT NULL, title TEXT NOT NULL, section TEXT NOT NULL,
  page INTEGER, year INTEGER, url TEXT NOT NULL, code TEXT NOT NULL, kind TEXT NOT NULL,
  licence TEXT NOT NULL, language TEXT NOT NULL, illustrative INTEGER NOT NULL,
  document INTEGER NOT NULL REFERENCES document(number) ON DELETE CASCADE,
  n INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE INDEX passage_document ON passage(document, n);
CREATE TABLE dropped(
  source TEXT NOT NULL, file INTEGER REFERENCES file(id) ON DELETE CASCADE,
  place TEXT NOT NULL, reason TEXT NOT NULL);
CREATE INDEX dropped_file ON dropped(file);
CREATE INDEX dropped_place ON dropped(source, place) WHERE file IS NULL;
CREATE TABLE vector(
  passage INTEGER PRIMARY KEY REFERENCES passage(number) ON DELETE CASCADE,
  value BLOB NOT NULL);
CREATE VIRTUAL TABLE lexical USING fts5(words, source, content='', tokenize='porter unicode61');
CREATE VIRTUAL TABLE term USING fts5vocab(lexical, 'row');
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """As the first version left it: one document of a plain file and one of an archive."""
    folder = tmp_path / "kb"
    folder.mkdir()
    with closing(sqlite3.connect(folder / access.FILE, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        for statement in SCHEMA_1.split(";\n"):
            db.execute(statement)
        db.execute("INSERT INTO meta VALUES ('schema', '1')")
        for n, path in enumerate(("/books/a.jsonl", "/books/b.tar.gz!x/b.jsonl"), 1):
            db.execute("INSERT INTO file VALUES (?, 'book', ?, 'f', 'medrag-jsonl', 1)", (n, path))
            db.execute("INSERT INTO document VALUES (?, 'book', ?, 'Title', ?)", (n, f"d{n}", n))
            text = f"Iron deficiency number {n}."
            db.execute(
                "INSERT INTO passage VALUES (?, ?, ?, 'book', 'Title', '', NULL, 2019, '', '',"
                " 'Review', 'CC0', 'en', 0, ?, 0, 4)",
                (n, f"book:d{n}#0", text, n),
            )
            tokens = " ".join(split_words(f"Title\n{text}"))
            source = str(int.from_bytes(b"book", "big"))
            db.execute(
                "INSERT INTO lexical(rowid, words, source) VALUES (?,?,?)", (n, tokens, source)
            )
        db.execute("INSERT INTO dropped VALUES ('book', 1, 'a.jsonl:3', 'no text')")
        db.execute("INSERT INTO dropped VALUES ('book', 2, 'd1', 'duplicate document id')")
    return folder


def rows(folder: Path, sql: str, *values: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / access.FILE)) as db:
        return db.execute(sql, values).fetchall()


def columns(folder: Path, table: str) -> list[tuple[object, ...]]:
    described = 'SELECT name, type, "notnull", dflt_value FROM pragma_table_info(?)'
    return rows(folder, described, table)


def test_its_passages_are_found_and_built(old: Path) -> None:
    with KnowledgeBase.open(old) as kb:
        assert [passage.id for passage, _ in kb.by_words(["iron", "2"], k=1)] == ["book:d2#0"]
        kb.build(HashingEncoder())
        assert kb.verify() == []
        assert kb.info().sources[0].drops == {"duplicate document id": 1, "no text": 1}


def test_its_documents_can_be_filtered(old: Path) -> None:
    KnowledgeBase.open(old).close()
    assert (
        rows(old, "SELECT year, lang, kinds, retracted, trust FROM document")
        == [(2019, "en", "Review", 0, 4)] * 2
    )


def test_its_files_know_what_they_are_read_from(old: Path) -> None:
    KnowledgeBase.open(old).close()
    assert rows(
        old,
        "SELECT root.path, member, licence FROM file JOIN root ON root.id = file.root"
        " ORDER BY file.id",
    ) == [("/books/a.jsonl", "", "CC0"), ("/books/b.tar.gz", "x/b.jsonl", "CC0")]


def test_its_documents_are_known_again_in_another_file(old: Path) -> None:
    KnowledgeBase.open(old).close()
    found = rows(old, "SELECT mark FROM document WHERE number = 1")
    assert found == [(mark_of("Title", ["Iron deficiency number 1."]),)]


def test_a_double_that_was_dropped_knows_its_first(old: Path) -> None:
    KnowledgeBase.open(old).close()
    found = rows(old, "SELECT document, first FROM dropped WHERE first != ''")
    assert found == [("d1", "d1")]


def test_it_has_the_tables_of_a_new_one(old: Path, tmp_path: Path) -> None:
    KnowledgeBase.open(old).close()
    KnowledgeBase.create(tmp_path / "new").close()
    listed = "SELECT name FROM sqlite_master WHERE type IN ('table', 'index') ORDER BY name"
    assert rows(old, listed) == rows(tmp_path / "new", listed)
    for (name,) in rows(old, "SELECT name FROM sqlite_master WHERE type = 'table'"):
        assert columns(old, str(name)) == columns(tmp_path / "new", str(name))


def test_a_migration_that_breaks_off_leaves_the_old_one(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(db: sqlite3.Connection) -> None:
        migrate.to_2(db)
        raise KeyboardInterrupt

    monkeypatch.setitem(migrate.STEPS, 1, fail)
    with pytest.raises(KeyboardInterrupt):
        KnowledgeBase.open(old)
    assert rows(old, "SELECT value FROM meta") == [("1",)]
    assert rows(old, "SELECT count(*) FROM pragma_table_info('document')") == [(5,)]
    monkeypatch.undo()
    KnowledgeBase.open(old).close()
    assert rows(old, "SELECT value FROM meta") == [(str(schema.SCHEMA),)]

"""An export holds every passage with where it comes from, and goes in again as it was."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from osler.errors import BadConfig, KnowledgeBaseError, MalformedSource
from osler.kb.base import KnowledgeBase
from osler.kb.store import access
from osler.types import Passage
from osler_lab.testing.scripted import HashingEncoder

LONG = " ".join(f"Sentence {i} on anaemia, iron and 铁." for i in range(200))


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    (tmp_path / "a.md").write_text(f"# Anaemia\n\n## Causes\n\n{LONG}\n\n## Care\n\nIron.\n")
    (tmp_path / "z.md").write_text("# 糖尿病\n\n二甲双胍是首选药物。\n", encoding="utf-8")
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([tmp_path / "a.md"], source="book", licence="CC0", trust=5)
        made.add([tmp_path / "z.md"], source="wiki")
        made.build(HashingEncoder())
        yield made


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_what_is_exported_and_added_again_has_the_same_ids_and_texts(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    done = kb.export(tmp_path / "all.jsonl")
    assert (done.documents, done.passages) == (2, kb.info().passages)
    with KnowledgeBase.create(tmp_path / "again") as again:
        added = again.add_export([done.path])
        assert (added.documents, added.drops) == (2, {})
        assert again.build(HashingEncoder()).snapshot == kb.snapshot
        for passage in kb.neighbours("book:" + _document(kb, "book") + "#0", 99):
            assert again.get(passage.id) == passage
        assert again.update().unchanged == 2


def _document(kb: KnowledgeBase, source: str) -> str:
    with closing(access.open_connection(kb.path)) as db:
        row = db.execute("SELECT id FROM document WHERE source = ?", (source,)).fetchone()
    return str(row[0])


def test_where_it_comes_from_survives_the_journey(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.export(tmp_path / "all.jsonl")
    id = f"book:{_document(kb, 'book')}#0"
    before = kb.provenance(id)
    with KnowledgeBase.create(tmp_path / "again") as again:
        again.add_export([tmp_path / "all.jsonl"])
        after = again.provenance(id)
        assert (after.origin, after.checksum) == (before.origin, before.checksum)
        assert (after.trust, after.format) == (5, "osler-jsonl")
        again.export(tmp_path / "twice.jsonl")
    first, second = lines(tmp_path / "all.jsonl"), lines(tmp_path / "twice.jsonl")
    changing = ("format", "added", "snapshot", "encoder")
    for line in (*first, *second):
        for key in changing:
            line.pop(key, None)
    assert first == second


def test_each_line_names_all_that_is_known(kb: KnowledgeBase, tmp_path: Path) -> None:
    kb.export(tmp_path / "wiki.jsonl", source="wiki")
    header, line = lines(tmp_path / "wiki.jsonl")
    assert header["sources"] == ["wiki"]
    assert line["text"] == "二甲双胍是首选药物。"
    assert line["origin"] == str(tmp_path / "z.md")
    assert len(str(line["checksum"])) == 64
    assert (line["trust"], line["language"], line["n"]) == (2, "zh", 0)


def test_only_what_came_in_since_is_exported(kb: KnowledgeBase, tmp_path: Path) -> None:
    with access.open_for_writing(kb.path) as db:
        db.execute("UPDATE document SET added = 1000 WHERE source = 'book'")
    since = datetime(2020, 1, 1, tzinfo=UTC)
    assert kb.export(tmp_path / "new.jsonl", since=since).documents == 1


def test_export_with_a_named_source_goes_into_that_source(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.export(tmp_path / "all.jsonl")
    with KnowledgeBase.create(tmp_path / "again") as again:
        again.add([tmp_path / "all.jsonl"], source="mine")
        assert again.sources == ("mine",)
        assert again.info().passages == kb.info().passages


def test_passages_of_any_size_and_number_go_in_again_as_they_were(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.add([tmp_path / "a.md"], source="long", chunk="3000")
    texts = {"mine:iron#3": f"Iron. {LONG}", "mine:iron#7": "Tea."}
    kb.put(Passage(id, text, "mine", "Iron") for id, text in texts.items())
    kb.build(HashingEncoder())
    kb.export(tmp_path / "all.jsonl")
    with KnowledgeBase.create(tmp_path / "again") as again:
        again.add_export([tmp_path / "all.jsonl"])
        assert again.build(HashingEncoder()).snapshot == kb.snapshot
        assert again.get("mine:iron#3") == kb.get("mine:iron#3")


def test_lines_with_one_number_are_counted_anew(kb: KnowledgeBase, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    kb.export(path, source="wiki")
    header, row = path.read_text(encoding="utf-8").splitlines()
    other = json.dumps({**json.loads(row), "text": "Iron."})
    path.write_text("\n".join((header, row, other)) + "\n", encoding="utf-8")
    with KnowledgeBase.create(tmp_path / "again") as again:
        again.add_export([path])
        assert again.get(str(json.loads(row)["id"]).replace("#0", "#1")).text == "Iron."


def test_an_update_reads_a_newer_export_into_its_sources(kb: KnowledgeBase, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    kb.export(path)
    os.utime(path, (1_600_000_000, 1_600_000_000))
    with KnowledgeBase.create(tmp_path / "again") as again:
        again.add_export([path])
        kb.remove(source="wiki")
        kb.export(path)
        again.update()
        assert again.sources == ("book",)


def test_export_to_an_unknown_file_extension_is_refused(kb: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"the format of .* is unknown"):
        kb.export(tmp_path / "all.xls")


def test_an_export_that_cannot_be_written_leaves_what_was_there(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    target = tmp_path / "all.jsonl"
    target.write_text("before")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("osler.kb.store.export._ROWS", 1)
        with pytest.raises(KeyboardInterrupt):
            kb.export(target, progress=interrupt)
    assert target.read_text() == "before"
    assert not list(tmp_path.glob(".*"))
    with pytest.raises(KnowledgeBaseError, match="cannot be written"):
        kb.export(tmp_path / "no" / "such" / "folder.jsonl")
    with pytest.raises(KnowledgeBaseError, match="is a folder"):
        kb.export(tmp_path)


# Reading one


def test_a_file_that_says_no_source_must_be_given_one(kb: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(KnowledgeBaseError, match="--source"):
        kb.add_export([tmp_path / "a.md"])
    with pytest.raises(KnowledgeBaseError):
        kb.add_export([tmp_path])
    with pytest.raises(MalformedSource, match="nowhere does not exist"):
        kb.add_export([tmp_path / "nowhere"])


def test_an_export_of_a_newer_version_is_refused(kb: KnowledgeBase, tmp_path: Path) -> None:
    path = tmp_path / "new.jsonl"
    path.write_text('{"osler-passages": 9, "sources": ["book"]}\n')
    with pytest.raises(MalformedSource, match="newer version"):
        kb.add_export([path])


def test_a_bad_line_is_a_drop_and_the_rest_goes_in(kb: KnowledgeBase, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    kb.export(path, source="book")
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    hostile = json.dumps({**json.loads(rows[0]), "document": "../../etc"})
    path.write_text("\n".join((header, rows[0], '{"id": 1}', hostile, "{", *rows[1:])) + "\n")
    with KnowledgeBase.create(tmp_path / "again") as again:
        added = again.add_export([path])
        assert added.documents == 1
        assert added.drops == {"malformed row": 1, "no id": 1, "not JSON": 1}
        assert again.info().passages == len(rows)
        assert {letter.line for letter in again.dead_letters()} == {3, 4, None}
        assert {letter.place.rpartition(":")[2] for letter in again.dead_letters()} == set("345")

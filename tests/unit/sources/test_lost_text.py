"""Text that was once dropped without need: untitled records, UTF-16, namesakes, coded rows."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest

import osler
from osler.kb.base import KnowledgeBase
from osler.kb.ingest.reader_process import ReadLimits, read_batches
from osler.sources.discover import discover
from osler.sources.formats.reading import first_words
from osler.sources.records import Document, Drop

LONG = "Warfarin " + "and many other words " * 20


def documents(path: Path) -> list[Document]:
    return [one for one in osler.read(path) if isinstance(one, Document)]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Rest helps. So does water.", "Rest helps"),
        ("休息有益。多喝水。", "休息有益"),
        ("No end here", "No end here"),
    ],
)
def test_a_text_is_called_by_its_first_sentence(text: str, title: str) -> None:
    assert first_words(text) == title


def test_a_long_sentence_is_cut_at_a_word() -> None:
    title = first_words(LONG)
    assert len(title) <= 101
    assert title.endswith("…")
    assert LONG.startswith(title[:-1])


def test_records_without_a_title_are_called_by_their_first_words(tmp_path: Path) -> None:
    lines = [{"id": "a", "content": "Rest helps. More."}, {"content": "Water helps."}]
    (tmp_path / "s.jsonl").write_text(
        "\n".join(json.dumps(line | {"title": ""}) for line in lines), "utf-8"
    )
    (tmp_path / "m.txt").write_text("PMID- 2\nAB  - Iron helps. It is cheap.\n", "utf-8")

    found = documents(tmp_path)

    assert [one.title for one in found] == ["Iron helps", "", ""]  # search benchmarks have none
    assert [one.sections[0].text for one in found[1:]] == ["Rest helps. More.", "Water helps."]


@pytest.mark.parametrize("mark", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "drug,max_daily\nIbuprofen,1.2 g\n"),
        ("a.md", "# Ibuprofen\n\nAt most 1.2 g a day.\n"),
        ("a.html", "<html><title>Ibuprofen</title><p>At most 1.2 g a day.</p></html>"),
        ("a.jsonl", '{"id": "1", "title": "Ibuprofen", "content": "At most 1.2 g."}\n'),
    ],
)
def test_text_in_utf_16_reads_as_the_same_in_utf_8(
    tmp_path: Path, name: str, text: str, mark: str
) -> None:
    wide, narrow = tmp_path / "wide", tmp_path / "narrow"
    for folder in (wide, narrow):
        folder.mkdir()
    order = codecs.BOM_UTF16_LE if mark == "utf-16-le" else codecs.BOM_UTF16_BE
    (wide / name).write_bytes(order + text.encode(mark))
    (narrow / name).write_text(text, "utf-8")

    found = documents(wide)

    assert found
    assert found == documents(narrow)
    (entry,) = discover([wide])
    assert not isinstance(entry, Drop)
    limits = ReadLimits(seconds=60, memory=2**30, documents=100)
    assert [one for batch in read_batches(entry, limits) for one in batch] == found


def test_files_that_differ_in_their_ending_alone_are_both_kept(tmp_path: Path) -> None:
    folder = tmp_path / "ward"
    folder.mkdir()
    (folder / "a.md").write_text("# Rest\n\nRest helps.", "utf-8")
    (folder / "a.txt").write_text("Water helps.", "utf-8")
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        added = kb.add([folder], source="book")
        assert (added.documents, added.drops) == (2, {})
        assert kb.get("book:a#0").text == "Rest helps."
        assert kb.get("book:a.2#0").text == "Water helps."

        (folder / "a.txt").write_text("Water helps a lot.", "utf-8")
        changed = kb.add([folder], source="book")

        assert (changed.documents, changed.gone) == (1, 0)
        assert kb.get("book:a.2#0").text == "Water helps a lot."


def test_a_namesake_takes_no_id_of_another_edition(tmp_path: Path) -> None:
    folder = tmp_path / "ward"
    folder.mkdir()
    names = ("g-2023.1.md", "g-2023.1.txt", "g-2023.2.txt", "m.².md", "m.².txt")
    for name in names:
        (folder / name).write_text(f"Rest helps, says {name}.", "utf-8")
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([folder], source="book")
        ids = ("g-2023.1", "g-2023.1.2", "g-2023.2", "m.²", "m.².2")
        found = [kb.get(f"book:{id}#0").text for id in ids]
    assert found == [f"Rest helps, says {name}." for name in names]


def test_a_row_that_begins_with_a_code_is_called_by_its_first_words(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("code,meaning\n17,Fever of unknown origin\n", "utf-8")

    (row,) = documents(tmp_path)

    assert row.title == "Fever of unknown origin"
    assert row.sections[0].text == "code: 17; meaning: Fever of unknown origin"

"""The papers' ways of cutting, and the user's numbers."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from osler.errors import BadConfig
from osler.kb.base import KnowledgeBase
from osler.kb.ingest import reader_process
from osler.kb.ingest.chunk import (
    KAG,
    OMNI,
    TC_RAG,
    Chunking,
    chunk_document,
    cut_windows,
    document_passages,
    parse_chunking,
    token_count,
)
from osler.sources.records import Document, Section

SENTENCE = "Blood pressure is measured twice. "
CHINESE = "患者血压升高，应当复查两次。"


def texts(text: str, how: Chunking, source: str = "book") -> list[str]:
    document = Document("d", "t", (Section(text),))
    return [piece.text for piece in chunk_document(document, how=how, source=source)]


def test_the_presets_are_the_papers_numbers() -> None:
    assert (OMNI.size, OMNI.overlap, OMNI.unit) == (1000, 0, "characters")
    assert (KAG.size, KAG.overlap, KAG.unit) == (1000, 0, "characters")
    assert (TC_RAG.size, TC_RAG.overlap, TC_RAG.unit) == (128, 50, "tokens")


@pytest.mark.parametrize(
    ("name", "size", "overlap", "unit"),
    [
        ("800", 800, 0, "characters"),
        ("800+100", 800, 100, "characters"),
        ("800c+100", 800, 100, "characters"),
        ("256t+64", 256, 64, "tokens"),
        ("256t", 256, 0, "tokens"),
    ],
)
def test_the_user_s_numbers(name: str, size: int, overlap: int, unit: str) -> None:
    how = parse_chunking(name)

    assert (how.name, how.size, how.overlap, how.unit) == (name, size, overlap, unit)


@pytest.mark.parametrize("name", ["", "big", "12", "800+400", "800+", "+5", "800t+900", "８００"])
def test_a_way_that_is_none_is_refused_with_the_ways_there_are(name: str) -> None:
    with pytest.raises(BadConfig, match=r"unknown chunking|cannot overlap"):
        parse_chunking(name)


def test_a_word_a_han_character_and_a_mark_are_a_token_each() -> None:
    assert token_count("CD4 is 3.5, 血压 (ok)。") == 10


def test_128_tokens_with_50_overlap_as_tc_rag_has_them() -> None:
    text = "word " * 300
    spans = list(cut_windows(text, 128, 50, "tokens"))

    # 0-128, then each begins 78 further: 78-206, 156-284, 234-300.
    assert spans == [(5 * a, 5 * b) for a, b in [(0, 128), (78, 206), (156, 284), (234, 300)]]


def test_a_chinese_window_ends_after_a_full_stop() -> None:
    pieces = texts(CHINESE * 40, TC_RAG)

    assert len(pieces) > 3
    assert all(piece.endswith("。") for piece in pieces)
    assert all(64 < token_count(piece) <= 128 for piece in pieces[:-1])


def test_an_english_window_ends_after_a_sentence() -> None:
    pieces = texts(SENTENCE * 60, parse_chunking("300+80"))

    assert all(piece.rstrip().endswith("twice.") for piece in pieces)
    assert all(len(piece) <= 300 for piece in pieces)


def test_a_text_without_sentences_is_cut_between_words() -> None:
    pieces = texts("fibrillation " * 60, parse_chunking("100+20"))

    assert {word for piece in pieces for word in piece.split()} == {"fibrillation"}


def test_a_paragraph_of_a_web_page_is_a_chunk_of_its_own_with_kag() -> None:
    text = "First.\n\nSecond.\nThird."

    assert texts(text, KAG, "web") == ["First.\n\n", "Second.\n", "Third."]
    assert texts(text, KAG, "book") == texts(text, OMNI, "web") == [text]


def test_the_chapter_path_stays_with_each_chunk() -> None:
    section = Section(SENTENCE * 60, ("Part I", "Heart"))
    found = list(document_passages(Document("d", "Book", (section,)), "book", how=KAG))

    assert len(found) > 1
    assert {passage.heading for passage in found} == {"Book > Part I > Heart"}


@pytest.mark.parametrize("word", ["x", "word ", "糖", "Rest. ", "line\n"])
def test_a_text_of_a_million_characters_is_cut_without_loss_and_soon(word: str) -> None:
    text = word * (1_000_000 // len(word))
    pieces = texts(text, OMNI)

    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 1000


def test_a_file_added_with_another_way_is_cut_anew_and_the_way_is_stored(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\n" + SENTENCE * 100)
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        first = kb.add([tmp_path / "a.md"], source="book")
        again = kb.add([tmp_path / "a.md"], source="book")
        other = kb.add([tmp_path / "a.md"], source="book", chunk="tc-rag")

    assert (first.files, again.unchanged, other.files) == (1, 1, 1)
    assert other.passages > first.passages
    with sqlite3.connect(tmp_path / "kb" / "kb.sqlite") as db:
        assert db.execute("SELECT chunk FROM root").fetchall() == [("tc-rag",)]


def test_an_update_cuts_a_changed_file_as_it_was_added(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\n" + SENTENCE * 100)
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([tmp_path / "a.md"], source="book", chunk="300+80")
        (tmp_path / "a.md").write_text("# A\n\n" + SENTENCE * 110)
        updated = kb.update(checksum=True)

    assert updated.documents == 1
    assert updated.passages > 10


@pytest.mark.parametrize("worth", [1, reader_process.WORTH])
def test_a_changed_collection_reads_its_modules_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worth: int
) -> None:
    """Its modules' own files are as they were, so contents must be compared."""
    monkeypatch.setattr(reader_process, "WORTH", worth)
    module = (
        '<document xmlns="http://cnx.rice.edu/cnxml"><title>Gout</title><metadata><content-id>m1'
        "</content-id><title>Gout</title></metadata><content><para>It hurts.</para></content>"
        "</document>"
    )
    book = (
        '<collection xmlns="http://cnx.rice.edu/collxml"><metadata><title>{}</title></metadata>'
        '<content><module document="m1"/></content></collection>'
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "m1.cnxml").write_text(module)
    (tmp_path / "in" / "n.collection.xml").write_text(book.format("Nursing"))
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([tmp_path / "in"], source="book")
        first = kb.get("book:m1#0").title
        (tmp_path / "in" / "n.collection.xml").write_text(book.format("Nursing, second edition"))
        kb.update(checksum=True)
        second = kb.get("book:m1#0").title

    assert (first, second) == ("Nursing", "Nursing, second edition")

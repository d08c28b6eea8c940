"""Passages of a document: their text, their place, their number."""

from __future__ import annotations

from osler.kb.ingest.chunk import Chunk, chunk_document, document_passages
from osler.sources.records import Document, Section

SENTENCE = "Blood pressure is measured twice. "


def test_a_section_that_fits_is_one_chunk() -> None:
    section = Section("Short text.")

    assert list(chunk_document(Document("d", "t", (section,)))) == [Chunk(section, 0, 11)]


def test_a_cut_falls_between_sentences_when_it_can() -> None:
    document = Document("d", "t", (Section(SENTENCE * 60),))

    pieces = [piece.text for piece in chunk_document(document)]

    assert all(len(piece) <= 1000 for piece in pieces)
    assert all(piece.strip().endswith("twice.") for piece in pieces)


def test_chinese_is_cut_after_a_full_stop() -> None:
    document = Document("d", "t", (Section("患者血压升高，应当复查两次。" * 100),))

    assert all(piece.text.endswith("。") for piece in chunk_document(document))


def test_a_chunk_never_crosses_a_heading() -> None:
    first, second = Section("One.", ("A",)), Section("Two.", ("B",))

    assert [c.section for c in chunk_document(Document("d", "t", (first, second)))] == [
        first,
        second,
    ]


def test_a_passage_knows_where_it_stands() -> None:
    document = Document(
        "af",
        "Atrial fibrillation",
        (Section("Rate control comes first.", ("Treatment", "Drugs"), page=7),),
        year=2023,
        url="https://example.org/af",
        code="X:1",
        kind="guideline",
        licence="CC BY 4.0",
    )

    (passage,) = document_passages(document, "guideline", "CC0")

    assert passage.id == "guideline:af#0"
    assert passage.heading == "Atrial fibrillation > Treatment > Drugs"
    assert str(passage.locator) == "Treatment > Drugs, p. 7, guideline, 2023, X:1"
    assert passage.locator.url == "https://example.org/af"
    assert passage.licence == "CC BY 4.0"


def test_the_licence_of_the_source_holds_where_a_document_has_none() -> None:
    (passage,) = document_passages(Document("d", "t", (Section("Text."),)), "book", "CC0")

    assert passage.licence == "CC0"


def test_white_space_makes_no_passage_and_takes_no_number() -> None:
    document = Document(
        "d", "t", (Section(" \n "), Section(" One. "), Section(""), Section("Two."))
    )

    found = [(passage.id, passage.text) for passage in document_passages(document, "book")]

    assert found == [("book:d#0", "One."), ("book:d#1", "Two.")]

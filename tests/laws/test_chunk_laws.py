"""Laws of cutting: nothing is lost, nothing is too long, nothing moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from osler.kb.ingest.chunk import Chunking, chunk_document, document_passages
from osler.sources.records import Document, Section

# Storable text only: a parser's `clean` removes lone surrogates before this.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=400) | st.lists(
    st.sampled_from(["a", "é", " ", "\n", "\n\n", "。", "糖尿病", ". ", "e.g. ", "\t", "👩‍⚕️"]),
    max_size=400,
).map("".join)
sections = st.builds(Section, texts, st.tuples(st.text(max_size=5)))
documents = st.builds(
    Document,
    id=st.just("d"),
    title=st.just("t"),
    sections=st.lists(sections, max_size=4).map(tuple),
)
limits = st.integers(min_value=1, max_value=60)


@given(documents, limits)
def test_the_chunks_joined_are_the_sections_joined(document: Document, limit: int) -> None:
    pieces = list(chunk_document(document, how=Chunking("", limit)))

    assert "".join(piece.text for piece in pieces) == "".join(s.text for s in document.sections)


@given(sections, limits)
def test_each_chunk_begins_where_the_one_before_it_ends(section: Section, limit: int) -> None:
    pieces = list(chunk_document(Document("d", "t", (section,)), how=Chunking("", limit)))

    ends = [0, *(piece.end for piece in pieces)]
    assert [piece.start for piece in pieces] == ends[:-1]
    assert ends[-1] == len(section.text)
    assert all(piece.section is section for piece in pieces)


@given(documents, limits)
def test_no_chunk_is_empty_or_longer_than_the_limit(document: Document, limit: int) -> None:
    assert all(
        1 <= len(piece.text) <= limit for piece in chunk_document(document, how=Chunking("", limit))
    )


@given(documents)
def test_passages_hold_every_visible_character_in_order(document: Document) -> None:
    visible = "".join("".join(section.text.split()) for section in document.sections)

    kept = "".join("".join(passage.text.split()) for passage in document_passages(document, "book"))

    assert kept == visible


@given(documents)
def test_passage_numbers_run_from_zero_without_gaps(document: Document) -> None:
    found = [passage.id for passage in document_passages(document, "book")]

    assert found == [f"book:d#{number}" for number in range(len(found))]

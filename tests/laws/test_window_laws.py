"""Laws of the ways of cutting: nothing is lost, overlaps are what they say, marks stay put."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from osler.kb.ingest.chunk import (
    Chunking,
    Unit,
    chunk_document,
    cut_windows,
    document_passages,
    token_count,
)
from osler.sources.catalogue import WEB
from osler.sources.records import Document, Section

PIECES = [
    "a", "word", "é", "e\u0301", "\u0301", "क्षि", " ", "\n", "\n\n", "。", "糖尿病", "3.5", ". ",
    "e.g. ", "\t", "👩‍⚕️", "，", "(", "É", "ü\u0308\u0308",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=300).map("".join) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=200
)
sizes = st.integers(min_value=1, max_value=60)
units: st.SearchStrategy[Unit] = st.sampled_from(["characters", "tokens"])


@st.composite
def ways(draw: st.DrawFn) -> Chunking:
    size = draw(sizes)
    return Chunking("x", size, draw(st.integers(0, (size - 1) // 2)), draw(units))


@given(texts, ways())
def test_every_character_is_in_a_window_and_windows_go_forward(text: str, how: Chunking) -> None:
    spans = list(cut_windows(text, how.size, how.overlap, how.unit))

    assert (spans[0][0], spans[-1][1]) == (0, len(text)) if text else spans == []
    for (start, end), (after, last) in pairwise(spans):
        assert start < after <= end < last


@given(texts, ways())
def test_no_window_holds_more_than_its_size(text: str, how: Chunking) -> None:
    measure = token_count if how.unit == "tokens" else len

    for start, end in cut_windows(text, how.size, how.overlap, how.unit):
        assert measure(text[start:end]) <= how.size


@given(texts, ways())
def test_an_overlap_in_tokens_is_exact_and_in_characters_never_more(
    text: str, how: Chunking
) -> None:
    spans = list(cut_windows(text, how.size, how.overlap, how.unit))

    for (_, end), (after, _) in pairwise(spans):
        if how.unit == "tokens":
            assert token_count(text[after:end]) == how.overlap
        else:
            assert end - after <= how.overlap


@given(texts, ways())
def test_no_mark_is_parted_from_its_letter_where_a_window_can_hold_them(
    text: str, how: Chunking
) -> None:
    longest = max((len(cluster) for cluster in clusters(text)), default=0)
    if how.unit == "characters" and how.size < longest:
        return
    for start, _ in cut_windows(text, how.size, how.overlap, how.unit):
        assert start == 0 or unicodedata.category(text[start])[0] != "M"


def clusters(text: str) -> list[str]:
    found: list[str] = []
    for char in text:
        if found and (unicodedata.category(char)[0] == "M" or "\u200d" in (char, found[-1][-1])):
            found[-1] += char
        else:
            found.append(char)
    return found


@given(texts, ways())
def test_no_word_that_fits_is_cut(text: str, how: Chunking) -> None:
    for start, _ in cut_windows(text, how.size, how.overlap, how.unit):
        left = (
            text[:start].rsplit(maxsplit=1)[-1:] if start and not text[start - 1].isspace() else []
        )
        right = text[start:].split(maxsplit=1)[:1] if start < len(text) else []
        if left and right and (left[0] + right[0]).isalpha() and (left[0] + right[0]).isascii():
            assert how.unit == "characters"
            assert len(left[0] + right[0]) > how.size


@given(st.lists(texts, max_size=3), st.booleans())
def test_a_way_of_cutting_loses_no_visible_character(found: list[str], is_web: bool) -> None:
    document = Document("d", "t", tuple(map(Section, found)))

    for how in (Chunking("kag", 40, web_by_paragraph=True), Chunking("40", 40)):
        pieces = list(chunk_document(document, how=how, source=WEB if is_web else "book"))
        assert "".join(piece.text for piece in pieces) == "".join(found)
        shown = "".join(
            p.text for p in document_passages(document, WEB if is_web else "book", how=how)
        )
        assert "".join(shown.split()) == "".join("".join(found).split())

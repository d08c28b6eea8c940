"""PDF: pages keep their numbers, running heads go, what cannot be read is said."""

from __future__ import annotations

import zlib
from contextlib import suppress
from io import BytesIO

import pytest

from osler.errors import MalformedSource
from osler.sources.formats.containers import Unreadable
from osler.sources.formats.pdf import Pdf
from osler.sources.records import Document, Drop, Record

Lines = list[str]


def pdf(
    pages: list[Lines], *, outline: list[tuple[str, int]] | None = None, title: str = ""
) -> bytes:
    """A page for each list of lines, set from the top; bookmarks as (title, page from 0)."""
    bodies: list[bytes] = [b"", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids: list[int] = []
    for lines in pages:
        drawn = b"".join(
            b"BT /F1 10 Tf 40 %d Td (%s) Tj ET\n" % (780 - 14 * n, _escaped(line))
            for n, line in enumerate(lines)
        )
        bodies.append(b"<</Length %d>>stream\n%sendstream" % (len(drawn), drawn))
        bodies.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %d 0 R"
            b"/Resources<</Font<</F1 3 0 R>>>>>>" % len(bodies)
        )
        kids.append(len(bodies))
    bodies[0] = b"<</Type/Catalog/Pages 2 0 R%s>>" % _outlines(bodies, kids, outline or [])
    bodies[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (
        b" ".join(b"%d 0 R" % kid for kid in kids),
        len(kids),
    )
    bodies.append(b"<</Title(%s)/CreationDate(D:20190101000000Z)>>" % _escaped(title))
    return assembled(bodies, b"/Info %d 0 R" % len(bodies))


def _outlines(bodies: list[bytes], kids: list[int], outline: list[tuple[str, int]]) -> bytes:
    if not outline:
        return b""
    first = len(bodies) + 2
    last = first + len(outline) - 1
    bodies.append(b"<</First %d 0 R/Last %d 0 R/Count %d>>" % (first, last, len(outline)))
    for n, (name, page) in enumerate(outline):
        following = b"/Next %d 0 R" % (first + n + 1) if n + 1 < len(outline) else b""
        bodies.append(
            b"<</Title(%s)/Parent %d 0 R/Dest[%d 0 R/Fit]%s>>"
            % (_escaped(name), first - 1, kids[page], following)
        )
    return b"/Outlines %d 0 R" % (first - 1)


def assembled(bodies: list[bytes], trailer: bytes = b"") -> bytes:
    """Numbered objects (the first is the catalogue) with their table and trailer."""
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(bodies) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    tail = b"trailer<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF" % (size, trailer, len(out))
    return out + head + tail


def _escaped(text: str) -> bytes:
    return (
        text.encode("latin-1").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
    )


pytest.importorskip("pypdfium2", reason="the extra `pdf` is not installed")


def parse(data: bytes, name: str = "books/care.pdf") -> list[Record]:
    return list(Pdf().parse(BytesIO(data), name))


def one(data: bytes) -> Document:
    (document,) = (record for record in parse(data) if isinstance(record, Document))
    return document


def test_each_page_is_a_section_with_its_number() -> None:
    found = one(pdf([["Gout hurts."], ["Urate is", "its cause."]], title="Care of gout"))

    assert (found.id, found.title) == ("care", "Care of gout")
    assert [(s.page, s.text) for s in found.sections] == [
        (1, "Gout hurts."),
        (2, "Urate is\nits cause."),
    ]


@pytest.mark.parametrize("title", ["Microsoft Word - x.doc", "draft3.docx", "flyer.p65", ""])
def test_generated_pdf_title_is_ignored(title: str) -> None:
    assert one(pdf([["Text."]], title=title)).title == "care"


def test_a_title_that_ends_in_a_number_with_a_point_is_none_of_a_file() -> None:
    assert one(pdf([["Text."]], title="Ibuprofen 2.5 mg")).title == "Ibuprofen 2.5 mg"


def test_the_day_on_which_a_file_was_made_is_no_year_of_publication() -> None:
    assert one(pdf([["Text."]])).year is None


def test_a_line_that_was_wrapped_is_whole_again() -> None:
    lines = ["Gout is a painful disease of the joints that comes", "in attacks."]

    assert one(pdf([lines])).sections[0].text == " ".join(lines)


def test_running_heads_and_page_numbers_go() -> None:
    pages = [
        [
            "Care of gout",
            f"The text of page number {word}.",
            f"And {word} more.",
            f"{n} | Chapter 1",
        ]
        for n, word in enumerate(("one", "two", "three", "four"), start=11)
    ]

    texts = [section.text for section in one(pdf(pages)).sections]

    assert texts == [
        f"The text of page number {w}.\nAnd {w} more." for w in ("one", "two", "three", "four")
    ]


def test_heads_that_change_with_the_chapter_go() -> None:
    chapters = ["Asthma", "Gout", "Migraine", "Sepsis", "Stroke", "Zoster"]
    pages = [
        [f"{chapter} {7 + n}" if n % 2 else f"{7 + n} {chapter}", f"{chapter} is told of."]
        for n, chapter in enumerate(chapters)
    ]
    texts = [section.text for section in one(pdf(pages)).sections]
    assert [text.split("\n")[0] for text in texts] == [f"{name} is told of." for name in chapters]


def test_a_heading_with_the_number_of_its_page_stays() -> None:
    names = ["Signs", "Causes", "Tests", "Drugs"]
    pages = [[f"{n} {name}", f"{name} are told of.", f"{n}"] for n, name in enumerate(names, 1)]
    pages[0][0] = pages[1][0] = "Plain"
    texts = [section.text for section in one(pdf(pages)).sections]
    assert texts[2:] == ["3 Tests\nTests are told of.", "4 Drugs\nDrugs are told of."]


def test_a_head_of_one_chapter_of_many_pages_goes() -> None:
    heads = ["Sepsis"] * 4 + [f"Part {letter}" for letter in "abcdefghijkl"]
    pages = [[head, f"Words {chr(97 + n)} of it."] for n, head in enumerate(heads)]
    texts = [section.text for section in one(pdf(pages)).sections]
    assert texts[:4] == [f"Words {letter} of it." for letter in "abcd"]
    assert texts[4].startswith("Part a")


def test_bookmarks_are_heading_paths() -> None:
    pages = [["Preface."], ["One."], ["More."], ["Two."]]

    found = one(pdf(pages, outline=[("Causes", 1), ("Care", 3)]))

    assert [section.path for section in found.sections] == [(), ("Causes",), ("Causes",), ("Care",)]


ENTRIES = ["1. Smith J, Jones A. Salt. Lancet 2003;361:12-34.", "2. Roe R. Beer. BMJ 2001;5:6-7."]


def test_a_list_of_references_is_left_out_and_counted() -> None:
    document, *_ = reversed(
        parse(pdf([["Contents", "References"], ["Text.", "References", *ENTRIES], ENTRIES]))
    )

    assert isinstance(document, Document)
    assert [s.text for s in document.sections] == ["Contents\nReferences", "Text."]


def test_lone_entries_and_addresses_are_left_out_and_counted() -> None:
    drop, document = parse(pdf([["Beer is bad.", ENTRIES[0], "http://example.org/x"]]))

    assert drop == Drop("books/care.pdf: 2 lines", "addresses and references left out")
    assert isinstance(document, Document)
    assert document.sections[0].text == "Beer is bad."


def test_a_page_without_text_is_a_drop_and_the_others_are_read() -> None:
    drop, document = parse(pdf([["Text."], []]))

    assert drop == Drop("books/care.pdf: p. 2", "page without text")
    assert isinstance(document, Document)


def test_a_file_of_pictures_is_named_with_what_makes_text_of_it() -> None:
    with pytest.raises(MalformedSource, match="pictures of pages: make their text with ocrmypdf"):
        parse(pdf([[], []]))


# RC4 with 40 bits; the keys are those of no password that anybody would guess.
ENCRYPTED = b"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>/ID[<00><00>]" % (
    b"11" * 32,
    b"22" * 32,
)


def test_an_encrypted_file_is_named_as_such() -> None:
    data = assembled(
        [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[]/Count 0>>"], ENCRYPTED
    )

    with pytest.raises(Unreadable) as caught:
        parse(data)
    assert caught.value.reason == "encrypted"


CATALOGUE = b"<</Type/Catalog/Pages 2 0 R>>"


@pytest.mark.parametrize(
    "pages",
    [
        b"<</Type/Pages/Kids[2 0 R]/Count 3>>",
        b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 1000000000>>",
        b"<</Type/Pages/Parent 2 0 R/Kids[1 0 R 2 0 R]/Count 5>>",
    ],
)
def test_cyclic_page_tree_terminates(pages: bytes) -> None:
    records: list[Record] = []
    with suppress(MalformedSource):  # where PDFium finds no page at all
        records = parse(assembled([CATALOGUE, pages]))

    assert {record.reason for record in records if isinstance(record, Drop)} <= {
        "unreadable page",
        "page without text",
        "no text",
    }
    assert not [record for record in records if isinstance(record, Document)]


def test_cyclic_bookmarks_terminate() -> None:
    data = pdf([["One."], ["Two."]], outline=[("A", 0), ("B", 1)])

    found = one(data.replace(b"/Next 10 0 R", b"/Next  9 0 R"))

    assert len(found.sections) == 2


@pytest.mark.parametrize("data", [b"%PDF-1.4\n", b"%PDF-1.4 garbage " * 99, pdf([["Text."]])[:60]])
def test_what_is_no_whole_pdf_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedSource):
        parse(data)


def test_pdf_decompression_bomb_does_not_fill_the_memory() -> None:
    swollen = zlib.compress(b" " * 50_000_000)
    bodies = [
        CATALOGUE,
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>",
        b"<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (len(swollen), swollen),
    ]

    with pytest.raises(MalformedSource, match="pictures of pages"):
        parse(assembled(bodies))

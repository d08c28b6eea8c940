"""The tagged format of PubMed."""

from __future__ import annotations

from io import BytesIO

import pytest

from osler.errors import MalformedSource
from osler.sources.formats.pubmed import Medline
from osler.sources.formats.reading import author_name
from osler.sources.records import Document, Drop, Record, Section

ONE = b"""
PMID- 12230038
DP  - 2002 Sep
TI  - The title that goes on
      over two lines.
AB  - First line of it
      and the second.
PT  - Journal Article
PT  - Review
"""


def parse(data: bytes) -> list[Record]:
    return list(Medline().parse(BytesIO(data), "m.txt"))


def test_continued_lines_are_joined() -> None:
    (document,) = parse(ONE)

    assert isinstance(document, Document)
    assert document.title == "The title that goes on over two lines."
    assert [section.text for section in document.sections] == ["First line of it and the second."]
    assert (document.id, document.year, document.kind) == ("12230038", 2002, "Review")


def test_authors_journal_doi_and_notices_are_read() -> None:
    more = b"AU  - Smith JA\nAU  - Lee K\nCN  - Iron Group\nTA  - J Iron\nLID - 10.1/x [doi]\n"
    (document,) = parse(ONE + more + b"ECI - J Iron. 2022 Feb 1;3:4. PMID: 7\n")

    assert isinstance(document, Document)
    assert document.authors == ("Smith JA", "Lee K", "Iron Group")
    assert (document.journal, document.doi) == ("J Iron", "10.1/x")
    assert document.notice == "Expression of concern: J Iron. 2022 Feb 1;3:4. PMID: 7"
    assert not document.retracted


@pytest.mark.parametrize(
    ("family", "given", "written"),
    [
        ("Smith", "Jane A.", "Smith JA"),
        ("Smith", "JA", "Smith JA"),
        ("Müller-Lee", "Jean-Luc", "Müller-Lee JL"),
        ("王", "小明", "王小明"),
        ("Smith", "", "Smith"),
    ],
)
def test_a_name_has_initials(family: str, given: str, written: str) -> None:
    assert author_name(family, given) == written


def test_windows_line_ends_make_no_difference() -> None:
    assert parse(ONE.replace(b"\n", b"\r\n")) == parse(ONE)


def test_records_without_words_or_a_number_are_drops_with_their_line() -> None:
    records = parse(ONE + b"\nPMID- 1\nTI  - Only a title.\n\nPMID- 2\nDP  - 2001\n\nPMID- x\n")

    title_only, *drops = records[1:]
    assert isinstance(title_only, Document)
    assert title_only.sections == (Section("Only a title."),)
    assert drops == [Drop("m.txt:14: PMID 2", "no title"), Drop("m.txt:17: PMID x", "no PMID")]


def test_medline_format_is_recognised_by_its_first_line() -> None:
    assert Medline().matches("any.txt", ONE)
    assert not Medline().matches("any.txt", b"TI  - x")


def test_bytes_that_are_not_utf8_are_malformed() -> None:
    with pytest.raises(MalformedSource, match="UTF-8"):
        parse(b"PMID- 1\nTI  - caf\xe9\n")

"""JATS and BITS: what of an article becomes text, and how it is named."""

from __future__ import annotations

from io import BytesIO

import pytest

from osler.sources.formats.jats import Jats
from osler.sources.records import Document, Drop, Record

META = """<article-meta><article-id pub-id-type="pmid">11</article-id>
<article-id pub-id-type="pmc">222</article-id><article-id pub-id-type="doi">10.1/x</article-id>
<title-group><article-title>Salt and <italic>blood</italic> pressure</article-title></title-group>
<pub-date pub-type="epub"><year>2014</year></pub-date>
<pub-date pub-type="collection"><year>2013</year></pub-date>
<permissions><license xlink:href="http://creativecommons.org/licenses/by/4.0/">
<license-p>Free.</license-p></license></permissions>{more}
<abstract><sec><title>Aim</title><p>To see.</p></sec></abstract>
<abstract abstract-type="summary"><title>In short</title><p>Less salt.</p></abstract>
</article-meta>"""
BODY = """<body><sec><label>1</label><title>Methods</title><p>We counted
<xref ref-type="bibr">1</xref>,
<xref ref-type="bibr">2</xref> [<xref ref-type="bibr">3</xref>–<xref ref-type="bibr">5</xref>], as
<xref ref-type="bibr">Miller (2003)</xref> did.</p>
<sec><title>Dose</title><list><list-item><p>5 mg</p></list-item><list-item><p>10 mg</p></list-item>
</list><table-wrap><label>Table 1</label><caption><p>Doses.</p></caption><table><thead><tr>
<th>Drug</th><th>Dose</th></tr></thead><tbody><tr><td><p>A</p></td>
<td><p>5</p><p>mg</p></td></tr></tbody></table>
<table-wrap-foot><fn><p>foot</p></fn></table-wrap-foot></table-wrap>
<fig><label>Fig 1</label><caption><title>Flow.</title></caption><graphic/></fig>
<p>So <inline-formula><alternatives>
<tex-math>\\documentclass{{a}}\\begin{{document}}$$x^2$$\\end{{document}}
</tex-math><mml:math><mml:mi>x</mml:mi>
<mml:mn>2</mml:mn></mml:math></alternatives></inline-formula> grew.</p>
</sec></sec>
<sec sec-type="supplementary-material"><title>Supporting</title><p>File S1.</p></sec></body>
<back><ack><p>Thanks.</p></ack><ref-list><title>References</title><ref><mixed-citation>Miller 2003.
</mixed-citation></ref></ref-list>
<app-group><app><title>Appendix A</title><p>More.</p></app></app-group>
</back>"""
SPACES = 'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:mml="http://www.w3.org/1998/Math/MathML"'


def article(kind: str = "research-article", more: str = "", rest: str = "") -> bytes:
    return (
        f'<!DOCTYPE article PUBLIC "-//NLM//DTD" "archivearticle.dtd"><article {SPACES}'
        f' article-type="{kind}"><front><journal-meta/>{META.format(more=more)}</front>'
        f"{BODY.format()}{rest}</article>"
    ).encode()


def parse(data: bytes, name: str = "pmc/a.nxml") -> list[Record]:
    return list(Jats().parse(BytesIO(data), name))


def one(data: bytes) -> Document:
    (document,) = parse(data)
    assert isinstance(document, Document)
    return document


def test_an_article_is_named_by_its_ids_years_and_licence() -> None:
    found = one(article())

    assert found.id == "PMC222"
    assert found.title == "Salt and blood pressure"
    assert found.code == "PMID:11"
    assert found.url == "https://pmc.ncbi.nlm.nih.gov/articles/PMC222/"
    assert (found.year, found.kind, found.licence) == (2013, "research-article", "CC BY 4.0")
    assert not found.retracted


def test_headings_are_paths_and_the_abstract_goes_first() -> None:
    assert [section.path for section in one(article()).sections] == [
        ("Abstract", "Aim"),
        ("In short",),
        ("Methods",),
        ("Methods", "Dose"),
        ("Appendix A",),
    ]


def test_marks_of_references_go_and_names_in_a_sentence_stay() -> None:
    methods = one(article()).sections[2].text

    assert methods == "We counted, as Miller (2003) did."


def test_a_power_keeps_its_height_and_raised_marks_of_references_go() -> None:
    marks = '<sup><xref ref-type="bibr">1</xref>,<xref ref-type="bibr">2</xref></sup>'
    text = f"<p>Below 10<sup>9</sup>/L, 10<sup>&minus;6</sup>{marks}.</p>"
    doctype = '<!DOCTYPE article PUBLIC "-//NLM//DTD" "archivearticle.dtd">'
    data = f"{doctype}<article><front/><body>{text}</body></article>"

    assert one(data.encode()).sections[0].text == "Below 10⁹/L, 10−⁶."


def test_lists_tables_captions_and_formulas_are_text() -> None:
    assert one(article()).sections[3].text.split("\n") == [
        "- 5 mg",
        "- 10 mg",
        "Table 1",
        "Doses.",
        "Drug | Dose",
        "A | 5 mg",
        "Fig 1",
        "Flow.",
        "So x^2 grew.",
    ]


def test_references_thanks_and_files_are_left_out() -> None:
    told = repr(one(article()).sections)

    assert not any(word in told for word in ("Thanks", "Miller 2003.", "File S1", "foot"))


@pytest.mark.parametrize(
    ("link", "is_retracted"),
    [("retraction-forward", True), ("companion", False), ("retracted-article", False)],
)
def test_an_article_says_that_it_was_retracted(link: str, is_retracted: bool) -> None:
    more = f'<related-article related-article-type="{link}"/>'

    assert one(article(more=more)).retracted is is_retracted


def test_a_retraction_notice_keeps_its_type() -> None:
    assert one(article(kind="retraction")).kind == "retraction"


def test_a_sub_article_is_a_document_of_its_own() -> None:
    rest = (
        '<sub-article article-type="reviewer-report"><front-stub><title-group><article-title>Review'
        "</article-title></title-group></front-stub><body><p>Sound.</p></body></sub-article>"
    )

    main, review = parse(article(rest=rest))

    assert isinstance(review, Document)
    assert isinstance(main, Document)
    assert (review.id, review.title, review.kind) == ("PMC222-1", "Review", "reviewer-report")
    assert "Sound." not in repr(main.sections)


def test_a_chapter_of_statpearls_is_a_document() -> None:
    chapter = b"""<book-part-wrapper><book-meta><book-id book-id-type="pmcid">statpearls</book-id>
    <book-title-group><book-title>StatPearls</book-title></book-title-group><permissions>
    <copyright-statement>Copyright 2024, StatPearls Publishing LLC.</copyright-statement>
    </permissions></book-meta><book-part><book-part-meta><book-part-id pub-id-type="pmcid">NBK1
    </book-part-id><title-group><title>Gout</title></title-group><pub-date><year>2024</year>
    </pub-date></book-part-meta><body><sec><title>Etiology</title><p>Urate.</p></sec></body>
    <back><ref-list><ref>x</ref></ref-list></back></book-part></book-part-wrapper>"""

    found = one(chapter)

    assert Jats().matches("x.nxml", chapter)
    assert (found.id, found.title, found.year, found.kind) == ("NBK1", "Gout", 2024, "book chapter")
    assert found.url == "https://www.ncbi.nlm.nih.gov/books/NBK1/"
    assert found.licence == "Copyright 2024, StatPearls Publishing LLC."
    assert [(s.path, s.text) for s in found.sections] == [(("Etiology",), "Urate.")]


def test_an_article_without_text_is_a_drop() -> None:
    assert parse(b"<article><front><article-meta/></front></article>") == [
        Drop("pmc/a.nxml", "no text")
    ]


def test_an_article_without_ids_is_named_by_its_file() -> None:
    found = one(b"<article><front/><body><p>Text.</p></body></article>")

    assert (found.id, found.title) == ("a", "a")


@pytest.mark.parametrize(
    ("head", "is_matched"),
    [
        (b'<article article-type="x"><front>', True),
        (b"<article><h1>News</h1></article>", False),
        (b"<html><article>", False),
    ],
)
def test_an_article_of_a_web_page_is_not_one_of_a_journal(head: bytes, is_matched: bool) -> None:
    assert Jats().matches("x.xml", head) is is_matched


def test_authors_are_named_as_citations_write_them_and_editors_are_not() -> None:
    group = (
        "<contrib-group><contrib contrib-type='author'><name><surname>Smith</surname>"
        "<given-names>Jane A.</given-names></name></contrib><contrib contrib-type='author'>"
        "<collab>Iron Group</collab></contrib><contrib contrib-type='editor'><name><surname>Itor"
        "</surname><given-names>E</given-names></name></contrib></contrib-group>"
    )
    assert one(article(more=group)).authors == ("Smith JA", "Iron Group")


def test_cells_that_cover_others_or_are_empty_leave_each_value_below_its_head() -> None:
    rows = (
        '<tr><th></th><th>Adult</th><th>Child</th></tr><tr><td rowspan="2">Iron</td><td>9 mg</td>'
        '<td>3 mg</td></tr> <tr><td colspan="2">never</td></tr> <tr><td/> <td/><td>5 mg</td></tr>'
        "<tr><td></td><td></td></tr>"
    )
    body = f"<body><p>Doses.</p><table-wrap><table>{rows}</table></table-wrap></body>"
    found = one(f"<article><front/>{body}</article>".encode())
    assert found.sections[0].text == (
        "Doses.\n | Adult | Child\nIron | 9 mg | 3 mg\nIron | never | never\n |  | 5 mg"
    )


def test_a_line_break_parts_two_words_and_struck_words_are_left_out() -> None:
    meta = "<article-meta><title-group><article-title>Iron<break/>therapy</article-title>"
    body = (
        "<p>Dose: 5<break/>10 <strike>20</strike> mg.</p><table-wrap><table><tr><td>5 mg<break/>10"
        " mg</td><td>x</td></tr></table></table-wrap>"
    )
    front = f"<front>{meta}</title-group></article-meta></front>"
    found = one(f"<article>{front}<body>{body}</body></article>".encode())
    assert found.title == "Iron therapy"
    assert found.sections[0].text == "Dose: 5\n10  mg.\n5 mg 10 mg | x"

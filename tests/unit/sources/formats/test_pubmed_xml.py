"""PubMed XML: which records become documents, and what is said of the others."""

from __future__ import annotations

from io import BytesIO

import pytest

from osler.errors import MalformedSource
from osler.sources.formats.pubmed import PubmedXml, most_telling
from osler.sources.records import Deleted, Document, Drop, Record, Section

HEAD = b"""<?xml version="1.0"?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN"
 "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">
<PubmedArticleSet>"""
FULL = """<PubmedArticle><MedlineCitation><PMID Version="1">11</PMID><Article>
<Journal><JournalIssue><PubDate><Year>2019</Year></PubDate></JournalIssue></Journal>
<ArticleTitle>Effect of <i>Vitamin D</i> on
 bone.</ArticleTitle>
<Abstract><AbstractText Label="AIM">To test CO<sub>2</sub>.</AbstractText>
<AbstractText Label="RESULTS">P &lt; 0.05.</AbstractText>
<AbstractText Label="UNLABELLED">End.</AbstractText><AbstractText/></Abstract>
<Language>eng</Language><PublicationTypeList><PublicationType>Journal Article</PublicationType>
<PublicationType>Randomized Controlled Trial</PublicationType></PublicationTypeList>
</Article></MedlineCitation></PubmedArticle>"""


def article(
    pmid: str = "12", title: str = "Title.", abstract: str = "Text.", rest: str = ""
) -> str:
    return (
        f"<PubmedArticle><MedlineCitation><PMID>{pmid}</PMID><Article>{rest}"
        f"<ArticleTitle>{title}</ArticleTitle><Abstract><AbstractText>{abstract}</AbstractText>"
        "</Abstract></Article></MedlineCitation></PubmedArticle>"
    )


def parse(*records: str, head: bytes = HEAD) -> list[Record]:
    data = head + "".join(records).encode() + b"</PubmedArticleSet>"
    return list(PubmedXml().parse(BytesIO(data), "p.xml"))


def test_a_full_record_keeps_title_sections_year_kind_and_address() -> None:
    assert parse(FULL) == [
        Document(
            id="11",
            title="Effect of Vitamin D on bone.",
            sections=(Section("AIM: To test CO2.\nRESULTS: P < 0.05.\nEnd."),),
            year=2019,
            url="https://pubmed.ncbi.nlm.nih.gov/11/",
            code="PMID:11",
            kind="Randomized Controlled Trial",
            kinds=("Journal Article", "Randomized Controlled Trial"),
            version=1,
        )
    ]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (article(title="", abstract=""), "no title"),
        (article(title="[Not Available].", abstract=""), "no title"),
        (article(pmid="x"), "no PMID"),
        ("<PubmedArticle/>", "no citation"),
        ("<DeleteCitation><PMID>seven</PMID></DeleteCitation>", "no PMID"),
    ],
)
def test_a_record_that_lacks_something_is_a_drop_and_the_next_is_read(
    record: str, reason: str
) -> None:
    drop, document = parse(record, article("13"))

    assert isinstance(drop, Drop)
    assert drop.reason == reason
    assert isinstance(document, Document)


def test_an_update_takes_records_back() -> None:
    deletion = "<DeleteCitation><PMID Version='1'>7</PMID><PMID>8</PMID></DeleteCitation>"

    assert parse(deletion) == [Deleted("7", "p.xml: PMID 7"), Deleted("8", "p.xml: PMID 8")]


def test_a_record_says_its_version() -> None:
    old, new = (FULL.replace('Version="1"', f'Version="{n}"') for n in ("2", "x"))

    assert [r.version for r in parse(old, new) if isinstance(r, Document)] == [2, 1]


NOTICE = (
    "<CommentsCorrectionsList><CommentsCorrections RefType='{}'><PMID>9</PMID>"
    "</CommentsCorrections></CommentsCorrectionsList>"
)


@pytest.mark.parametrize(
    ("kind", "link", "is_retracted"),
    [
        ("Retracted Publication", "", True),
        ("Journal Article", "RetractionIn", True),
        ("Journal Article", "ErratumIn", False),
        # The notice is not itself retracted.
        ("Retraction of Publication", "RetractionOf", False),
    ],
)
def test_a_retracted_article_stays_and_says_so(kind: str, link: str, is_retracted: bool) -> None:
    record = article(
        rest=f"<PublicationTypeList><PublicationType>{kind}</PublicationType></PublicationTypeList>"
    )
    record = record.replace("</MedlineCitation>", NOTICE.format(link) + "</MedlineCitation>")

    (document,) = parse(record)

    assert isinstance(document, Document)
    assert document.retracted is is_retracted
    assert document.kind == kind


def test_a_drop_names_the_file_and_the_pmid() -> None:
    assert parse(article("99", title="", abstract="")) == [Drop("p.xml: PMID 99", "no title")]


def test_without_an_abstract_the_title_is_the_text() -> None:
    (document,) = parse(article(title="A letter on salt.", abstract=""))
    assert isinstance(document, Document)
    assert document.sections == (Section("A letter on salt."),)


@pytest.mark.parametrize(
    ("date", "year"),
    [
        ("<PubDate><MedlineDate>1998 Dec-1999 Jan</MedlineDate></PubDate>", 1998),
        ("<PubDate><MedlineDate>Winter</MedlineDate></PubDate>", None),
        ("", None),
    ],
)
def test_the_year_may_stand_in_a_medline_date_or_nowhere(date: str, year: int | None) -> None:
    rest = f"<Journal><JournalIssue>{date}</JournalIssue></Journal>"

    (document,) = parse(article(rest=rest))

    assert isinstance(document, Document)
    assert document.year == year


@pytest.mark.parametrize(
    ("date", "day"),
    [
        ("<Year>2019</Year><Month>Mar</Month><Day>05</Day>", "2019-03-05"),
        ("<Year>2019</Year><Month>11</Month>", "2019-11"),
        ("<Year>2019</Year><Season>Spring</Season>", ""),
        ("<MedlineDate>1998 Dec-1999 Jan</MedlineDate>", ""),
    ],
)
def test_month_and_day_are_kept_where_they_stand(date: str, day: str) -> None:
    rest = f"<Journal><JournalIssue><PubDate>{date}</PubDate></JournalIssue></Journal>"
    (document,) = parse(article(rest=rest))
    assert isinstance(document, Document)
    assert document.date == day


def test_the_language_is_that_of_the_abstract_not_of_the_article() -> None:
    english = article(rest="<Language>chi</Language>")
    chinese = article(title="高血压的治疗", abstract="目的：观察疗效。")

    languages = [
        record.language for record in parse(english, chinese) if isinstance(record, Document)
    ]

    assert languages == ["en", "zh"]


def test_a_book_chapter_is_a_record() -> None:
    book = (
        "<PubmedBookArticle><BookDocument><PMID>20301295</PMID>"
        "<Book><BookTitle>GeneReviews</BookTitle><PubDate><Year>2001</Year></PubDate></Book>"
        "<ArticleTitle>Fabry Disease</ArticleTitle>"
        "<Abstract><AbstractText Label='SUMMARY'>A storage disease.</AbstractText></Abstract>"
        "<PublicationType>Review</PublicationType></BookDocument></PubmedBookArticle>"
    )

    (document,) = parse(book)

    assert isinstance(document, Document)
    assert (document.title, document.year, document.kind) == ("Fabry Disease", 2001, "Review")


@pytest.mark.parametrize(
    ("types", "kind"),
    [
        (["Journal Article", "Meta-Analysis", "Review"], "Meta-Analysis"),
        (["Journal Article", "Research Support, N.I.H., Extramural", "Biography"], "Biography"),
        (["Journal Article"], "Journal Article"),
        ([], ""),
    ],
)
def test_the_study_design_says_more_than_journal_article(types: list[str], kind: str) -> None:
    assert most_telling(types) == kind


@pytest.mark.parametrize(
    ("head", "is_matched"),
    [
        (HEAD, True),
        (b"<?xml version='1.0'?><!-- c --><PubmedArticleSet>", True),
        (b"\xef\xbb\xbf<PubmedArticleSet>", True),
        ("<?xml version='1.0' encoding='utf-16'?><PubmedArticleSet>".encode("utf-16"), True),
        (b"<PubmedArticle>", False),
        (b"<eSummaryResult>", False),
        (b"<article><front/>", False),
        (b"PubmedArticleSet", False),
        (b"", False),
    ],
)
def test_only_a_set_of_articles_is_matched(head: bytes, is_matched: bool) -> None:
    assert PubmedXml().matches("x", head) is is_matched


def test_xml_that_breaks_off_is_malformed_after_what_was_whole() -> None:
    records = PubmedXml().parse(BytesIO(HEAD + FULL.encode() + b"<PubmedArticle><Med"), "p.xml")

    assert isinstance(next(records), Document)
    with pytest.raises(MalformedSource, match="not well-formed"):
        next(records)


LAUGHS = b"""<!DOCTYPE PubmedArticleSet [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><PubmedArticleSet>"""
EXTERNAL = b"""<!DOCTYPE PubmedArticleSet [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<PubmedArticleSet>"""


@pytest.mark.parametrize("head", [LAUGHS, EXTERNAL])
@pytest.mark.parametrize("records", [[article(abstract="&a;")], []])
def test_xml_entity_declarations_are_refused(head: bytes, records: list[str]) -> None:
    with pytest.raises(MalformedSource, match="entities"):
        parse(*records, head=head)


def test_named_character_of_an_unread_dtd_is_still_read() -> None:
    (document,) = parse(article(abstract="5&nbsp;mg &alpha;"))

    assert isinstance(document, Document)
    assert document.sections[0].text == "5 mg α"


def test_a_power_keeps_its_height() -> None:
    (document,) = parse(article(abstract="20 x 10<sup>9</sup>/L in 5 m<sup>2</sup>"))

    assert isinstance(document, Document)
    assert document.sections[0].text == "20 x 10⁹/L in 5 m²"


def test_xml_nested_ten_thousand_levels_is_malformed_and_no_crash() -> None:
    with pytest.raises(MalformedSource):
        parse("<a>" * 10_000)

"""Exported answers, opened in the programs that they are for."""

from __future__ import annotations

import csv
import io
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pypdf
import pytest
import rispy
from bibtexparser.entrypoint import parse_string
from docx import Document
from fhir.resources.R4B.bundle import Bundle

from osler.answer.export import FORMATS, ExportedAnswer, write_export
from osler.answer.export.layout import find_identifiers, list_references
from osler.errors import BadArgument
from osler.types import (
    Answer,
    Authorship,
    DangerNotice,
    Evidence,
    Halt,
    Hit,
    Language,
    Locator,
    Passage,
    Question,
    Solution,
    Statement,
)

HOSTILE = "<script>alert(1)</script> {x} \\& 50 % of #1_a [link](javascript:x)"
TRIAL = Passage(
    "research:PMC7001234#3",
    f"Metformin lowered HbA1c by 1.1 % (≥ 0.5). {HOSTILE}",
    "research",
    "Metformin & “old” age: a trial",
    Locator(
        "Results", 4, 2021, "https://pmc.ncbi.nlm.nih.gov/articles/PMC7001234/", "PMID:33012345"
    ),
    "CC-BY-4.0",
)
BOOKLET = Passage(
    "book:zh_neike#0",
    "二甲双胍禁用于eGFR低于30的患者。",
    "book",
    "内科学",
    Locator("糖尿病", None, 2019, "", "ISBN:978-7-117-26375-7"),
    language="zh",
    illustrative=True,
)
GUIDE = Passage(
    "guideline:g1#2",
    "Check eGFR.",
    "guideline",
    "Diabetes",
    Locator(url="https://doi.org/10.1000/xyz.12"),
)
TRIAL_2 = Passage("research:PMC7001234#5", "It was safe.", "research", TRIAL.title, TRIAL.locator)


def cite(passage: Passage, quote: str) -> Evidence:
    start = passage.text.index(quote)
    return Evidence(Hit(passage, 1.0, 1, "q", passage.source), start, start + len(quote))


def exported(language: Language = "en", danger: DangerNotice | None = None) -> ExportedAnswer:
    answer = Answer(
        (
            Statement(f"=Metformin lowers HbA1c. {HOSTILE}", (1,)),
            Statement("- Check eGFR.", (2,)),
            Statement("- 二甲双胍禁用于eGFR低于30的患者。", (3,)),
            Statement("It was safe.", (4,)),
        ),
        (
            cite(TRIAL, "Metformin lowered HbA1c by 1.1 % (≥ 0.5)."),
            cite(GUIDE, "Check eGFR."),
            cite(BOOKLET, "二甲双胍禁用于eGFR低于30的患者。"),
            cite(TRIAL_2, "It was safe."),
        ),
        language=language,
        authorship=Authorship.WRITTEN,
    )
    question = Question("q", "Metformin in old age?", language=language)
    return ExportedAnswer(
        question,
        Solution(answer, Halt.CONVERGED, "one search was enough", danger=danger),
        "r1",
        "rag",
    )


def test_each_document_is_one_reference_with_all_its_identifiers() -> None:
    first, second, third = list_references(exported().solution.answer)
    assert (first.marks, len(first.passages)) == (("[1]", "[4]"), 2)
    assert first.identifiers == {"pmid": "33012345", "pmcid": "PMC7001234"}
    assert second.identifiers == {"doi": "10.1000/xyz.12"}
    assert third.identifiers == {"isbn": "9787117263757"}


@pytest.mark.parametrize(
    ("code", "url", "expected"),
    [
        ("PMID:123", "", {"pmid": "123"}),
        ("", "https://pubmed.ncbi.nlm.nih.gov/31978945/", {"pmid": "31978945"}),
        ("DOI:10.1056/NEJMoa2001017", "", {"doi": "10.1056/nejmoa2001017"}),
        ("", "https://clinicaltrials.gov/study/NCT04280705", {"nct": "NCT04280705"}),
        ("", "https://www.ncbi.nlm.nih.gov/books/NBK430685/", {"nbk": "NBK430685"}),
        ("PMCID:PMC123", "", {"pmcid": "PMC123"}),
        ("CUI:C0002871", "https://example.org/123", {}),
        ("", "", {}),
    ],
)
def test_identifiers_are_those_that_the_source_gives(
    code: str, url: str, expected: dict[str, str]
) -> None:
    passage = Passage(
        "x:1#0", "PMID: 999 is in the text alone", "x", "t", Locator(url=url, code=code)
    )
    assert find_identifiers(passage) == expected


def test_ris_opens_in_a_reader_of_ris() -> None:
    trial, guide, booklet = rispy.loads(write_export([exported()], "ris").decode())
    assert trial["type_of_reference"] == "JOUR"
    assert trial["title"] == TRIAL.title
    assert (trial["year"], trial["accession_number"], trial["custom2"]) == (
        *("2021", "33012345", "PMC7001234"),
    )
    assert guide["doi"] == "10.1000/xyz.12"
    assert booklet["title"] == "内科学"
    assert booklet["issn"] == "9787117263757", "the tag of ISSN and ISBN is one"


AUTHORED = replace(
    TRIAL,
    locator=replace(
        TRIAL.locator,
        authors=("Smith JA", "王小明", "UK Iron and Blood Group"),
        journal="J Iron",
        notice="Retraction, 2022-02-01: Error in Data",
        key="smith:2021_iron",
    ),
)


def test_authors_journal_key_and_notice_open_in_readers_of_references() -> None:
    whole = exported()
    cited = cite(AUTHORED, AUTHORED.text[:20])
    answer = Answer((Statement("Metformin lowered HbA1c.", (1,)),), (cited,))
    one = replace(whole, solution=replace(whole.solution, answer=answer))
    (ris,) = rispy.loads(write_export([one], "ris").decode())
    assert ris["authors"] == ["Smith, JA", "王小明", "UK Iron and Blood Group"]
    assert (ris["id"], ris["journal_name"]) == ("smith:2021_iron", "J Iron")
    assert AUTHORED.locator.notice in ris["notes"]
    (entry,) = parse_string(write_export([one], "bibtex").decode()).entries
    assert (entry.key, entry["journal"]) == ("smith:2021_iron", "J Iron")
    assert entry["author"] == "Smith, JA and 王小明 and {UK Iron and Blood Group}"
    assert AUTHORED.locator.notice in entry["note"].replace("\\", "")
    for to in ("markdown", "html"):
        text = write_export([one], to).decode()
        assert "Smith JA, 王小明, UK Iron and Blood Group" in text
        assert AUTHORED.locator.notice.upper() in text
    (row,) = csv.DictReader(io.StringIO(write_export([one], "csv").decode("utf-8-sig")))
    assert row["notice"] == AUTHORED.locator.notice


def test_bibtex_opens_in_a_reader_of_bibtex() -> None:
    library = parse_string(write_export([exported()], "bibtex").decode())
    assert not library.failed_blocks
    trial, guide, booklet = library.entries
    assert (trial.entry_type, trial["pmid"], trial["pmcid"]) == (
        *("article", "33012345", "PMC7001234"),
    )
    assert r"\&" in trial["title"]
    assert guide["doi"] == "10.1000/xyz.12"
    assert (booklet["isbn"], booklet["year"]) == ("9787117263757", "2019")


def test_the_table_has_a_row_for_each_citation_and_no_formula() -> None:
    data = write_export([exported()], "csv").decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(data)))
    assert [row["number"] for row in rows] == ["1", "2", "3", "4"]
    assert rows[0]["statement"].startswith("'=Metformin")
    assert rows[1]["statement"] == "'- Check eGFR."
    assert rows[2]["quote"] == "二甲双胍禁用于eGFR低于30的患者。"
    assert rows[0]["pmid"] == "33012345"


def test_word_opens_in_python_docx() -> None:
    document = Document(io.BytesIO(write_export([exported()], "docx")))
    texts = [paragraph.text for paragraph in document.paragraphs]
    assert texts[0] == "Metformin in old age?"
    assert "Check eGFR. [2]" in texts
    assert any(HOSTILE in text for text in texts)
    assert any("PMID 33012345" in text for text in texts)
    assert any("示例" in text or "illustrative sample text" in text for text in texts)


def test_of_quotes_the_best_is_the_answer_and_the_others_follow_once_by_source() -> None:
    cited = [
        cite(GUIDE, "Check eGFR."),
        cite(BOOKLET, BOOKLET.text),
        cite(replace(GUIDE, id="guideline:g2#0", text="Stop below 30."), "Stop below 30."),
        cite(replace(GUIDE, id="guideline:g1#3", text="Halve below 45."), "Halve below 45."),
    ]
    said = [Statement(one.quote, (n,)) for n, one in enumerate(cited, 1)]
    answer = Answer((*said, Statement("Mind the units.", kind="notice")), tuple(cited))
    assert [one.text for one in answer.leading] == ["Check eGFR.", "Mind the units."]
    shown = replace(exported(), solution=Solution(answer, Halt.CONVERGED, ""))
    title, first, _, _, *rest = read_back("docx", write_export([shown], "docx")).split("\n")
    assert (title, first) == ("Metformin in old age?", "Check eGFR. [1] Mind the units.")
    assert [line.partition(" ")[0] for line in rest[:-1]] == ["[1][4]", "[3]", "[2]"]
    assert [line.count("“") for line in rest[:-1]] == [1, 1, 1]
    assert "“Halve below 45.”" in rest[0]


def test_what_is_nearest_stands_behind_the_words_that_announce_it() -> None:
    near = Statement("What was found does not say this directly; nearest to it, under “Diabetes”:")
    cited = cite(GUIDE, "Check eGFR.")
    answer = Answer((near, Statement(cited.quote, (1,))), (replace(cited, use="nearest"),))
    shown = replace(exported(), solution=Solution(answer, Halt.NO_EVIDENCE, ""))
    text = read_back("markdown", write_export([shown], "markdown"))
    assert text.index("nearest to it") < text.index("Check eGFR. [1]") < text.index("References")


def test_pdf_opens_in_pypdf_with_its_chinese() -> None:
    pages = pypdf.PdfReader(io.BytesIO(write_export([exported()], "pdf"))).pages
    text = "\n".join(page.extract_text() for page in pages)
    assert "Metformin in old age?" in text
    assert "PMC7001234" in text
    assert "二甲双胍禁用于" in text
    assert "≥ 0.5" in " ".join(text.split())
    assert "“old” age" in text


def test_pdf_holds_the_chinese_font_where_the_machine_has_one() -> None:
    data = write_export([exported()], "pdf")
    page: Any = pypdf.PdfReader(io.BytesIO(data)).pages[0]
    fonts = {key: one.get_object() for key, one in page["/Resources"]["/Font"].items()}
    names = [font["/BaseFont"] for font in fonts.values()]
    if any("STSong" in name for name in names):
        pytest.skip("there is no Chinese font: fonts-wqy-zenhei, SimSun or Arial Unicode")
    files = [font.get("/FontDescriptor", {}) for font in fonts.values()]
    assert any("/FontFile2" in one for one in files)


IDENTIFIED = {
    "33012345": "PMID:33012345",
    "10.1000/xyz.12": "DOI:10.1000/xyz.12",
    "PMC7001234": "PMCID:PMC7001234",
    "NCT04280705": "NCT04280705",
    "9787117263757": "ISBN:978-7-117-26375-7",
}


def read_back(to: str, data: bytes) -> str:
    """The text of a file as the program that it is for reads it."""
    if to == "docx":
        return "\n".join(one.text for one in Document(io.BytesIO(data)).paragraphs)
    if to == "pdf":
        pages = pypdf.PdfReader(io.BytesIO(data)).pages
        return "".join("".join(page.extract_text().split()) for page in pages)
    text = data.decode("utf-8-sig")
    if to == "ris":
        return str(rispy.loads(text))
    if to == "bibtex":
        return str([entry.fields_dict for entry in parse_string(text).entries])
    if to == "csv":
        return str([*csv.DictReader(io.StringIO(text))])
    return text.replace("\\_", "_")


@pytest.mark.parametrize("to", ["markdown", "html", "docx", "pdf", "ris", "bibtex", "csv"])
def test_every_reference_of_a_thread_is_resolved_to_the_identifier_that_its_source_has(
    to: str,
) -> None:
    cited = [
        cite(
            Passage(f"research:d{n}#0", f"Fact {n}.", "research", "T", Locator(code=code)),
            f"Fact {n}.",
        )
        for n, code in enumerate(IDENTIFIED.values())
    ]
    turns = [
        ExportedAnswer(
            Question("q", "Which?"),
            Solution(
                Answer(
                    tuple(Statement(f"Fact {n}.", (n + 1,)) for n in range(len(part))), tuple(part)
                ),
                Halt.CONVERGED,
                "one search was enough",
            ),
            "r1",
            "rag",
        )
        for part in (cited[:3], cited[3:])
    ]
    text = read_back(to, write_export(turns, to))
    assert [known for known in IDENTIFIED if known not in text] == []


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.links: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]


def test_html_runs_and_loads_nothing() -> None:
    page = Tags()
    page.feed(write_export([exported()], "html").decode())
    assert "script" not in page.names
    assert page.links == [TRIAL.locator.url, GUIDE.locator.url]


def test_markdown_keeps_lists_and_takes_no_markup_from_texts() -> None:
    text = write_export([exported()], "markdown").decode()
    assert text.startswith("# Metformin in old age?\n")
    assert "\n- Check eGFR. [2]\n" in text
    page = Tags()
    page.feed(text)  # as a reader of Markdown that knows no "\\<", and lets HTML through
    assert [name for name in page.names if "http" not in name] == []
    assert "&lt;script&gt;" in text
    assert "[link](javascript" not in text


def test_danger_comes_first() -> None:
    notice = DangerNotice(("emergency",), "Call an ambulance now.")
    text = write_export([exported(danger=notice)], "markdown").decode()
    assert text.startswith("> **Call an ambulance now.**")


@pytest.mark.parametrize("to", FORMATS)
def test_an_abstention_and_a_conversation_are_written_in_every_format(to: str) -> None:
    silent = Solution(Answer(), Halt.NO_EVIDENCE, "nothing was found")
    turns = [
        exported("zh"),
        ExportedAnswer(Question("q", "And in pregnancy?"), silent, "r2", "rag"),
    ]
    assert write_export(turns, to)


def test_an_unknown_format_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(BadArgument, match="markdown, html, docx, pdf, ris"):
        write_export([exported()], "doc")


def test_fhir_opens_in_a_reader_of_fhir_and_everything_in_it_bears_the_ai_label() -> None:
    abstained = Solution(Answer(note="It does not say."), Halt.NO_EVIDENCE, "nothing found")
    other = ExportedAnswer(Question("q", "And?"), abstained, "20260102-030405-0123456789ab", "rag")
    bundle: Any = Bundle.model_validate_json(write_export([exported(), other], "fhir"))
    found = [entry.resource for entry in bundle.entry]
    answered = ["DocumentReference", "Provenance", "AuditEvent"]
    assert [one.get_resource_type() for one in found] == ["Device", *answered, *answered]
    for one in found:
        assert [label.code for label in one.meta.security] == ["AIAST"]
    document, provenance, audit = found[1:4]
    page = document.content[0].attachment.data.decode()
    assert "Metformin lowers HbA1c." in page
    assert "<script>" not in page
    sources = [entity.what.identifier.value for entity in provenance.entity]
    assert sources == [TRIAL.id, TRIAL_2.id, GUIDE.id, BOOKLET.id]
    targets = {entry.fullUrl for entry in bundle.entry}
    for one in (provenance.target[0], audit.entity[0].what, audit.agent[0].who):
        assert one.reference in targets
    assert found[5].recorded.isoformat() == "2026-01-02T03:04:05+00:00", "as the run's id says"
    assert found[5].entity is None


def test_the_studies_behind_an_answer_are_a_table_of_quotes() -> None:
    text = "120 patients were randomised to A or B (hazard ratio 0.5; 95% CI -0.2 to 0.9)."
    place = Locator(year=2020, code="PMID:7")
    cited = cite(Passage("research:7#0", text, "research", "A or B", place), "120 patients")
    answer = Answer((Statement("A helps.", (1,)),), (cited,))
    told = ExportedAnswer(Question("q", "A?"), Solution(answer, Halt.CONVERGED, "read"), "r", "rag")
    (row,) = csv.DictReader(io.StringIO(write_export([told], "studies").decode("utf-8-sig")))
    assert [row[name] for name in ("design", "n", "measure", "value", "low", "high", "pmid")] == [
        *("randomised-trial", "120", "hazard ratio", "0.5", "-0.2", "0.9", "7"),
    ]
    assert text[int(row["start"]) : int(row["end"])] == row["quote"]


TRICKS = {
    "control": "a\x00b\x07c\x0bd\x1b[31me\x7ff\x85g\ufffeh\uffffi",
    "right to left": "\u202egpj.exe\u202c \u2066a\u2069 שלום مرحبا",
    "entities": "&xxe; &#0; &amp;lt;script&gt; ]]> <!ENTITY x SYSTEM 'file:///etc/passwd'> <?php",
    "markup": "<script>alert(1)</script><w:p/></w:t><img src=x onerror=alert(1)>",
    "formula": "=cmd|' /C calc'!A0",
    "formula behind a space": "\t=1+1",
    "at": "@SUM(1)",
    "fields": '{ HYPERLINK "http://evil" } \\input{/etc/passwd} $x^2$ %s {0} \\x',
    "pdf": "(Hello) Tj ET endstream endobj trailer << /Launch >>",
    "marks": "e" + "\u0301" * 2_000,
    "pictures": "👩‍⚕️🏳️‍🌈 𝔘𝔫𝔦 \U000f0000",
    "one long word": "x" * 6_000,
    "many lines": "line\n" * 500,
    "line ends": "a\r\nb\u2028c\u2029d\x0ce",
}


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("to", ["docx", "pdf", "html", "csv", "markdown", "ris", "bibtex", "fhir"])
def test_a_hostile_text_is_text_in_every_format(to: str, trick: str) -> None:
    bad = TRICKS[trick]
    place = Locator(section=bad, year=2020, url=f"https://a.example/{bad}", kind=bad)
    passage = Passage("book:bad#0", f"{bad} Iron is given.", "book", bad, place, licence=bad)
    answer = Answer(
        (Statement(bad, (1,)), Statement(f"- {bad}", (1,))), (cite(passage, "Iron is given."),)
    )
    solution = Solution(answer, Halt.CONVERGED, bad)
    data = write_export([ExportedAnswer(Question("q", bad), solution, "r1", "rag")], to)
    if to == "docx":
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            xml = b"".join(parts.read(name) for name in parts.namelist() if "document" in name)
        assert b"<!ENTITY" not in xml
        assert b"instrText" not in xml, "no field"
    if to == "pdf":
        pages = pypdf.PdfReader(io.BytesIO(data), strict=True)
        told = str([page.get("/Annots") for page in pages.pages]) + str(pages.trailer["/Root"])
        assert "/Launch" not in told
        assert "/JavaScript" not in told
        return
    text = read_back(to, data)
    if to == "docx":
        assert "Iron is given." in text
    if to == "html":
        page = Tags()
        page.feed(text)
        assert {"script", "img", "w:p"}.isdisjoint(page.names)
    if to == "csv":
        cells = [cell.strip() for row in csv.reader(io.StringIO(text)) for cell in row]
        assert not [one for one in cells if one[:1] in "=+@" and one], "no formula"

"""The public corpora as they are published: how many documents, and what became of the rest.

The counts were taken once by other means than these parsers (grep, csv, ElementTree) where
a test does not take them itself.
"""

from __future__ import annotations

import bz2
import csv
import re
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import pytest

from osler.kb.ingest.chunk import document_passages
from osler.sources.discover import discover
from osler.sources.reading import read_records
from osler.sources.records import Document, Drop

TESTS, DOUBLE = "test questions or judgements, not evidence", "double in the file"
REPOSITORY = Path(__file__).resolve().parents[3]
DATA = REPOSITORY.parent / "shared" / "data"


@dataclass
class Taken:
    documents: list[Document] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    files: Counter[str] = field(default_factory=Counter)

    @property
    def reasons(self) -> Counter[str]:
        return Counter(drop.reason for drop in self.drops)

    def __getitem__(self, identifier: str) -> Document:
        return next(document for document in self.documents if document.id == identifier)


def take(place: str) -> Taken:
    path = DATA / place
    if not path.exists():
        pytest.skip(f"the public test data is not here: {path}")
    taken = Taken()
    for found in discover([path]):
        if isinstance(found, Drop):
            taken.drops.append(found)
            continue
        taken.files[found.parser.name] += 1
        for record in read_records(found):
            if isinstance(record, Document):
                taken.documents.append(record)
            elif isinstance(record, Drop):
                taken.drops.append(record)
    return taken


def members(place: str) -> Iterator[bytes]:
    with tarfile.open(DATA / place) as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None
            yield file.read()


def test_of_medquad_every_page_with_an_answer_or_other_names_is_a_document() -> None:
    taken = take("B_corpora/medquad")
    pages = [
        ElementTree.fromstring(page)  # noqa: S314 - the test's own oracle over files it knows
        for page in members("B_corpora/medquad/MedQuAD_xml.tar.gz")
    ]
    answers = [[(a.text or "").strip() for a in page.iter("Answer")] for page in pages]
    names = [any((s.text or "").strip() for s in page.iter("Synonym")) for page in pages]
    told = [any(page) or named for page, named in zip(answers, names, strict=True)]

    assert taken.files == {"medquad-xml": len(pages), "evaluation": 2}
    assert len(pages) == 1931
    assert len(taken.documents) == sum(told) == 1910
    assert len({document.id for document in taken.documents}) == 1910
    assert sum(len(document.sections) for document in taken.documents) == 5636 + 22
    assert taken.reasons == {
        "empty answer": sum(page.count("") for page in answers),
        "no question": sum(not page for page in answers),
        TESTS: 2,
    }
    assert {d.where for d in taken.drops if d.reason == TESTS} == {
        "medquad/judged_answers.csv",
        "medquad/qrels_LiveQAMed2017.txt",
    }


@pytest.mark.parametrize("name", ["pubmed_efetch_xml.tar.gz", "pubmed_sample_baseline.xml.gz"])
def test_of_pubmed_every_record_is_a_document(name: str) -> None:
    taken = take(f"B_corpora/pubmed/{name}")

    assert len(taken.documents) == 84
    assert taken.reasons == {}
    assert all(document.year and document.kind for document in taken.documents)
    assert taken["219391"].kind == "Case Reports"


def test_the_whole_pubmed_folder_is_accounted_for() -> None:
    taken = take("B_corpora/pubmed")

    assert taken.files == {"pubmed-xml": 85, "medrag-jsonl": 2, "medline": 2}
    assert taken.reasons.keys() == {DOUBLE}
    # bioasq_snippets.jsonl, pubmedqa_contexts.jsonl, the two sets of articles, MEDLINE
    assert len(taken.documents) + taken.reasons[DOUBLE] == 5906 + 1775 + 84 + 84 + 5


def test_guidelines_in_three_formats() -> None:
    taken = take("B_corpora/guidelines")
    sheets = sum(document.id.startswith("who_smart_anc-WHO-ANC-") for document in taken.documents)

    assert taken.files == {"guideline-jsonl": 1, "markdown": 3, "xlsx": 1}
    assert sheets == 14
    assert len(taken.documents) == 23 + 3 + sheets
    assert taken.reasons == {"licence or readme": 1, "hidden sheet": 1, "unknown format": 23}
    paths = {section.path for document in taken.documents for section in document.sections}
    assert ("Major Recommendations",) in paths


def test_full_texts_in_jats() -> None:
    taken = take("B_corpora/jats_nxml")

    assert taken.files == {"jats": 29}
    assert len({document.id for document in taken.documents}) == 29
    assert not taken.drops
    assert all(document.year and document.kind and document.licence for document in taken.documents)
    texts = [section.text for document in taken.documents for section in document.sections]
    assert not any("<" in text and "xref" in text for text in texts)
    assert not any(text.count(" , ,") for text in texts)


def test_wikipedia_in_four_formats() -> None:
    taken = take("B_corpora/wikipedia")
    with bz2.open(DATA / "B_corpora/wikipedia/enwiki-pages-articles-sample.xml.bz2") as dump:
        lines = dump.read().decode().splitlines()
    pages, redirects = (sum(tag in line for line in lines) for tag in ("<page>", "<redirect "))

    assert taken.files == {"mediawiki": 1, "wikiextractor": 2, "kilt": 1, "wiki-api": 98}
    assert (pages, redirects) == (105, 53)
    assert taken.reasons == {"redirect": redirects, "missing page": 3}
    assert len(taken.documents) == (pages - redirects) + 95 + 52 + 47 + (98 - 3)
    assert ("Signs and symptoms",) in {s.path for d in taken.documents for s in d.sections}
    dumped = [d for d in taken.documents if d.url.startswith("https://en.wikipedia.org/wiki/")]
    told = " ".join(section.text for document in dumped for section in document.sections)
    assert not re.search(r"\{\{cite|<ref|\[\[File:|\{\| class", told)


def test_a_dump_says_what_the_extractor_of_its_own_project_says() -> None:
    """Of the pages in both: nine words of ten are the same, in number and kind."""
    taken = take("B_corpora/wikipedia")
    by_title: dict[str, list[Document]] = {}
    for document in taken.documents:
        by_title.setdefault(document.title, []).append(document)
    pairs = [(a, b) for a, b, *_ in (found for found in by_title.values() if len(found) > 1)]

    shares = [_shared_words(a, b) for a, b in pairs if a.year and not b.year]

    assert len(shares) >= 50
    assert sorted(shares)[len(shares) // 10] > 0.9


def _shared_words(one: Document, other: Document) -> float:
    left, right = (
        Counter(re.findall(r"\w+", " ".join(s.text for s in d.sections).lower()))
        for d in (one, other)
    )
    return (left & right).total() / min(left.total(), right.total())


@pytest.mark.parametrize("place", ["withns", "nons"])
def test_a_zim_archive_of_wikibooks_in_either_layout(place: str) -> None:
    pytest.importorskip("backports.zstd", reason="the extra zim is not installed")
    taken = take(f"B_corpora/zim/{place}-wikibooks_be_all_nopic_2017-02.zim")

    assert len(taken.documents) == 66
    assert taken.reasons.keys() == {"redirect", "not an article"}
    alphabet = taken["kiwix.wikibooks_be_all-Эспэранта_Альфабэт.html"]
    assert (alphabet.title, alphabet.year) == ("Эспэранта/Альфабэт", 2017)
    assert "выкарыстоўвае лацінскі альфабэт" in alphabet.sections[0].text


def test_zim_archives_that_are_broken_in_one_place_give_their_page_or_say_why() -> None:
    taken = take("B_corpora/zim/invalid")

    # The page cannot be reached without types (2), paths, clusters (2) or a header.
    assert taken.files["zim"] == 16
    assert len(taken.documents) == 10
    assert taken.reasons["truncated or damaged"] == 3
    assert taken.reasons["unreadable page"] >= 3


def test_textbooks_in_markdown_and_cnxml() -> None:
    taken = take("B_corpora/textbooks")
    books = Counter(document.title for document in taken.documents if document.kind == "textbook")

    assert taken.files == {"markdown": 111, "cnxml": 172}
    assert len(taken.documents) == 110 + 172
    assert taken.reasons["table of contents"] == 1
    assert taken.reasons["table of contents, read with its files"] == 3
    assert books.keys() >= {"Nutrition for Nurses", "Pharmacology for Nurses"}
    assert sum(books.values()) == 172
    placed = [d.sections[0].path for d in taken.documents if d.title.endswith("for Nurses")]
    in_chapters = [any(part.startswith("Chapter ") for part in path) for path in placed]
    # Preface, introductions of units and answer keys stand outside of chapters.
    assert sum(in_chapters) > 0.9 * len(placed) > 140


def test_a_textbook_in_markdown_has_no_tags_left() -> None:
    taken = take("B_corpora/textbooks/openstax_anatomy_physiology_md.tar.gz")

    assert len(taken.documents) == 110
    assert taken.reasons.keys() == {"addresses and references left out"}
    texts = [section.text for document in taken.documents for section in document.sections]
    assert not any("<div" in text or "<sup>" in text or "{:" in text for text in texts)
    titles = {document.title for document in taken.documents}
    assert "Overview of Anatomy and Physiology" in titles


def test_a_pdf_names_its_pages() -> None:
    pytest.importorskip("pypdfium2")
    taken = take("B_corpora/pdf")

    (document,) = taken.documents
    assert [section.page for section in document.sections] == [1, 2]


def test_chinese_dialogues_and_instructions() -> None:
    taken = take("B_corpora/zh")

    assert taken.files == {"csv": 1, "json-records": 2, "plain": 13}
    assert taken.reasons.keys() == {DOUBLE}
    # 样例_内科.csv, huatuo_llama_data.jsonl, huatuo_liver_cancer.json, the classics
    assert len(taken.documents) + taken.reasons[DOUBLE] == 2000 + 2000 + 506 + 13
    assert {document.language for document in taken.documents} == {"zh"}


def test_chinese_classics_in_gb18030() -> None:
    taken = take("B_corpora/zh/tcm_ancient_books_gb18030.tar.gz")

    assert len(taken.documents) == 13
    assert {document.language for document in taken.documents} == {"zh"}
    assert "脉经" in {document.title for document in taken.documents}
    assert ("卷一", "平脉早晏法第二") in {s.path for d in taken.documents for s in d.sections}


def test_umls_shaped_tables_give_a_document_for_each_concept() -> None:
    taken = take("F_umls_like/META")
    rows = (DATA / "F_umls_like/META/MRCONSO.RRF").read_text(encoding="utf-8").splitlines()

    assert not taken.drops
    assert len(taken.documents) == len({row.split("|")[0] for row in rows}) == 8770
    assert all(
        section.text.startswith(("Definition: ", "Relation: ("))
        for document in taken.documents
        for section in document.sections
    )


def test_the_disease_ontology_in_obo() -> None:
    taken = take("C_graphs/disease_ontology/doid.obo")

    assert len(taken.documents) == 4598
    assert taken.reasons == {"obsolete term": 1179}
    assert (
        taken["DOID-0001816"]
        .sections[0]
        .text.endswith("\nRelation: (angiosarcoma, is_a, sarcoma).")
    )


def test_fhir_bundles_tell_no_names() -> None:
    taken = take("D_emr/synthea_fhir_r4")
    with tarfile.open(DATA / "D_emr/synthea_fhir_r4/bundles.tar.gz") as archive:
        parts = {part for name in archive.getnames() for part in name.split("_")[:2]}

    assert len(taken.documents) == 5
    assert taken.reasons == {"no patient": 1}
    told = repr(taken.documents) + repr(taken.drops)
    assert not any(part in told for part in parts if not part.startswith("practitioner"))
    assert "999-" not in told


@pytest.mark.parametrize(
    ("place", "patients", "unread"),
    [("D_emr/mimic3_demo", 50, 11), ("D_emr/mimic4_hosp_shaped", 49, 0)],
)
def test_mimic_tables_give_a_document_for_each_subject(
    place: str, patients: int, unread: int
) -> None:
    taken = take(place)
    (table,) = (p for p in (DATA / place).rglob("*") if p.name.lower() == "patients.csv")
    with table.open(newline="") as file:
        subjects = {row["subject_id"] for row in csv.DictReader(file)}

    assert {document.code for document in taken.documents} == {f"subject:{s}" for s in subjects}
    assert len(taken.documents) == patients
    assert taken.reasons == ({"table not read": unread} if unread else {})


def test_of_all_test_data_nothing_is_lost_between_parser_and_passage() -> None:
    for place in ("B_corpora/guidelines", "B_corpora/textbooks", "B_corpora/zh", "D_emr"):
        for document in take(place).documents:
            cut = "".join(p.text for p in document_passages(document, "book"))
            whole = "".join(section.text for section in document.sections)
            assert "".join(cut.split()) == "".join(whole.split())
            assert all(len(p.text) <= 1000 for p in document_passages(document, "book"))

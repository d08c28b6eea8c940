"""The public corpora as they are published: how many documents, and what became of the rest.

The counts were taken once by other means than these parsers (grep, csv, ElementTree) where
a test does not take them itself.
"""

from __future__ import annotations

import csv
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import pytest

from osler.kb.chunk import passages
from osler.kb.discover import discover, read
from osler.kb.records import Document, Drop

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
        for record in read(found):
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

    assert taken.files == {"medquad-xml": len(pages)}
    assert len(pages) == 1931
    assert len(taken.documents) == sum(told) == 1910
    assert len({document.id for document in taken.documents}) == 1910
    assert sum(len(document.sections) for document in taken.documents) == 5636 + 22
    assert taken.reasons == {
        "empty answer": sum(page.count("") for page in answers),
        "no question": sum(not page for page in answers),
        "unknown format": 2,
    }
    assert {d.where for d in taken.drops if d.reason == "unknown format"} == {
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
    assert taken.reasons == {}
    assert len(taken.documents) == 5906 + 1775 + 84 + 84 + 5


def test_guidelines_have_their_headings_as_paths() -> None:
    taken = take("B_corpora/guidelines")

    assert taken.files == {"guideline-jsonl": 1, "markdown": 3}
    assert len(taken.documents) == 23 + 3
    assert taken.reasons == {"unknown format": 24, "licence or readme": 1}
    paths = {section.path for document in taken.documents for section in document.sections}
    assert ("Major Recommendations",) in paths


def test_wikipedia_by_wikiextractor() -> None:
    taken = take("B_corpora/wikipedia")

    assert taken.files == {"wikiextractor": 2}
    assert len(taken.documents) == 95 + 52
    assert ("Signs and symptoms",) in {s.path for d in taken.documents for s in d.sections}


def test_a_textbook_in_markdown_has_no_tags_left() -> None:
    taken = take("B_corpora/textbooks/openstax_anatomy_physiology_md.tar.gz")

    assert len(taken.documents) == 110
    assert not taken.drops
    texts = [section.text for document in taken.documents for section in document.sections]
    assert not any("<div" in text or "<sup>" in text or "{:" in text for text in texts)
    titles = {document.title for document in taken.documents}
    assert "Overview of Anatomy and Physiology" in titles


def test_chinese_classics_in_gb18030() -> None:
    taken = take("B_corpora/zh/tcm_ancient_books_gb18030.tar.gz")

    assert len(taken.documents) == 13
    assert {document.language for document in taken.documents} == {"zh"}
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
            cut = "".join(p.text for p in passages(document, "book"))
            whole = "".join(section.text for section in document.sections)
            assert "".join(cut.split()) == "".join(whole.split())
            assert all(len(p.text) <= 1000 for p in passages(document, "book"))

"""Terminologies as text: UMLS tables and OBO, in Omni-RAG's wire form (§3.2)."""

from __future__ import annotations

import gzip
from io import BytesIO
from pathlib import Path

import pytest

from osler.errors import MalformedSource
from osler.sources.formats.containers import Unreadable
from osler.sources.formats.obo import Obo
from osler.sources.formats.rrf import Rrf
from osler.sources.formats.sections import concept_sections
from osler.sources.records import Document, Drop, Record, Section


def conso(cui: str, name: str, *, lat: str = "ENG", pref: bool = True, suppress: str = "N") -> str:
    ts, stt, ispref = ("P", "PF", "Y") if pref else ("S", "VO", "N")
    return f"{cui}|{lat}|{ts}|L|{stt}|S|{ispref}|A||||MSH|PT|C|{name}|0|{suppress}||"


def definition(cui: str, vocabulary: str, text: str, suppress: str = "N") -> str:
    return f"{cui}|A|AT||{vocabulary}|{text}|{suppress}||"


def relation(cui1: str, rel: str, cui2: str, rela: str = "", suppress: str = "N") -> str:
    return f"{cui1}|A|SCUI|{rel}|{cui2}|A|SCUI|{rela}|R||MSH|MSH|||{suppress}||"


def release(folder: Path, **tables: list[str]) -> list[Record]:
    for table, rows in tables.items():
        (folder / f"{table}.RRF").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return list(Rrf().parse_folder(folder))


NAMES = [
    conso("C1", "Heart attack", pref=False),
    conso("C1", "心肌梗死", lat="CHI"),
    conso("C1", "Myocardial infarction"),
    conso("C1", "MYOCARDIAL INFARCTION", pref=False),
    conso("C1", "Infarto", lat="SPA"),
    conso("C1", "Old name", pref=False, suppress="O"),
    conso("C2", "Heart disease"),
    conso("C3", "Aspirin"),
    conso("C4", "Alone"),
]


def test_a_concept_is_written_in_the_wire_form(tmp_path: Path) -> None:
    records = release(
        tmp_path,
        MRCONSO=NAMES,
        MRDEF=[definition("C1", "NCI", "Death of heart muscle.")],
        MRREL=[
            relation("C2", "CHD", "C1", "isa"),
            relation("C1", "PAR", "C2", "inverse_isa"),
            relation("C3", "RO", "C1", "may_be_treated_by"),
        ],
        MRSTY=["C1|T047|B2|Disease or Syndrome|AT|256|"],
    )

    assert records[0] == Document(
        id="C1",
        title="Myocardial infarction/Heart attack/心肌梗死",
        sections=(
            Section(
                "Definition: Death of heart muscle.\n"
                "Relation: (Myocardial infarction, isa, Heart disease);"
                " (Myocardial infarction, may_be_treated_by, Aspirin)."
            ),
        ),
        url="https://uts.nlm.nih.gov/uts/umls/concept/C1",
        code="CUI:C1",
        kind="Disease or Syndrome",
    )


def test_a_relation_stated_from_one_end_is_told_at_both(tmp_path: Path) -> None:
    records = release(tmp_path, MRCONSO=NAMES, MRREL=[relation("C2", "CHD", "C1", "isa")])

    texts = [record.sections[0].text for record in records if isinstance(record, Document)]
    assert texts == ["Relation: (Myocardial infarction, isa, Heart disease)."] * 2


def test_a_relation_without_a_name_is_told_by_its_kind(tmp_path: Path) -> None:
    rows = [
        relation("C1", "PAR", "C2"),
        relation("C1", "XR", "C3"),
        relation("C1", "RO", "C3", "treats", suppress="O"),
        relation("C1", "SY", "C1", "same_as"),
        relation("C1", "RO", "C9", "treats"),
    ]

    (document, *_) = release(tmp_path, MRCONSO=NAMES, MRREL=rows)

    assert isinstance(document, Document)
    assert document.sections == (
        Section("Relation: (Heart disease, parent_of, Myocardial infarction)."),
    )


def test_the_definition_is_taken_by_the_rank_of_its_vocabulary(tmp_path: Path) -> None:
    order = ["MSH", "NCI", "ICF", "CSP", "HPO", "OTHER"]
    for kept in range(len(order)):
        rows = [definition("C1", name, f"By {name}.") for name in reversed(order[kept:])]
        (document, *_) = release(tmp_path, MRCONSO=NAMES, MRDEF=rows)
        assert isinstance(document, Document)
        assert document.sections == (Section(f"Definition: By {order[kept]}."),)


def test_suppressed_and_foreign_definitions_are_not_taken(tmp_path: Path) -> None:
    vocabulary = "||MSHFRE_2025|MSHFRE|Thesaurus||||||||||||||||FRE|UTF-8|Y|Y|MSHFRE||"
    rows = [
        definition("C1", "MSH", "Old.", suppress="O"),
        definition("C1", "MSHFRE", "Mort du muscle."),
        definition("C1", "CSP", "Good."),
    ]

    (document, *_) = release(tmp_path, MRCONSO=NAMES, MRDEF=rows, MRSAB=[vocabulary])

    assert isinstance(document, Document)
    assert document.sections == (Section("Definition: Good."),)


def test_a_concept_with_neither_is_a_drop(tmp_path: Path) -> None:
    records = release(tmp_path, MRCONSO=NAMES[-1:])

    assert records == [Drop(f"{tmp_path.name}: C4", "no definition and no relation")]


def test_rows_that_cannot_be_read_are_drops_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "MRCONSO.RRF").write_bytes(b"C1|ENG\n" + b"\xff" * 9 + b"|" * 18 + b"\n")

    assert list(Rrf().parse_folder(tmp_path)) == [
        Drop("MRCONSO.RRF:1", "wrong number of columns", 1),
        Drop("MRCONSO.RRF:2", "not UTF-8", 2),
    ]


def test_tables_may_be_compressed_and_a_broken_one_is_named(tmp_path: Path) -> None:
    data = gzip.compress("\n".join(NAMES * 500).encode())
    (tmp_path / "MRCONSO.RRF.gz").write_bytes(data)
    (tmp_path / "MRDEF.RRF").write_text(definition("C4", "MSH", "Text.") + "\n")

    documents = [r for r in Rrf().parse_folder(tmp_path) if isinstance(r, Document)]
    assert [document.id for document in documents] == ["C4"]

    (tmp_path / "MRCONSO.RRF.gz").write_bytes(data[:-20])
    with pytest.raises(Unreadable, match=r"MRCONSO\.RRF\.gz: truncated or damaged"):
        list(Rrf().parse_folder(tmp_path))


def test_a_folder_without_concepts_is_malformed(tmp_path: Path) -> None:
    assert not Rrf().matches_folder(tmp_path)
    with pytest.raises(MalformedSource, match=r"MRCONSO\.RRF"):
        list(Rrf().parse_folder(tmp_path))


def test_many_relations_go_on_in_sections_of_the_same_form() -> None:
    triples = [("Diabetes mellitus", "may_be_treated_by", f"Drug number {n}") for n in range(100)]

    sections = concept_sections("Too much sugar.", triples)

    assert sections[0].text.startswith("Definition: Too much sugar.\nRelation: (Diabetes")
    assert all(section.text.startswith("Relation: (") for section in sections[1:])
    assert all(section.text.endswith(").") for section in sections)
    assert all(len(section.text) <= 1000 for section in sections)
    assert sum(section.text.count("Drug number") for section in sections) == 100


OBO = rb"""format-version: 1.2
default-namespace: disease_ontology
ontology: doid

[Term]
id: DOID:2
name: gout
def: "A \"joint\" disease\, painful.\nVery." [url:http\://example.org]
synonym: "podagra" EXACT []
synonym: "Gout" RELATED [X:1]
xref: MESH:D006073
is_a: DOID:1 {source="x"} ! joint disease (comment)
is_a: DOID:9 ! elsewhere named
relationship: part_of DOID:1 ! joint disease

[Term]
id: DOID:3
name: old
is_obsolete: true

[Term]
id: DOID:1
name: joint disease

[Typedef]
id: part_of
name: part of

[Term]
name: no id
"""


def parse_obo(data: bytes) -> list[Record]:
    return list(Obo().parse(BytesIO(data), "d.obo"))


def test_an_obo_term_is_written_in_the_same_form_with_the_names_of_its_parents() -> None:
    assert parse_obo(OBO)[0] == Document(
        id="DOID-2",
        title="gout/podagra",
        sections=(
            Section(
                'Definition: A "joint" disease, painful. Very.\n'
                "Relation: (gout, is_a, joint disease); (gout, is_a, elsewhere named);"
                " (gout, part_of, joint disease)."
            ),
        ),
        url="http://purl.obolibrary.org/obo/DOID_2",
        code="DOID:2",
        kind="disease_ontology",
    )


def test_obo_terms_that_say_nothing_are_drops() -> None:
    assert parse_obo(OBO)[1:] == [
        Drop("d.obo:16: DOID:3", "obsolete term"),
        Drop("d.obo:21: DOID:1", "no definition and no relation"),
        Drop("d.obo:29", "no id"),
    ]


def test_obo_is_told_by_its_beginning_or_its_name() -> None:
    assert Obo().matches("x", b"format-version: 1.4\n")
    assert Obo().matches("x.obo", b"! comment\n[Term]\nid: A:1\n")
    assert not Obo().matches("x.obo", b"nothing")

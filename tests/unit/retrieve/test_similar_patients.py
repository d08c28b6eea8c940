"""Patients of a knowledge base by codes, by names of diagnoses, by words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import RetrieverKit
from osler.errors import SourceUnavailable
from osler.kb.base import KnowledgeBase
from osler.kb.search.base import PassageFilter
from osler.retrieve.hybrid import LexicalRetriever
from osler.sources.catalogue import EMR
from osler.types import Retriever
from osler_serve.clinic.records.codes import icd_code
from osler_serve.clinic.records.search import PatientIndex, SimilarPatients, profile_in

TABLES = {
    "patients.csv": (
        "subject_id,gender,anchor_age,anchor_year\n"
        "1,F,70,2150\n2,M,70,2150\n3,F,30,2150\n4,F,65,2150\n"
    ),
    "admissions.csv": (
        "subject_id,hadm_id,admittime\n1,10,2150-01-01\n2,20,2150-01-01\n3,30,2150-01-01\n"
        "4,40,2150-01-01\n"
    ),
    "diagnoses_icd.csv": (
        "subject_id,hadm_id,seq_num,icd_code,icd_version\n"
        "1,10,1,0389,9\n1,10,2,5849,9\n2,20,1,0389,9\n2,20,2,5849,9\n3,30,1,5849,9\n4,40,1,4019,9\n"
    ),
    "d_icd_diagnoses.csv": (
        "icd_code,icd_version,long_title\n0389,9,Unspecified septicemia\n"
        '5849,9,"Acute kidney failure, unspecified"\n4019,9,Hypertension\n'
    ),
    "prescriptions.csv": "subject_id,hadm_id,drug\n4,40,Amlodipine\n",
}


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    tables = tmp_path / "tables"
    tables.mkdir()
    for name, text in TABLES.items():
        (tables / name).write_text(text, encoding="utf-8")
    with KnowledgeBase.create(tmp_path / "kb") as made:
        made.add([tables], source=EMR)
        made.build(None)
        yield made


@pytest.fixture
def retriever(kb: KnowledgeBase) -> Retriever:
    return SimilarPatients(PatientIndex(kb), LexicalRetriever(kb, PassageFilter((EMR,))))


class TestSimilarPatients(RetrieverKit):
    @pytest.fixture
    def query(self) -> str:
        return "ICD-9-CM 038.9, 584.9"


async def ids(retriever: Retriever, query: str) -> list[str]:
    return [hit.passage.id for hit in await retriever.search(query, k=5)]


async def test_codes_age_and_sex_in_the_query_choose_the_patients(retriever: Retriever) -> None:
    woman = await ids(retriever, "72-year-old woman, ICD-9-CM 038.9 and ICD-9-CM 584.9")
    man = await ids(retriever, "男，72岁，ICD-9：038.9、584.9")

    assert woman == ["emr:subject-1#0", "emr:subject-2#0", "emr:subject-3#0"]
    assert man == ["emr:subject-2#0", "emr:subject-1#0", "emr:subject-3#0"]


async def test_names_of_diagnoses_stand_for_their_codes(retriever: Retriever) -> None:
    found = await retriever.search("Unspecified septicemia in a man", k=1)

    assert found[0].passage.id == "emr:subject-2#0"
    assert found[0].source == "patients"
    assert found[0].passage.text.startswith("Patient: male, age 70 at the latest admission.")


async def test_a_query_without_a_diagnosis_is_searched_by_words(retriever: Retriever) -> None:
    (hit, *_) = await retriever.search("amlodipine", k=1)

    assert hit.source == "lexical"
    assert hit.passage.title == "Patient, female, age 65"


async def test_patients_are_read_again_after_a_build(kb: KnowledgeBase, tmp_path: Path) -> None:
    patients = PatientIndex(kb)
    assert len(patients.load_snapshot().cohort) == 4
    assert patients.load_snapshot() is patients.load_snapshot()

    kb.remove(source=EMR, document="subject-1")
    kb.build(None)

    assert len(patients.load_snapshot().cohort) == 3


async def test_without_patients_the_source_is_down(tmp_path: Path) -> None:
    with KnowledgeBase.create(tmp_path / "empty") as kb:
        retriever = SimilarPatients(PatientIndex(kb), LexicalRetriever(kb, PassageFilter((EMR,))))
        with pytest.raises(SourceUnavailable, match="no source emr"):
            await retriever.search("ICD-9-CM 038.9", k=1)


@pytest.mark.parametrize(
    ("text", "age", "sex"),
    [
        ("a 65-year-old man", 65, "male"),
        ("Woman, aged 40", 40, "female"),
        ("95 y/o F", 90, "female"),
        ("72M with cough", 72, "male"),
        ("女，3岁", 3, "female"),
        ("男性患者，年龄不详", None, "male"),
        ("5 mg of F", None, ""),
        ("a human manifestation", None, ""),
    ],
)
def test_age_and_sex_are_read_as_people_write_them(text: str, age: int | None, sex: str) -> None:
    profile = profile_in(text, frozenset({icd_code("4019", "9")}))
    assert (profile.age, profile.sex) == (age, sex)

"""Patient records: what is told, and above all what is not."""

from __future__ import annotations

import gzip
import json
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from osler.errors import MalformedSource
from osler.sources.records import Document, Drop, Record, Section
from osler_serve.clinic.records.codes import dotted_code
from osler_serve.clinic.records.fhir import Fhir
from osler_serve.clinic.records.mimic import Mimic
from osler_serve.clinic.records.patient import age_between, age_text

PATIENT = {
    "resourceType": "Patient",
    "id": "pat-1",
    "identifier": [{"system": "urn:mrn", "value": "MRN-4711"}],
    "name": [{"family": "Marks", "given": ["Wilson", "伟强"], "use": "official"}],
    "telecom": [{"system": "phone", "value": "555-820-1234"}],
    "address": [{"line": ["12 Elm Lane"], "city": "Salem", "postalCode": "01970"}],
    "gender": "male",
    "birthDate": "1950-06-15",
    "text": {"div": "<div>Wilson Marks, born 1950</div>"},
}


def coded(system: str, code: str, display: str) -> dict[str, Any]:
    return {"coding": [{"system": system, "code": code, "display": display}]}


def resource(kind: str, **fields: Any) -> dict[str, Any]:
    return {"resourceType": kind, "subject": {"reference": "urn:uuid:pat-1"}, **fields}


ASTHMA = resource(
    "Condition",
    code=coded("http://snomed.info/sct", "195967001", "Asthma"),
    clinicalStatus={"coding": [{"code": "active"}]},
    onsetDateTime="1990-01-02T10:00:00Z",
    note=[{"text": "Mr Marks says so"}],
)
PRESSURE = resource(
    "Observation",
    status="final",
    code=coded("http://loinc.org", "85354-9", "Blood pressure"),
    effectiveDateTime="2010-06-14",
    component=[
        {
            "code": coded("http://loinc.org", "8480-6", "Systolic"),
            "valueQuantity": {"value": 120.456, "unit": "mm[Hg]"},
        },
        {
            "code": coded("http://loinc.org", "8462-4", "Diastolic"),
            "valueQuantity": {"value": 80, "unit": "mm[Hg]"},
        },
    ],
)


def parse(*resources: dict[str, Any], name: str = "Wilson_Marks.json") -> list[Record]:
    bundle = {"resourceType": "Bundle", "entry": [{"resource": each} for each in resources]}
    return list(Fhir().parse(BytesIO(json.dumps(bundle, ensure_ascii=False).encode()), name))


def one(*resources: dict[str, Any]) -> Document:
    (record,) = parse(PATIENT, *resources)
    assert isinstance(record, Document)
    return record


def test_a_patient_is_sex_age_and_coded_facts() -> None:
    document = one(ASTHMA, PRESSURE)

    assert document.title == "Patient, male, age 59"
    assert document.sections == (
        Section("Patient: male, age 59 at the latest entry.\nMain diagnoses: Asthma."),
        Section("- Asthma [SNOMED CT 195967001]: active, at age 39", ("Conditions",)),
        Section(
            "- Blood pressure [LOINC 85354-9]: Systolic 120.46 mm[Hg], Diastolic 80 mm[Hg],"
            " at age 59",
            ("Observations",),
        ),
    )


def test_fhir_identifiers_of_the_patient_are_dropped() -> None:
    typed = [
        resource("Condition", code={"text": "Cough, says Wilson Marks"}),
        resource("Condition", code={"text": "张伟强咳嗽"}),
        resource("Condition", code={"text": "call 555-820-1234"}),
        resource("Observation", code={"text": "Job"}, valueString="Clerk in Salem"),
    ]
    told = repr([*parse(PATIENT, ASTHMA, *typed), *parse(ASTHMA), *parse(PATIENT)])

    for private in (
        "Wilson",
        "Marks",
        "伟强",
        "4711",
        "820",
        "Elm",
        "Salem",
        "1950",
        "1990",
        "pat-1",
    ):
        assert private not in told


@pytest.mark.parametrize(
    "name",
    [{"family": "王", "given": ["伟"]}, {"family": "王", "given": ["建", "伟"]}, {"text": "王·伟"}],
)
def test_a_chinese_name_of_single_characters_is_the_patient_s_own(name: dict[str, Any]) -> None:
    whole = "".join(name.get("given", ["伟"]))
    texts = [f"王{whole}自述头痛", f"王 {whole}自述头痛", "王国卫生院：头痛"]
    typed = [resource("Condition", code={"text": text}) for text in texts]
    (document,) = parse(PATIENT | {"name": [name]}, ASTHMA, *typed)
    assert isinstance(document, Document)
    assert "自述" not in repr(document)
    assert "王国卫生院：头痛" in repr(document)


def test_typed_text_without_a_private_word_is_used_where_there_is_no_code() -> None:
    document = one(resource("Condition", code={"text": "Chronic cough"}))

    assert document.sections[1].text == "- Chronic cough"


def test_medication_allergy_and_procedure_have_their_sections() -> None:
    document = one(
        resource(
            "MedicationRequest",
            status="active",
            medicationReference={"reference": "Medication/m1"},
            authoredOn="2000-07-01",
        ),
        {
            "resourceType": "Medication",
            "id": "m1",
            "code": coded("http://www.nlm.nih.gov/research/umls/rxnorm", "1191", "Aspirin"),
        },
        {
            "resourceType": "AllergyIntolerance",
            "patient": {"reference": "Patient/pat-1"},
            "code": coded("http://snomed.info/sct", "256349002", "Peanut"),
            "reaction": [{"manifestation": [coded("x", "1", "Hives")]}],
        },
        resource("Procedure", status="completed", code=coded("x", "1", "Appendectomy")),
    )

    assert [(section.path, section.text) for section in document.sections[1:]] == [
        (("Medications",), "- Aspirin [RxNorm 1191]: active, at age 50"),
        (("Allergies",), "- Peanut [SNOMED CT 256349002]: Hives"),
        (("Procedures",), "- Appendectomy"),
    ]


def test_of_a_measurement_the_latest_value_counts() -> None:
    weights = [
        resource(
            "Observation",
            code=coded("http://loinc.org", "29463-7", "Body weight"),
            effectiveDateTime=when,
            valueQuantity={"value": value, "unit": "kg"},
        )
        for when, value in (("2010-01-01", 80.5), ("2000-01-01", 70))
    ]

    assert one(*weights).sections[1].text == "- Body weight [LOINC 29463-7]: 80.5 kg, at age 59"


def test_what_was_withdrawn_or_refuted_is_not_told() -> None:
    refuted = {**ASTHMA, "verificationStatus": {"coding": [{"code": "refuted"}]}}
    mistaken = {**PRESSURE, "status": "entered-in-error"}

    (drop,) = parse(PATIENT, refuted, mistaken)

    assert isinstance(drop, Drop)
    assert drop.reason == "no coded fact"


def test_age_above_89_is_withheld() -> None:
    document = one({**ASTHMA, "onsetDateTime": "2045-01-01"})

    assert document.title == "Patient, male, age 90 or over"
    assert document.sections[1].text.endswith("at age 90 or over")


def test_a_patient_named_by_its_url_gets_its_facts() -> None:
    entries = [
        {"resource": {**ASTHMA, "subject": {"reference": "urn:uuid:other"}}},
        {"fullUrl": "urn:uuid:other", "resource": PATIENT},
    ]
    data = json.dumps({"resourceType": "Bundle", "entry": entries}).encode()

    (document,) = Fhir().parse(BytesIO(data), "b.json")

    assert isinstance(document, Document)
    assert [section.path for section in document.sections] == [(), ("Conditions",)]


def test_bundles_without_a_patient_or_with_strangers_are_drops() -> None:
    (nobody,) = parse({"resourceType": "Practitioner", "id": "x"})
    _, stranger = parse(PATIENT, ASTHMA, {**ASTHMA, "subject": {"reference": "Patient/stranger"}})

    assert isinstance(nobody, Drop)
    assert isinstance(stranger, Drop)
    assert (nobody.reason, stranger.reason) == ("no patient", "patient not in the bundle")


def test_a_bundle_is_told_by_its_type() -> None:
    assert Fhir().matches("a.json", b'{"resourceType": "Bundle", "type": "collection"')
    assert not Fhir().matches("a.json", b'{"resourceType": "Patient"')


@pytest.mark.parametrize(
    ("then", "age"),
    [((2000, 6, 14), 49), ((2000, 6, 15), 50), ((1940, 1, 1), 0)],
)
def test_age_is_counted_in_birthdays(then: tuple[int, int, int], age: int) -> None:
    assert age_between(date(1950, 6, 15), date(*then)) == age


def test_ages_are_told_up_to_89() -> None:
    assert [age_text(age) for age in (0, 89, 90, None)] == ["0", "89", "90 or over", "unknown"]


MIMIC_4 = {
    "patients.csv": (
        "subject_id,gender,anchor_age,anchor_year\n10,F,70,2150\n11,M,91,2150\n12,M,5,2150\n"
    ),
    "admissions.csv": (
        "subject_id,hadm_id,admittime,admission_type,race,hospital_expire_flag\n"
        "10,101,2152-01-01 00:00:00,EW EMER.,WHITE,1\n10,100,2150-05-05 00:00:00,,WHITE,0\n"
        "11,102,2150-01-01 00:00:00,URGENT,ASIAN,0\n"
    ),
    "diagnoses_icd.csv": (
        "subject_id,hadm_id,seq_num,icd_code,icd_version\n"
        "10,101,2,E1165,10\n10,101,1,99591,9\n10,999,1,4019,9\n"
    ),
    "d_icd_diagnoses.csv": "icd_code,icd_version,long_title\n99591,9,Sepsis\n4019,9,Hypertension\n",
    "prescriptions.csv": (
        "subject_id,hadm_id,drug\n10,101,Heparin\n10,101,Heparin\n10,101,Insulin\n"
    ),
    "noteevents.csv": "subject_id\n",
}


def folder_of(tables: dict[str, str], folder: Path) -> Path:
    for name, text in tables.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_mimic_subject_is_one_document_of_admissions(tmp_path: Path) -> None:
    records = list(Mimic().parse_folder(folder_of(MIMIC_4, tmp_path)))

    assert records[2] == Document(
        id="subject-10",
        title="Patient, female, age 72",
        sections=(
            Section(
                "Patient: female, age 72 at the latest admission. 2 admissions within 606 days."
                " Died.\nMain diagnoses: Sepsis; ICD-10-CM E11.65."
            ),
            Section("Admission: age 70.", ("Admission 1",)),
            Section(
                "Admission: age 72, ew emer., 606 days after the first, died in hospital.",
                ("Admission 2",),
            ),
            Section("- Sepsis [ICD-9-CM 995.91]\n- ICD-10-CM E11.65", ("Admission 2", "Diagnoses")),
            Section("- Heparin\n- Insulin", ("Admission 2", "Medications")),
        ),
        code="subject:10",
        kind="Patient",
    )


def test_of_mimic_too_nothing_is_passed_over_in_silence(tmp_path: Path) -> None:
    records = list(Mimic().parse_folder(folder_of(MIMIC_4, tmp_path)))

    name = tmp_path.name
    assert [record for record in records if isinstance(record, Drop)] == [
        Drop(f"{name}/noteevents.csv", "table not read"),
        Drop(f"{name}: subject 10, admission 999", "admission not in admissions"),
        Drop(f"{name}: subject 12", "no admission"),
    ]


def test_an_anchor_age_of_91_means_90_or_over(tmp_path: Path) -> None:
    records = list(Mimic().parse_folder(folder_of(MIMIC_4, tmp_path)))

    titles = [record.title for record in records if isinstance(record, Document)]
    assert titles == ["Patient, female, age 72", "Patient, male, age 90 or over"]


def test_mimic_3_has_upper_case_names_birth_dates_and_a_reason(tmp_path: Path) -> None:
    tables = {
        "PATIENTS.csv": '"ROW_ID","SUBJECT_ID","GENDER","DOB"\n1,7,"M","2100-07-01 00:00:00"\n',
        "ADMISSIONS.csv": (
            "SUBJECT_ID,HADM_ID,ADMITTIME,ADMISSION_TYPE,DIAGNOSIS,HOSPITAL_EXPIRE_FLAG\n"
            '7,70,2160-06-30 01:00:00,EMERGENCY,"SEPSIS;TELEMETRY",0\n'
        ),
        "PROCEDURES_ICD.csv": "SUBJECT_ID,HADM_ID,SEQ_NUM,ICD9_CODE\n7,70,1,9915\n",
    }
    (tmp_path / "DIAGNOSES_ICD.csv.gz").write_bytes(
        gzip.compress(b"SUBJECT_ID,HADM_ID,SEQ_NUM,ICD9_CODE\n7,70,1,E8788\n7,70,2,V5861\n")
    )

    (document,) = Mimic().parse_folder(folder_of(tables, tmp_path))

    assert isinstance(document, Document)
    assert [section.text for section in document.sections] == [
        "Patient: male, age 59 at the latest admission."
        "\nMain diagnoses: ICD-9-CM E878.8; ICD-9-CM V58.61.",
        "Admission: age 59, emergency, for SEPSIS;TELEMETRY.",
        "- ICD-9-CM E878.8\n- ICD-9-CM V58.61",
        "- ICD-9-CM 99.15",
    ]


def test_rows_that_cannot_be_read_are_drops(tmp_path: Path) -> None:
    tables = {**MIMIC_4, "patients.csv": MIMIC_4["patients.csv"] + "x,M,1,2150\n"}

    records = list(Mimic().parse_folder(folder_of(tables, tmp_path)))

    assert Drop("patients.csv:5", "malformed row") in records


def test_an_admission_of_an_unknown_subject_is_a_drop(tmp_path: Path) -> None:
    tables = {**MIMIC_4, "patients.csv": "subject_id,gender\n10,F\n12,M\n"}

    records = list(Mimic().parse_folder(folder_of(tables, tmp_path)))

    assert Drop(f"{tmp_path.name}: subject 11", "subject not in patients") in records


def test_a_folder_with_other_tables_is_malformed(tmp_path: Path) -> None:
    assert not Mimic().matches_folder(folder_of({"patients.csv": "Id\n"}, tmp_path))
    with pytest.raises(MalformedSource, match="tables of MIMIC"):
        list(Mimic().parse_folder(tmp_path))


@pytest.mark.parametrize(
    ("code", "version", "is_procedure", "written"),
    [
        ("99591", "9", False, "995.91"),
        ("E8788", "9", False, "E878.8"),
        ("311", "9", False, "311"),
        ("E1165", "10", False, "E11.65"),
        ("3893", "9", True, "38.93"),
        ("02HV33Z", "10", True, "02HV33Z"),
    ],
)
def test_codes_get_their_dot_back(
    code: str, version: str, is_procedure: bool, written: str
) -> None:
    assert dotted_code(code, version, is_procedure=is_procedure) == written

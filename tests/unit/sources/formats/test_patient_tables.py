"""eICU, OMOP and Synthea: tables of a folder become patients, and nothing that names anybody."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

import pytest

from osler.errors import MalformedSource
from osler.sources.discover import discover
from osler.sources.formats.registry import by_name, sniff_folder
from osler.sources.formats.tables import read_rows
from osler.sources.reading import read_records
from osler.sources.records import Document, Drop
from osler_serve.clinic.records.codes import Code, CodeSystem, icd_code
from osler_serve.clinic.records.eicu import Clif, Eicu
from osler_serve.clinic.records.mimic import Mimic, MimicEd, Synthea
from osler_serve.clinic.records.omop import Omop
from osler_serve.clinic.records.patient import OLDEST, Encounter, FactKind, Lab, Patient
from osler_serve.clinic.records.patient_tables import PatientTables


def write(folder: Path, tables: dict[str, str]) -> Path:
    for name, text in tables.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def patients(reader: PatientTables, folder: Path) -> list[Patient]:
    return [each for each in reader.read_patients(folder) if isinstance(each, Patient)]


EICU = {
    "patient.csv": (
        "patientunitstayid,patienthealthsystemstayid,gender,age,ethnicity,hospitalid,"
        "apacheadmissiondx,hospitaldischargeyear,hospitaldischargestatus,unittype,"
        "unitvisitnumber,unitdischargestatus,uniquepid\n"
        "20,9,Female,> 89,Martian,59,Sepsis,2015,Expired,MICU,2,Alive,002-1\n"
        "10,9,Female,> 89,Martian,59,,2015,Expired,SICU,1,Alive,002-1\n"
        "30,8,Unknown,44,,60,Asthma,2014,Alive,MICU,1,Alive,003-7\n"
    ),
    "diagnosis.csv": (
        "diagnosisid,patientunitstayid,diagnosisoffset,diagnosisstring,icd9code,diagnosispriority\n"
        '1,10,5,"pulmonary|disorders of airways|COPD","491.20, J44.9",Primary\n'
        "2,10,7,renal|failure,,Other\n3,99,1,renal|failure,,Other\n,,,,,\n"
    ),
    "medication.csv": (
        "patientunitstayid,drugname,drugordercancelled\n10,ASPIRIN,No\n10,HEPARIN,Yes\n10,,No\n"
    ),
    "treatment.csv": "patientunitstayid,treatmentstring\n20,renal|dialysis|hemodialysis\n",
    "lab.csv": (
        "patientunitstayid,labresultoffset,labname,labresult,labmeasurenamesystem\n"
        "10,-5,BUN,31.0,mg/dL\n10,600,BUN,20.5,mg/dL\n10,60,BUN,40,mg/dL\n10,1,color,,\n"
    ),
    "physicalExam.csv": "patientunitstayid\n",
}


def test_an_eicu_person_has_its_stays_in_order_with_codes_of_both_versions(tmp_path: Path) -> None:
    asthma, woman = patients(Eicu(), write(tmp_path, EICU))[::-1]

    assert woman.sex == "female"
    assert (woman.age, woman.died, woman.code) == (OLDEST, True, "person:002-1")
    assert [(stay.kind, stay.reason, stay.day) for stay in woman.encounters] == [
        ("SICU", "", None),
        ("MICU", "Sepsis", None),
    ]
    assert woman.diagnoses == {icd_code("49120", "9"), icd_code("J449", "10")}
    assert {f.words for f in woman.facts if f.kind is FactKind.MEDICATION} == {"ASPIRIN"}
    assert {f.words for f in woman.facts if f.kind is FactKind.DIAGNOSIS} == {
        "disorders of airways, COPD",
        "renal, failure",
    }
    assert woman.labs == (Lab("BUN", "mg/dL", 3, 20.5, 40.0, 20.5, 1),)
    assert (asthma.sex, asthma.age, asthma.diagnoses) == ("", 44, frozenset())


def test_of_eicu_lost_rows_are_counted_and_ethnicity_is_not_told(tmp_path: Path) -> None:
    records = list(Eicu().parse_folder(write(tmp_path, EICU)))

    reasons = {record.reason for record in records if isinstance(record, Drop)}
    assert reasons == {"table not read", "malformed row", "stay not in stays"}
    assert "Martian" not in repr(records)


def test_a_row_with_more_cells_than_its_header_is_a_drop(tmp_path: Path) -> None:
    (tmp_path / "lab.csv").write_text("name,result\nUrea,1,200\nIron,5,\n")
    assert list(read_rows(tmp_path / "lab.csv")) == [
        Drop("lab.csv:2", "malformed row"),
        {"name": "Iron", "result": "5"},
    ]


OMOP = {
    "person.csv": (
        "person_id,gender_concept_id,year_of_birth,person_source_value,race_source_value,"
        "gender_source_value\n"
        "-77,8532,2090,MRN-1,Martian,F\n5,0,1900,MRN-2,,m\n"
    ),
    "visit_occurrence.csv": (
        "visit_occurrence_id,person_id,visit_start_datetime,visit_end_date\n"
        "-1,-77,2150-01-01 08:00:00,2150-01-04\n-2,-77,2150-03-01 08:00:00,2150-03-02\n"
    ),
    "condition_occurrence.csv": (
        "person_id,condition_concept_id,condition_start_date,visit_occurrence_id,"
        "condition_source_value,condition_source_concept_id\n"
        "-77,0,2150-01-01,-1,25000  ,0\n-77,0,2150-01-01,-1,E8788  ,0\n"
        "-77,0,2150-03-01,-2,E8788,0\n-77,0,2150-03-01,-2,I509,0\n"
        "5,201826,1990-05-05,,,0\n5,0,1990-05-05,,SR Sinus,0\n5,0,1990-05-05,,,0\n"
        "5,0,1990-05-05,,4019,44821949\n"
    ),
    "procedure_occurrence.csv": (
        "person_id,visit_occurrence_id,procedure_source_value,procedure_source_concept_id\n"
        "-77,-1,36830,2108296\n"
    ),
    "drug_exposure.csv": (
        "person_id,visit_occurrence_id,drug_source_value,drug_source_concept_id\n"
        "-77,-1,00002751001,0\n-77,-1,Aspirin vial,0\n"
    ),
    "measurement.csv": (
        "person_id,visit_occurrence_id,measurement_concept_id,value_as_number,"
        "measurement_date,unit_source_value\n"
        "-77,-1,3016723,1.5,2150-01-01,mg/dL\n-77,-1,3016723,1.1,2150-01-02,mg/dL\n"
    ),
    "death.csv": "person_id,death_date\n-77,2151-01-01\n",
    "condition_era.csv": "person_id\n",
    "note.csv": "person_id,note_text\n-77,Mrs Marks of Salem\n",
}
CONCEPT = (
    "concept_id,concept_name,domain_id,vocabulary_id,concept_code\n"
    "201826,Type 2 diabetes mellitus,Condition,SNOMED,44054006\n"
    "44821949,Unspecified essential hypertension,Condition,ICD9CM,401.9\n"
    "3016723,Creatinine,Measurement,LOINC,2160-0\n"
    "1,Of no use,Condition,SNOMED,1\n"
)


def test_omop_codes_are_told_apart_by_sight_and_by_their_visit(tmp_path: Path) -> None:
    woman, man = patients(Omop(), write(tmp_path, OMOP))

    assert woman.diagnoses == {
        icd_code("25000", "9"),
        icd_code("E8788", "9"),  # beside 250.00
        icd_code("E8788", "10"),  # beside I50.9
        icd_code("I509", "10"),
    }
    assert (woman.sex, woman.age, woman.died) == ("female", 59, True)
    assert woman.encounters == (
        Encounter(1, age=59, day=0, days=3),
        Encounter(2, age=59, day=59, days=1),
    )
    assert woman.labs == (Lab("concept 3016723", "mg/dL", 2, 1.1, 1.5, 1.1, 1),)
    assert [f.code for f in woman.facts if f.kind is FactKind.PROCEDURE] == [
        Code(CodeSystem.CPT, "36830")
    ]
    assert {f.code for f in woman.facts if f.kind is FactKind.MEDICATION} == {
        Code(CodeSystem.NDC, "00002751001"),
        Code(CodeSystem.LOCAL, "Aspirin-vial"),
    }
    assert (man.sex, man.age) == ("male", 89)
    assert man.diagnoses == {
        icd_code("4019", "9"),
        Code(CodeSystem.LOCAL, "SR-Sinus"),
        Code(CodeSystem.LOCAL, "concept-201826"),
    }


def test_with_the_vocabulary_omop_codes_have_names(tmp_path: Path) -> None:
    folder = write(tmp_path, {**OMOP, "concept.csv": CONCEPT})

    woman, man = patients(Omop(), folder)

    assert {(f.code, f.words) for f in man.facts if f.words} == {
        (Code(CodeSystem.SNOMED, "44054006"), "Type 2 diabetes mellitus"),
        (Code(CodeSystem.ICD9, "401.9"), "Unspecified essential hypertension"),
    }
    assert woman.labs[0].name == "Creatinine"


def test_parquet_tables_without_their_package_say_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("clif_patient", "clif_hospitalization"):
        (tmp_path / f"{name}.parquet").write_bytes(b"PAR1" + b"0" * 64 + b"PAR1")
    monkeypatch.setattr("osler.sources.formats.containers.find_spec", lambda _: None)
    (found,) = (one for one in discover([tmp_path]) if not isinstance(one, Drop))
    drops = list(read_records(found))
    assert [drop.reason for drop in drops if isinstance(drop, Drop)] == ["needs osler[parquet]"]


def test_omop_tables_in_parquet_say_what_they_say_in_csv(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason='needs the extra "osler[parquet]"')
    from pyarrow import parquet

    (tmp_path / "csv").mkdir()
    (tmp_path / "parquet").mkdir()
    write(tmp_path / "csv", OMOP)
    for name, text in OMOP.items():
        rows = list(csv.DictReader(StringIO(text)))
        columns = list(csv.DictReader(StringIO(text)).fieldnames or ())
        typed: dict[str, list[object]] = {
            column: [
                int(row[column]) if column.endswith("_id") and row[column] else row[column] or None
                for row in rows
            ]
            for column in columns
        }
        parquet.write_table(
            arrow.table(typed), tmp_path / "parquet" / name.replace(".csv", ".parquet")
        )

    assert patients(Omop(), tmp_path / "parquet") == patients(Omop(), tmp_path / "csv")


def test_of_omop_no_source_identifier_race_or_note_is_told(tmp_path: Path) -> None:
    told = repr(list(Omop().parse_folder(write(tmp_path, {**OMOP, "concept.csv": CONCEPT}))))

    for private in ("MRN", "Martian", "Marks", "Salem", "-77", "2150", "1990"):
        assert private not in told


SYNTHEA = {
    "patients.csv": (
        "Id,BIRTHDATE,DEATHDATE,SSN,FIRST,LAST,GENDER,ADDRESS,CITY,ZIP\n"
        "p-1,1960-05-05,,999-66-5642,Jackie93,Okuneva707,F,455 Labadie Underpass,Winchester,01890\n"
        "p-2,1990-01-01,2020-01-01,999-11-1111,Al,Doe1,M,1 Elm,Salem,01970\n"
    ),
    "encounters.csv": (
        "Id,START,STOP,PATIENT,ENCOUNTERCLASS,DESCRIPTION\n"
        "e-1,2000-01-18T13:01:59Z,2000-01-18T13:16:59Z,p-1,ambulatory,Visit of Jackie93\n"
    ),
    "conditions.csv": (
        "START,STOP,PATIENT,ENCOUNTER,CODE,DESCRIPTION\n"
        "2000-01-18,,p-1,e-1,10509002,Acute bronchitis (disorder)\n"
        "2000-01-20,,p-1,,10509002,Acute bronchitis (disorder)\n"
    ),
    "observations.csv": (
        "DATE,PATIENT,ENCOUNTER,CODE,DESCRIPTION,VALUE,UNITS,TYPE\n"
        "2000-01-18,p-1,e-1,1,Body weight,61.2,kg,numeric\n"
        "2000-01-18,p-1,e-1,2,Address,455 Labadie Underpass,,text\n"
    ),
    "allergies.csv": (
        "START,PATIENT,ENCOUNTER,CODE,SYSTEM,DESCRIPTION\n2000-01-18,p-1,e-1,1191,RxNorm,Aspirin\n"
    ),
    "careplans.csv": "Id\n",
    "organizations.csv": "Id\n",
}


def test_a_synthea_patient_is_a_life_with_ages_and_says_that_it_is_nobody_s(
    tmp_path: Path,
) -> None:
    records = list(Synthea().parse_folder(write(tmp_path, SYNTHEA)))
    documents = [record for record in records if isinstance(record, Document)]

    (document,) = documents
    assert document.illustrative
    assert document.kind == "Synthetic patient"
    assert [section.text for section in document.sections] == [
        "Patient: female, age 39 at the latest entry. Synthetic: the record of nobody."
        "\nMain diagnoses: Acute bronchitis (disorder).",
        "- Acute bronchitis (disorder) [SNOMED CT 10509002], at age 39",
        "- Aspirin [RxNorm 1191], at age 39",
        "- Body weight: 61.2 kg",
    ]
    told = repr(records)
    for private in ("Jackie", "Okuneva", "Labadie", "Winchester", "01890", "999-", "p-1", "1960"):
        assert private not in told
    assert [record.reason for record in records if isinstance(record, Drop)] == [
        "table not read",
        "no coded fact",
    ]


@pytest.mark.parametrize(("tables", "name"), [(EICU, "eicu"), (OMOP, "omop"), (SYNTHEA, "synthea")])
def test_each_database_is_told_by_its_tables(
    tables: dict[str, str], name: str, tmp_path: Path
) -> None:
    found = sniff_folder(write(tmp_path, tables))

    assert found is not None
    assert found.name == name
    assert by_name(name) is found


def test_laboratory_values_of_mimic_are_summed_up_under_their_names(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {
            "patients.csv": "subject_id,gender,anchor_age,anchor_year\n1,F,50,2150\n",
            "admissions.csv": "subject_id,hadm_id,admittime\n1,10,2150-01-01 00:00:00\n",
            "diagnoses_icd.csv": "subject_id,hadm_id,seq_num,icd_code,icd_version\n1,10,1,I10,10\n",
            "d_labitems.csv": "itemid,label\n50912,Creatinine\n",
            "labevents.csv": (
                "subject_id,hadm_id,itemid,charttime,valuenum,valueuom\n"
                "1,10,50912,2150-01-02,2.5,mg/dL\n1,10,50912,2150-01-01,1,mg/dL\n"
                "1,10,999,2150-01-01,7,\n1,,50912,2150-01-01,9,mg/dL\n1,10,50912,2150-01-01,,\n"
            ),
        },
    )
    (document,) = (r for r in Mimic().parse_folder(folder) if isinstance(r, Document))

    assert document.sections[-1].text == (
        "- Creatinine: last 2.5 mg/dL, 1 to 2.5 in 2 values\n- item 999: 7"
    )


ED = {
    "edstays.csv": (
        "subject_id,hadm_id,stay_id,intime,outtime,gender,race,arrival_transport,disposition\n"
        "7,,70,2150-01-01 10:00:00,2150-01-03 09:00:00,F,MARTIAN,ROCKET,ADMITTED\n"
        "7,,71,2150-03-01 10:00:00,2150-03-01 12:00:00,F,MARTIAN,WALK IN,EXPIRED\n"
        "8,,x,2150-01-01,,M,,,HOME\n"
    ),
    "diagnosis.csv": (
        "subject_id,stay_id,seq_num,icd_code,icd_version,icd_title\n"
        "7,70,1,J449,10,COPD\n7,70,2,49121,9,OLD COPD\n7,71,1,Z9,11,ODD\n7,70,3,,10,LOST\n"
    ),
    "triage.csv": (
        "subject_id,stay_id,temperature,heartrate,resprate,o2sat,sbp,dbp,pain,acuity,chiefcomplaint\n"
        "7,70,98.6,90,,97,120,80,call Ann,2.0,Dyspnea\n"
    ),
    "vitalsign.csv": (
        "subject_id,stay_id,charttime,temperature,heartrate,resprate,o2sat,sbp,dbp,rhythm,pain\n"
        "7,70,2150-01-01 11:00:00,,110,,,,,Sinus,\n"
    ),
    "pyxis.csv": "subject_id,stay_id,charttime,med_rn,name,gsn_rn,gsn\n7,70,,1,Albuterol,1,\n",
    "medrecon.csv": "subject_id,stay_id,charttime,name\n7,70,,Metformin\n7,70,,\n",
}


def test_emergency_stays_have_what_was_found_given_and_taken_before(tmp_path: Path) -> None:
    folder = write(tmp_path, ED)
    parser = sniff_folder(folder)
    assert isinstance(parser, MimicEd)

    [woman] = patients(parser, folder)

    assert (woman.id, woman.sex, woman.age, woman.died) == ("subject-7", "female", None, True)
    assert [(e.kind, e.day, e.days, e.died) for e in woman.encounters] == [
        ("emergency", 0, 2, False),
        ("emergency", 59, 0, True),
    ]
    assert woman.diagnoses == {
        icd_code("J449", "10"),
        icd_code("49121", "9"),
        Code(CodeSystem.LOCAL, "Z9"),
    }
    told = {(f.words, f.says) for f in woman.facts if f.kind is not FactKind.DIAGNOSIS}
    assert told == {
        ("chief complaint", "Dyspnea"),
        ("triage acuity", "2"),
        ("Albuterol", "given in the stay"),
        ("Metformin", "taken before the stay"),
    }
    assert Lab("heart rate", "/min", 2, 90.0, 110.0, 110.0, 1) in woman.labs
    assert "Ann" not in str(woman)
    drops = [d for d in parser.read_patients(folder) if isinstance(d, Drop)]
    assert [d.reason for d in drops] == ["malformed row"] * 3


CLIF = {
    "clif_patient.csv": (
        "patient_id,race_name,sex_category,birth_date,death_dttm,language_name\n"
        "p1,Martian,Female,1950-02-03,,Martian\np2,,Male,,2021-01-01 00:00:00+00:00,\n"
    ),
    "clif_hospitalization.csv": (
        "patient_id,hospitalization_id,admission_dttm,discharge_dttm,age_at_admission,"
        "admission_type_category,discharge_category,zipcode_five_digit\n"
        "p1,h1,2020-01-01 08:00:00+00:00,2020-01-05 08:00:00+00:00,69,ed,Home,99999\n"
        "p2,h2,2020-12-30 08:00:00+00:00,2021-01-01 00:00:00+00:00,91,ed,Expired,99999\n"
    ),
    "clif_hospital_diagnosis.csv": (
        "hospitalization_id,diagnosis_code,diagnosis_code_format,diagnosis_primary,poa_present\n"
        "h1,J449,ICD10CM,0,\nh1,5723,ICD9CM,1,\nh2,17,OTHER,1,\nh9,J449,ICD10CM,1,\nh1,,ICD10CM,1,\n"
    ),
    "clif_labs.csv": (
        "hospitalization_id,lab_collect_dttm,lab_name,lab_category,lab_value,lab_value_numeric,"
        "reference_unit\nh1,2020-01-01,pCO2,pco2,41,41.0,mmHg\nh1,2020-01-01,color,,red,,\n"
    ),
    "clif_vitals.csv": (
        "hospitalization_id,recorded_dttm,vital_name,vital_category,vital_value\n"
        "h1,2020-01-01,Weight,weight_kg,39.4\n"
    ),
    "clif_medication_admin_intermittent.csv": (
        "hospitalization_id,med_name,med_category,mar_action_category\n"
        "h1,Cefepime,cefepime,given\nh1,Aspirin,aspirin,not_given\n"
    ),
    "clif_adt.csv": "patient_id\np1\n",
}


def test_clif_s_facts_find_their_patient_through_the_hospitalisation(tmp_path: Path) -> None:
    folder = write(tmp_path, CLIF)
    parser = sniff_folder(folder)
    assert isinstance(parser, Clif)

    found = {p.sex: p for p in patients(parser, folder)}

    woman, man = found["female"], found["male"]
    assert woman.id.startswith("patient-")
    assert "p1" not in woman.id
    assert (woman.age, man.age, woman.died, man.died) == (69, OLDEST, False, True)
    assert woman.diagnoses == {icd_code("5723", "9"), icd_code("J449", "10")}
    assert [f.words for f in woman.facts if f.kind is FactKind.MEDICATION] == ["Cefepime"]
    assert {(lab.name, lab.unit, lab.last) for lab in woman.labs} == {
        ("pCO2", "mmHg", 41.0),
        ("weight_kg", "", 39.4),
    }
    assert "99999" not in str(found)
    assert "Martian" not in str(found)
    drops = [d for d in parser.read_patients(folder) if isinstance(d, Drop)]
    assert [d.reason for d in drops] == ["malformed row", "hospitalization not in hospitalizations"]


def test_a_header_whose_quotation_never_ends_is_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "lab.csv").write_text('"patient,value\n1,2\n')
    with pytest.raises(MalformedSource, match="damaged header"):
        list(read_rows(tmp_path / "lab.csv"))

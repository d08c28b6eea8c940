"""The public databases of patients: counts as their publishers have them, and no identifier."""

from __future__ import annotations

import csv
import json
import re
import tarfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from osler.kb.base import KnowledgeBase
from osler.kb.ingest.prepare import APART
from osler.sources.catalogue import EMR
from osler_serve.clinic.records.codes import CodeSystem
from osler_serve.clinic.records.eicu import Clif, Eicu
from osler_serve.clinic.records.mimic import Mimic, MimicEd, Synthea
from osler_serve.clinic.records.omop import Omop
from osler_serve.clinic.records.patient import FactKind, Patient
from osler_serve.clinic.records.patient_document import document_of, profile_of
from osler_serve.clinic.records.patient_tables import PatientTables
from osler_serve.clinic.records.similar import Cohort

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "D_emr"


def there(place: str) -> Path:
    if not (DATA / place).exists():
        pytest.skip(f"the public test data is not here: {DATA / place}")
    return DATA / place


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def read(reader: PatientTables, place: str) -> list[Patient]:
    return [each for each in reader.read_patients(there(place)) if isinstance(each, Patient)]


@pytest.mark.parametrize(
    ("reader", "place", "patients", "encounters"),
    [
        (Mimic(), "mimic3_demo", 50, 61),
        (Mimic(), "mimic4_hosp_shaped/hosp", 49, 152),
        (MimicEd(), "mimic4ed_shaped/ed", 35, 43),
        (Eicu(), "eicu_demo", 61, 110),
        (Omop(), "mimic4_demo_omop", 49, 406),
        (Synthea(), "synthea_csv", 13, 386),
        pytest.param(
            *(Clif(), "clif_parquet", 49, 170),
            marks=pytest.mark.skipif(find_spec("pyarrow") is None, reason="needs osler[parquet]"),
        ),
    ],
)
def test_every_patient_and_every_encounter_is_read(
    reader: PatientTables, place: str, patients: int, encounters: int
) -> None:
    found = read(reader, place)

    assert len(found) == patients
    assert sum(len(each.encounters) for each in found) == encounters
    for each in found:
        document = document_of(each)
        profile = profile_of(each.id, document.sections, document.title)
        assert (profile.codes, profile.age, profile.sex) == (each.diagnoses, each.age, each.sex)


def test_of_mimic_3_every_coded_diagnosis_comes_through() -> None:
    table = rows(there("mimic3_demo") / "DIAGNOSES_ICD.csv")
    distinct = {(r["subject_id"], r["hadm_id"], r["icd9_code"]) for r in table}

    facts = [
        fact
        for each in read(Mimic(), "mimic3_demo")
        for fact in each.facts
        if fact.kind is FactKind.DIAGNOSIS
    ]

    assert len(table) == 815
    assert len(facts) == len(distinct)


def test_of_eicu_every_code_that_is_one_comes_through() -> None:
    """Counted without the reader: codes with a dot or three digits, split at commas."""
    table = rows(there("eicu_demo") / "diagnosis.csv")
    stays = {
        r["patientunitstayid"]: r["uniquepid"] for r in rows(DATA / "eicu_demo" / "patient.csv")
    }
    written = {
        (stays[r["patientunitstayid"]], code.strip())
        for r in table
        for code in r["icd9code"].split(",")
        if code.strip()
    }

    found = {
        (each.code.removeprefix("person:"), code.value)
        for each in read(Eicu(), "eicu_demo")
        for code in each.diagnoses
    }

    assert found == written
    assert len(table) == 896


def test_omop_s_codes_are_those_of_the_tables_that_were_rebuilt_from_it() -> None:
    """The rebuilt tables name each code's version; where the code tells its own, ours agrees."""
    rebuilt = rows(there("mimic4_hosp_shaped") / "hosp" / "diagnoses_icd.csv")
    theirs = {(r["icd_code"], r["icd_version"]) for r in rebuilt if r["icd_code"][0] not in "EV"}

    ours = {
        (code.value.replace(".", ""), "9" if code.system is CodeSystem.ICD9 else "10")
        for each in read(Omop(), "mimic4_demo_omop")
        for code in each.diagnoses
        if code.system in (CodeSystem.ICD9, CodeSystem.ICD10) and code.value[0] not in "EV"
    }

    assert len(ours) > 400
    assert ours <= theirs


def values(thing: Any) -> Iterator[str]:
    match thing:
        case str():
            yield thing
        case list():
            for each in thing:
                yield from values(each)
        case dict():
            for each in thing.values():
                yield from values(each)


def synthea_identifiers() -> set[str]:
    names = (
        "Id BIRTHDATE DEATHDATE SSN DRIVERS PASSPORT FIRST LAST MAIDEN ADDRESS CITY COUNTY ZIP"
        " LAT LON BIRTHPLACE"
    )
    table = rows(there("synthea_csv") / "patients.csv")
    return {row[name] for row in table for name in names.split() if row.get(name)}


def fhir_identifiers() -> set[str]:
    found: set[str] = set()
    with tarfile.open(there("synthea_fhir_r4") / "bundles.tar.gz") as archive:
        for member in archive:
            found.add(Path(member.name).stem)
            file = archive.extractfile(member)
            assert file is not None
            for entry in json.load(file)["entry"]:
                resource = entry["resource"]
                if resource["resourceType"] == "Patient":
                    for name in ("id", "birthDate", "telecom", "address", "identifier", "name"):
                        found.update(values(resource.get(name, "")))
    public = {"official", "usual", "home", "phone", "maiden", "US", "MR", "Mr.", "Mrs.", "Ms."}
    return {each for each in found if len(each) > 3 and "://" not in each} - public


# Words of identifiers' kinds, and names that are also words of medicine or of codes.
PUBLIC = {"Medical Record Number", "Social Security Number", "Driver's License", "Passport Number"}


def test_no_direct_identifier_is_in_any_byte_of_the_knowledge_base(tmp_path: Path) -> None:
    private = (synthea_identifiers() | fhir_identifiers()) - PUBLIC
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        added = kb.add([there("synthea_csv")], source=EMR)
        bundles = kb.add([there("synthea_fhir_r4") / "bundles.tar.gz"], source=EMR)
        again = kb.add([DATA / "synthea_fhir_r4"], source=EMR)
        assert (again.documents, again.drops) == (0, {APART: 1})
        kb.build(None)
    assert (added.documents, bundles.documents) == (13, 5)
    stored = b"".join(p.read_bytes() for p in (tmp_path / "kb").iterdir() if p.is_file())

    assert len(private) > 150
    assert b"Acute bronchitis" in stored
    # Five digits of a town come up by chance in the hex digits of a key and of pseudonyms, which
    # are others in each run.
    plain = re.sub(rb"[0-9a-f]{16,}", b"|", stored)
    leaked = {each for each in private if each.encode() in (plain if len(each) < 8 else stored)}
    assert leaked == set()


def test_real_patients_find_themselves_first() -> None:
    found = read(Mimic(), "mimic3_demo")
    profiles = []
    for each in found:
        document = document_of(each)
        profiles.append(profile_of(each.id, document.sections, document.title))
    cohort = Cohort(profiles)

    for profile in profiles:
        best = cohort.find_nearest(profile, k=3)
        assert (best[0].id, best[0].score) == (profile.id, 1.0)
        assert all(0 < each.score < 1 for each in best[1:])

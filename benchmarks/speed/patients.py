"""Similar patients: how long a cohort takes to read, and a search in it.

    python benchmarks/speed/patients.py [PATIENTS]

Patients are made up: 5 to 25 diagnoses each from 6,000 codes of ICD-9-CM, frequent ones as often
as in hospitals (a Zipf law). Read: from the passages of a knowledge base on disk.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from osler.kb.base import KnowledgeBase
from osler.retrieve.patients import PatientIndex
from osler.sources.patients.codes import icd_code
from osler.sources.patients.patient_document import PatientProfile
from osler.sources.patients.similar import Cohort

SEARCHES = 100


def tables(folder: Path, patients: int, rng: random.Random) -> None:
    """MIMIC-IV's three tables."""
    codes = [f"{n:03}{m}" for n in range(1, 1000) for m in range(6)]
    weights = [1 / (rank + 10) for rank in range(len(codes))]
    rng.shuffle(codes)
    people = ["subject_id,gender,anchor_age,anchor_year"]
    stays, facts = (
        ["subject_id,hadm_id,admittime"],
        ["subject_id,hadm_id,seq_num,icd_code,icd_version"],
    )
    for subject in range(1, patients + 1):
        people.append(f"{subject},{rng.choice('FM')},{rng.randint(18, 91)},2150")
        stays.append(f"{subject},{subject},2150-01-01 00:00:00")
        for seq, code in enumerate(rng.choices(codes, weights, k=rng.randint(5, 25)), 1):
            facts.append(f"{subject},{subject},{seq},{code},9")
    for name, rows in (("patients", people), ("admissions", stays), ("diagnoses_icd", facts)):
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def main() -> None:
    patients = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "mimic"
        folder.mkdir()
        tables(folder, patients, rng)
        with KnowledgeBase.create(Path(place) / "kb") as kb:
            begun = time.perf_counter()
            kb.add([folder], source="emr")
            added = time.perf_counter() - begun
            kb.build(None)
            begun = time.perf_counter()
            cohort = PatientIndex(kb).load_snapshot().cohort
            read = time.perf_counter() - begun
    print(f"patients                {len(cohort):>10,}")
    print(f"added, seconds          {added:>10.1f}")
    print(f"cohort read, seconds    {read:>10.1f}")
    print(f"search, median ms       {1000 * median(searches(cohort, rng)):>10.2f}")


def searches(cohort: Cohort, rng: random.Random) -> list[float]:
    taken = []
    for _ in range(SEARCHES):
        codes = frozenset(
            icd_code(f"{rng.randint(1, 999):03}{rng.randint(0, 5)}", "9") for _ in range(8)
        )
        begun = time.perf_counter()
        found = cohort.find_nearest(PatientProfile("q", codes, 60, "female"), k=10)
        taken.append(time.perf_counter() - begun)
        assert len(found) == 10
    return taken


if __name__ == "__main__":
    main()

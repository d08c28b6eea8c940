"""The likeness of three patients, worked by hand."""

from __future__ import annotations

import math

import pytest
from likeness import score_profiles

from osler_serve.clinic.records.codes import Code, CodeLevel, CodeSystem, icd_code
from osler_serve.clinic.records.crosswalk import CodeMapping, Crosswalk
from osler_serve.clinic.records.patient_document import PatientProfile
from osler_serve.clinic.records.similar import Cohort, DiagnosisMatch

A = PatientProfile("a", frozenset({icd_code("4019", "9")}), 60, "female")
B = PatientProfile("b", frozenset({icd_code("4019", "9"), icd_code("4280", "9")}), 80, "male")
C = PatientProfile("c", frozenset({icd_code("4010", "9")}), 60, "female")


def test_two_patients_share_one_of_two_diagnoses() -> None:
    """N = 3. Places: 401.9 (a, b: 2), 401 (all: 3), 401-405 (3), 390-459 (3), 428.0 (b: 1),
    428 (1), 420-429 (1), 401.0 (c: 1).

    w(401.9) = ln(1 + 3/2) = 0.916291; w(401) = 0.5 ln 2 = 0.346574;
    w(401-405) = 0.25 ln 2 = 0.173287; w(390-459) = 0.1 ln 2 = 0.069315;
    w(428.0) = ln 4 = 1.386294; w(428) = 0.5 ln 4 = 0.693147; w(420-429) = 0.25 ln 4 = 0.346574.

    a and b share 401.9, 401, 401-405 and 390-459: 1.505466. The union adds 428.0, 428 and
    420-429: 1.505466 + 2.426015 = 3.931481. Their ages differ by 20 of 40 years, and so do
    their sexes: 1 - 0.3 / 2 - 0.2 = 0.65. 1.505466 / 3.931481 * 0.65 = 0.248902.
    """
    cohort = Cohort([A, B, C])

    assert cohort.weight_of((CodeLevel.CODE, "ICD-9-CM 401.9")) == pytest.approx(0.916291, abs=1e-6)
    assert cohort.weight_of((CodeLevel.BLOCK, "ICD-9-CM 420-429")) == pytest.approx(
        0.346574, abs=1e-6
    )
    assert score_profiles(cohort, A, B) == pytest.approx(0.248902, abs=1e-6)


def test_two_codes_of_one_category_are_partly_alike() -> None:
    """a and c share 401, 401-405 and 390-459 (0.589176) of these and 401.9 and 401.0
    (0.916291 + 1.386294): 0.589176 / 2.891761 = 0.203743."""
    assert score_profiles(Cohort([A, B, C]), A, C) == pytest.approx(0.203743, abs=1e-6)


def test_the_nearest_say_which_codes_are_alike() -> None:
    found = Cohort([A, B, C]).find_nearest(A, k=3)

    assert [each.id for each in found] == ["a", "b", "c"]
    assert found[0].score == pytest.approx(1.0)
    assert found[0].matches == (
        DiagnosisMatch(icd_code("4019", "9"), icd_code("4019", "9"), CodeLevel.CODE),
    )
    assert found[2].matches == (
        DiagnosisMatch(icd_code("4019", "9"), icd_code("4010", "9"), CodeLevel.CATEGORY),
    )


def test_a_rare_diagnosis_tells_more_than_a_frequent_one() -> None:
    many = [PatientProfile(f"m{n}", frozenset({icd_code("4019", "9")})) for n in range(50)]
    rare = PatientProfile("rare", frozenset({icd_code("2554", "9")}))

    asked = PatientProfile("q", frozenset({icd_code("4019", "9"), icd_code("2554", "9")}))
    best = Cohort([*many, rare]).find_nearest(asked, k=2)

    assert best[0].id == "rare"
    assert best[0].score > 2 * best[1].score


def test_after_translation_records_of_both_vocabularies_are_compared() -> None:
    old = PatientProfile("old", frozenset({icd_code("25000", "9")}))
    new = PatientProfile("new", frozenset({icd_code("E119", "10")}))
    snomed = PatientProfile("snomed", frozenset({Code(CodeSystem.SNOMED, "44054006")}))
    walk = Crosswalk()
    walk.add_mapping(CodeMapping(icd_code("E119", "10"), icd_code("25000", "9"), approximate=True))

    apart, together = Cohort([old, new, snomed]), Cohort([old, new, snomed], walk)

    assert score_profiles(apart, old, new) == 0
    assert score_profiles(together, old, new) == 1
    assert (apart.unmapped[CodeSystem.ICD10], together.unmapped[CodeSystem.ICD10]) == (1, 0)
    assert together.unmapped == {CodeSystem.SNOMED: 1}
    (best, *_) = together.find_nearest(
        PatientProfile("q", frozenset({icd_code("E119", "10")})), k=1
    )
    assert best.matches == (
        DiagnosisMatch(icd_code("E119", "10"), icd_code("E119", "10"), CodeLevel.CODE),
    )


def test_patient_without_a_diagnosis_is_like_nobody() -> None:
    assert Cohort([PatientProfile("x"), A]).find_nearest(PatientProfile("q", age=60), k=5) == []
    assert Cohort([]).find_nearest(A, k=5) == []
    assert len(Cohort([PatientProfile("x"), A])) == 1
    assert math.isclose(score_profiles(Cohort([A]), A, A), 1.0)

"""Likeness of patients: symmetric, in [0, 1], 1 for equals, monotone; the search is exact."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from likeness import score_profiles

from osler_serve.clinic.records.codes import Code, CodeSystem, code_lineage
from osler_serve.clinic.records.patient_document import PatientProfile
from osler_serve.clinic.records.similar import Cohort

CODES = [
    *(Code(CodeSystem.ICD9, v) for v in ("250.00", "250.02", "401.9", "428.0", "V58.61", "038.9")),
    *(Code(CodeSystem.ICD10, v) for v in ("E11.9", "E11.65", "I10", "I50.9", "A41.9")),
    Code(CodeSystem.SNOMED, "44054006"),
]
sets = st.frozensets(st.sampled_from(CODES), max_size=6)
profiles = st.builds(
    PatientProfile,
    st.uuids().map(str),
    sets,
    st.none() | st.integers(0, 90),
    st.sampled_from(["", "female", "male", "other"]),
)
cohorts = st.lists(profiles, max_size=5).map(Cohort)


@given(cohorts, profiles, profiles)
def test_likeness_is_symmetric_and_between_0_and_1(
    cohort: Cohort, one: PatientProfile, other: PatientProfile
) -> None:
    score = score_profiles(cohort, one, other)
    assert score == score_profiles(cohort, other, one)
    assert 0 <= score <= 1


@given(cohorts, profiles)
def test_equal_patients_have_likeness_1(cohort: Cohort, one: PatientProfile) -> None:
    assert score_profiles(cohort, one, one) == (1.0 if one.codes else 0.0)


@given(cohorts, profiles, profiles)
def test_likeness_is_0_for_nothing_in_common_and_more_for_something(
    cohort: Cohort, one: PatientProfile, other: PatientProfile
) -> None:
    first = {node for code in one.codes for node in code_lineage(code)}
    second = {node for code in other.codes for node in code_lineage(code)}
    assert (score_profiles(cohort, one, other) > 0) == bool(first & second)


@given(cohorts, profiles, profiles, st.sampled_from(CODES))
def test_a_diagnosis_that_both_get_never_lowers_it(
    cohort: Cohort, one: PatientProfile, other: PatientProfile, code: Code
) -> None:
    before = score_profiles(cohort, one, other)
    both = [PatientProfile(p.id, p.codes | {code}, p.age, p.sex) for p in (one, other)]
    assert score_profiles(cohort, *both) >= before - 1e-12


@given(cohorts, profiles, profiles, st.sampled_from(CODES))
def test_a_diagnosis_of_one_alone_that_shares_nothing_never_raises_it(
    cohort: Cohort, one: PatientProfile, other: PatientProfile, code: Code
) -> None:
    theirs = {node for each in other.codes for node in code_lineage(each)}
    assume(not theirs & set(code_lineage(code)))
    more = PatientProfile(one.id, one.codes | {code}, one.age, one.sex)
    assert score_profiles(cohort, more, other) <= score_profiles(cohort, one, other) + 1e-12


ages = st.integers(0, 90)


@given(cohorts, profiles, profiles, ages, ages, ages)
def test_nearer_in_age_is_never_less_alike(
    cohort: Cohort, one: PatientProfile, other: PatientProfile, own: int, this: int, that: int
) -> None:
    near, far = sorted((this, that), key=lambda age: abs(age - own))
    asked = PatientProfile(one.id, one.codes, own, one.sex)
    at = [PatientProfile(other.id, other.codes, age, other.sex) for age in (near, far)]
    assert score_profiles(cohort, asked, at[0]) >= score_profiles(cohort, asked, at[1])


@given(st.lists(profiles, max_size=8), profiles, st.integers(1, 20))
def test_the_search_finds_what_comparing_with_everybody_finds(
    everybody: list[PatientProfile], query: PatientProfile, k: int
) -> None:
    cohort = Cohort(everybody)
    scored = sorted((-score_profiles(cohort, query, each), each.id) for each in everybody)
    expected = [-score for score, _ in scored if score < 0][:k]

    found = cohort.find_nearest(query, k=k)

    by_id = {each.id: each for each in everybody}
    assert [each.score for each in found] == pytest.approx(expected, abs=1e-11)
    assert [score_profiles(cohort, query, by_id[each.id]) for each in found] == pytest.approx(
        expected, abs=1e-11
    )

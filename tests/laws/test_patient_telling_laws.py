"""A patient is told in passages, and the passages give back what is compared."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from osler.kb.ingest.chunk import document_passages
from osler_serve.clinic.records.codes import Code, CodeSystem
from osler_serve.clinic.records.patient import Encounter, Fact, FactKind, Patient
from osler_serve.clinic.records.patient_document import document_of, list_entries, profile_of

codes = st.builds(
    Code,
    st.sampled_from([CodeSystem.ICD9, CodeSystem.ICD10, CodeSystem.SNOMED, CodeSystem.LOCAL]),
    st.from_regex(r"\A[A-Z0-9][A-Z0-9.-]{0,9}\Z"),
)
hostile = st.sampled_from(
    [
        "",
        "Sepsis",
        "Fall from [ICD-9-CM 1]",
        "x: y",
        "a, at age 5",
        "高血压",
        "- list",
        "z" * 300,
        "ICD-9-CM 4",
        "[ICD-9-CM 1]",
    ]
) | st.text(max_size=30)
facts = st.builds(
    Fact,
    st.sampled_from(list(FactKind)),
    hostile,
    st.none() | codes,
    st.none() | st.integers(1, 2),
    st.integers(0, 9),
    st.none() | st.integers(0, 90),
    st.sampled_from(["", "active", "120.5 mm[Hg]", "see [ICD-9-CM 7]"]),
)
patients = st.builds(
    lambda sex, age, told, by_stay: Patient(
        "p", sex, age, (Encounter(1), Encounter(2)), tuple(told), by_stay=by_stay
    ),
    st.sampled_from(["", "female", "male", "other"]),
    st.none() | st.integers(0, 90),
    st.lists(facts, max_size=10),
    st.booleans(),
)


def told(patient: Patient) -> frozenset[Code]:
    """Hospitals rank diagnoses, doctors keep a list of conditions: each is told in its own way."""
    kept = {FactKind.DIAGNOSIS} if patient.by_stay else {FactKind.CONDITION}
    return frozenset(
        fact.code
        for fact in patient.facts
        if fact.code and (fact.kind in kept or (patient.by_stay and fact.encounter is None))
        if fact.kind in (FactKind.DIAGNOSIS, FactKind.CONDITION)
    )


@given(patients)
def test_passages_give_back_diagnoses_age_and_sex(patient: Patient) -> None:
    document = document_of(patient)
    profile = profile_of("p", list(document_passages(document, "emr")), document.title)

    assert profile.codes == told(patient)
    assert (profile.age, profile.sex) == (patient.age, patient.sex)


@given(patients)
def test_every_line_fits_into_a_passage(patient: Patient) -> None:
    for section in document_of(patient).sections:
        assert all(len(line) <= 1000 for line in section.text.splitlines())
    assert len(document_of(patient).sections[0].text) <= 1000


@given(patients)
def test_every_entry_points_at_the_line_that_it_was_read_from(patient: Patient) -> None:
    kept = {each.id: each for each in document_passages(document_of(patient), "emr")}
    found = list(list_entries(kept.values()))

    assert all(kept[each.passage].text[each.start : each.end] == each.text for each in found)
    codes = {each.code for each in found if each.resource == "Condition" and each.code}
    assert codes == {str(code) for code in told(patient)}

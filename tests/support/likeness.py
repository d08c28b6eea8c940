"""The likeness of two patients by its definition (`osler_serve.clinic.records.similar`)."""

from __future__ import annotations

import math

from osler_serve.clinic.records.patient_document import PatientProfile
from osler_serve.clinic.records.similar import AGE_LOSS, AGE_SPAN, SEX_LOSS, Cohort


def score_profiles(cohort: Cohort, one: PatientProfile, other: PatientProfile) -> float:
    """The score of any two profiles with the weights of the cohort, to 12 decimals."""
    first, second = (cohort._nodes_of(each.codes)[0] for each in (one, other))
    every = math.fsum(map(cohort.weight_of, first | second))
    both = math.fsum(map(cohort.weight_of, first & second))
    return round(both / every * _demographic_closeness(one, other), 12) if every else 0.0


def _demographic_closeness(one: PatientProfile, other: PatientProfile) -> float:
    """The factor by which age and sex lower a score, in [0.5, 1]."""
    close = 1.0
    if one.age is not None and other.age is not None:
        close -= AGE_LOSS * min(1.0, abs(one.age - other.age) / AGE_SPAN)
    if one.sex and other.sex and one.sex != other.sex:
        close -= SEX_LOSS
    return close

"""Marks of citations: what a model writes and an answer shows, a patient's record apart."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Three digits at most: "[2023]" is a year or a reference, not a citation.
CITATION_MARK = re.compile(r"\s*[\[［【](\d{1,3})[\]］】]")
"""A citation in a model's text, with the space before it; full-width brackets are accepted."""

EMR, PATIENT, SYNTHETIC = "emr", "Patient", "Synthetic patient"
"""The source of patients' records, and the kinds by which the formats mark them."""


def citation_mark(number: int) -> str:
    """The mark that cites evidence `number`, from 1, in answers and prompts: "[3]".

    `CITATION_MARK` reads what this renders; prompts write it as `cite(1)`.
    """
    return f"[{number}]"


def is_patients(source: str, kind: str) -> bool:
    """Whether it is a patient's record: by its place, or by its mark wherever it lies."""
    return source == EMR or kind in (PATIENT, SYNTHETIC)


def mark_series(are_records: Iterable[bool]) -> tuple[str, ...]:
    """The marks of pieces of evidence, in two series that each count from 1: "[R1]" of a patient's
    record, "[1]" of what is known of all patients."""
    counts, marks = {True: 0, False: 0}, []
    for is_record in are_records:
        counts[is_record] += 1
        number = counts[is_record]
        marks.append(f"[R{number}]" if is_record else citation_mark(number))
    return tuple(marks)

"""eICU Collaborative Research Database: one document a person, from a folder of CSV tables.

The folder is one unit: `patient` and `diagnosis` must be there, `medication`, `treatment` and
`lab` may be. An encounter is a stay in an intensive care unit. Times are minutes from the
beginning of the stay, so no dates can come in; ethnicity, hospital and ward are left out, and
"> 89" becomes "90 or over". `physicalExam`, `admissionDx` and notes are not read.
"""

from __future__ import annotations

from osler.sources.formats.cohort import (
    Made,
    PatientTables,
    TableLayout,
    digits_in,
    fact_row,
    first_value,
    parse_decimal,
    published_id,
)
from osler.sources.formats.scratch import Values
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, icd_code, version_of
from osler.sources.patients.patient import OLDEST, FactKind

_RANKS = {"primary": "1", "major": "2", "other": "3"}


class Eicu(PatientTables):
    """Stays have no subject in the tables of facts: `person` is found through the stay."""

    def __init__(self) -> None:
        super().__init__(
            TableLayout(
                name="eicu",
                title="eICU",
                required=("patient", "diagnosis"),
                read={
                    "patient": _stay_rows,
                    "diagnosis": _diagnosis_rows,
                    "treatment": _treatment_rows,
                    "medication": _drug_rows,
                    "lab": _reading_rows,
                },
                person="person",
                visit="stay",
                stay="stay",
                joins_by_visit=True,
            )
        )


def _stay_rows(row: Row) -> Made:
    stay, person = digits_in(row, "patientunitstayid"), first_value(row, "uniquepid")
    if not (stay and person):
        return None
    sex = {"female": "female", "male": "male", "other": "other"}.get(
        row.get("gender", "").strip().lower(), ""
    )
    age = first_value(row, "age")
    age = str(OLDEST) if age.startswith(">") else age
    # Stays have no date; the year, the hospital stay and the visit number give their order.
    order = "-".join(
        first_value(row, name).rjust(12, "0")
        for name in ("hospitaldischargeyear", "patienthealthsystemstayid", "unitvisitnumber")
    )
    expired = "expired" in {
        row.get("hospitaldischargestatus", "").strip().lower(),
        row.get("unitdischargestatus", "").strip().lower(),
    }
    reason, kind = first_value(row, "apacheadmissiondx"), first_value(row, "unittype")
    visit: Values = (person, stay, order, "", kind, reason, age, "1" if expired else "0")
    made: list[tuple[str, Values]] = [
        ("person", (person, *published_id("person", person), sex, "", "", "")),
        ("visit", visit),
    ]
    return [*made, ("death", (person,))] if expired else made


def _diagnosis_rows(row: Row) -> Made:
    """A cell holds codes of both versions for one diagnosis ("491.20, J44.9"), or none."""
    stay = digits_in(row, "patientunitstayid")
    path = [part.strip() for part in first_value(row, "diagnosisstring").split("|") if part.strip()]
    if not (stay and path):
        return None
    seq = _RANKS.get(row.get("diagnosispriority", "").strip().lower(), "4")
    words = ", ".join(path[-2:])
    codes: list[Code | None] = [
        icd_code(part, version)
        for part in row.get("icd9code", "").split(",")
        if (version := version_of(part.strip()))
    ]
    return [
        fact_row("", stay, FactKind.DIAGNOSIS, code, words=words, seq=seq)
        for code in codes or [None]
    ]


def _treatment_rows(row: Row) -> Made:
    stay = digits_in(row, "patientunitstayid")
    path = [part.strip() for part in first_value(row, "treatmentstring").split("|") if part.strip()]
    return (
        [fact_row("", stay, FactKind.PROCEDURE, words=", ".join(path[-2:]))]
        if stay and path
        else None
    )


def _drug_rows(row: Row) -> Made:
    stay, drug = digits_in(row, "patientunitstayid"), first_value(row, "drugname")
    if not stay:
        return None
    if not drug or first_value(row, "drugordercancelled").lower() == "yes":
        return ()  # eICU leaves the name out where it could identify, and keeps cancelled orders
    return [fact_row("", stay, FactKind.MEDICATION, words=drug)]


def _reading_rows(row: Row) -> Made:
    stay, name = digits_in(row, "patientunitstayid"), first_value(row, "labname")
    if not (stay and name):
        return None
    value = parse_decimal(row.get("labresult", ""))
    if value is None:
        return ()  # a text result
    unit = first_value(row, "labmeasurenamesystem", "labmeasurenameinterface")
    offset = row.get("labresultoffset", "").strip()
    # Sorted as text: minutes before the stay come before those within it.
    minutes = int(offset) if offset.lstrip("-").isdecimal() else 0
    return [("reading", ("", stay, name, unit, f"{minutes + 10**9:012d}", value))]

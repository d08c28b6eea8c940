"""eICU Collaborative Research Database: one document a person, from a folder of CSV tables.

The folder is one unit: `patient` and `diagnosis` must be there, `medication`, `treatment` and
`lab` may be. An encounter is a stay in an intensive care unit. Times are minutes from the
beginning of the stay, so no dates can come in; ethnicity, hospital and ward are left out, and
"> 89" becomes "90 or over". `physicalExam`, `admissionDx` and notes are not read.
"""

from __future__ import annotations

from osler.sources.formats.cohort import (
    Layout,
    Made,
    TablesOfPatients,
    decimal,
    fact,
    known,
    number,
    published,
)
from osler.sources.formats.scratch import Values
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, icd, version_of
from osler.sources.patients.patient import OLDEST, Kind

_RANKS = {"primary": "1", "major": "2", "other": "3"}


class Eicu(TablesOfPatients):
    """Stays have no subject in the tables of facts: `person` is found through the stay."""

    def __init__(self) -> None:
        super().__init__(
            Layout(
                name="eicu",
                title="eICU",
                required=("patient", "diagnosis"),
                read={
                    "patient": _stay,
                    "diagnosis": _diagnosis,
                    "treatment": _treatment,
                    "medication": _drug,
                    "lab": _reading,
                },
                person="person",
                visit="stay",
                stay="stay",
                joins_by_visit=True,
            )
        )


def _stay(row: Row) -> Made:
    stay, person = number(row, "patientunitstayid"), known(row, "uniquepid")
    if not (stay and person):
        return None
    sex = {"female": "female", "male": "male", "other": "other"}.get(
        row.get("gender", "").strip().lower(), ""
    )
    age = known(row, "age")
    age = str(OLDEST) if age.startswith(">") else age
    # Stays have no date; the year, the hospital stay and the visit number give their order.
    order = "-".join(
        known(row, name).rjust(12, "0")
        for name in ("hospitaldischargeyear", "patienthealthsystemstayid", "unitvisitnumber")
    )
    expired = "expired" in {
        row.get("hospitaldischargestatus", "").strip().lower(),
        row.get("unitdischargestatus", "").strip().lower(),
    }
    reason, kind = known(row, "apacheadmissiondx"), known(row, "unittype")
    visit: Values = (person, stay, order, "", kind, reason, age, "1" if expired else "0")
    made: list[tuple[str, Values]] = [
        ("person", (person, *published("person", person), sex, "", "", "")),
        ("visit", visit),
    ]
    return [*made, ("death", (person,))] if expired else made


def _diagnosis(row: Row) -> Made:
    """A cell holds codes of both versions for one diagnosis ("491.20, J44.9"), or none."""
    stay = number(row, "patientunitstayid")
    path = [part.strip() for part in known(row, "diagnosisstring").split("|") if part.strip()]
    if not (stay and path):
        return None
    seq = _RANKS.get(row.get("diagnosispriority", "").strip().lower(), "4")
    words = ", ".join(path[-2:])
    codes: list[Code | None] = [
        icd(part, version)
        for part in row.get("icd9code", "").split(",")
        if (version := version_of(part.strip()))
    ]
    return [fact("", stay, Kind.DIAGNOSIS, code, words=words, seq=seq) for code in codes or [None]]


def _treatment(row: Row) -> Made:
    stay = number(row, "patientunitstayid")
    path = [part.strip() for part in known(row, "treatmentstring").split("|") if part.strip()]
    return [fact("", stay, Kind.PROCEDURE, words=", ".join(path[-2:]))] if stay and path else None


def _drug(row: Row) -> Made:
    stay, drug = number(row, "patientunitstayid"), known(row, "drugname")
    if not stay:
        return None
    if not drug or known(row, "drugordercancelled").lower() == "yes":
        return ()  # eICU leaves the name out where it could identify, and keeps cancelled orders
    return [fact("", stay, Kind.MEDICATION, words=drug)]


def _reading(row: Row) -> Made:
    stay, name = number(row, "patientunitstayid"), known(row, "labname")
    if not (stay and name):
        return None
    value = decimal(row.get("labresult", ""))
    if value is None:
        return ()  # a text result
    unit = known(row, "labmeasurenamesystem", "labmeasurenameinterface")
    offset = row.get("labresultoffset", "").strip()
    # Sorted as text: minutes before the stay come before those within it.
    minutes = int(offset) if offset.lstrip("-").isdecimal() else 0
    return [("reading", ("", stay, name, unit, f"{minutes + 10**9:012d}", value))]

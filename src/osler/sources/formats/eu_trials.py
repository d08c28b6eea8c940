"""Trial registrations of the EU Clinical Trials Register, in its two downloads of plain text.

"Summary details" has a line for each field; "full trial details" numbers its fields as the
application form does (A.3, E.5.1), once for each country. A trial without a date of its own has no
year: the day on which its record was entered is not one. A trial that also stands in
ClinicalTrials.gov names its NCT number, so that a search for it finds both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from osler.sources.formats.noise import finish_document
from osler.sources.formats.reading import utf8_lines, year_in
from osler.sources.records import Document, Drop, Record, Section
from osler.text import make_slug, one_line

_FIRST = "EudraCT Number"
_NUMBER = re.compile(r"(?:19|20)\d\d-\d{6}-\d\d")
_HEAD = re.compile(rb"^\s*EudraCT Number:\s*(?:19|20)\d\d-\d{6}-\d\d\b", re.MULTILINE)
_LICENCE = "EMA: reuse with the source named"
_ADDRESS = "https://www.clinicaltrialsregister.eu/ctr-search/search?query=eudract_number:{}"
_NAMED = (
    *(_FIRST, "Sponsor's Protocol Code Number", "Sponsor Protocol Number", "Sponsor Name"),
    *("Full Title", "Start Date", "Medical condition", "Disease", "Population Age", "Gender"),
    *("Trial protocol", "Trial results", "Link", "Trial Status", "Clinical Trial Type"),
    *("National Competent Authority", "Version", "SOC Term", "Classification Code", "Term"),
    "Date on which this record was first entered in the EudraCT database",
)
# A value may hold colons, so that only numbered and known fields begin one.
_FIELD = re.compile(rf"([A-P]\.(?:\d[\d.]*)?) ([^:]*):(.*)|({'|'.join(_NAMED)}):(.*)")
_HEADING = re.compile(r"[A-P]\. [A-Z][^:]*")
Fields = dict[str, list[str]]
"""Values by the field's number ("E.5.1") or name; of those without a number in `P.` by both."""

_SECTIONS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("Objectives", (("", "E.2.1"), ("Secondary", "E.2.2"))),
    ("Conditions", (("", "E.1.1"), ("", "Medical condition"), ("", "Disease"))),
    (
        "Status",
        (
            ("Number", _FIRST),
            ("NCT number", "A.5.2"),
            ("Status", "Trial Status"),
            ("Status", "Trial protocol"),
            ("End of trial", "P. End of Trial Status"),
            ("Start", "Start Date"),
            ("Decision", "N. Date of Competent Authority Decision"),
            ("End", "P. Date of the global end of the trial"),
            ("Results", "Trial results"),
        ),
    ),
    (
        "Design",
        (
            ("Phase I", "E.7.1"),
            ("Phase II", "E.7.2"),
            ("Phase III", "E.7.3"),
            ("Phase IV", "E.7.4"),
            ("Controlled", "E.8.1"),
            ("Randomised", "E.8.1.1"),
            ("Open", "E.8.1.2"),
            ("Single blind", "E.8.1.3"),
            ("Double blind", "E.8.1.4"),
            ("Planned subjects", "F.4.2.2"),
        ),
    ),
    (
        "Interventions",
        (("Trade name", "D.2.1.1.1"), ("Product", "D.3.1"), ("INN", "D.3.8"), ("Code", "D.3.2")),
    ),
    (
        "Eligibility",
        (("Inclusion", "E.3"), ("Exclusion", "E.4"), ("Age", "Population Age"), ("", "Gender")),
    ),
    ("Primary outcomes", (("", "E.5.1"), ("Time", "E.5.1.1"))),
    ("Secondary outcomes", (("", "E.5.2"), ("Time", "E.5.2.1"))),
)


class EuTrials:
    name = "eu-trials"

    def matches(self, name: str, head: bytes) -> bool:
        return _HEAD.search(head) is not None

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        fields: Fields = {}
        for line in utf8_lines(stream, name):
            if line.lstrip().startswith(f"{_FIRST}:") and fields:
                yield _read_trial(fields, name)
                fields = {}
            _take_line(fields, line)
        if fields:
            yield _read_trial(fields, name)


def _take_line(fields: Fields, line: str) -> None:
    """Adds a line to the fields of a record: the start of a value, or more of the last one."""
    match = _FIELD.fullmatch(line.strip())
    if match:
        number, label, value, name, named = match.groups()
        lone = number and number.count(".") == 1 and number.endswith(".")
        key = f"{number} {label}" if lone else (number or name)
        fields.setdefault(key, []).append((value or named or "").strip())
    elif fields and line.strip() and not _HEADING.fullmatch(line.strip()):
        values = next(reversed(fields.values()))
        values[-1] = f"{values[-1]}\n{line.strip()}".strip()
    elif fields:
        fields.setdefault("", []).append("")  # a value does not go on after this


def _read_trial(fields: Fields, where: str) -> Record:
    number = _stated(fields, _FIRST)
    if not _NUMBER.fullmatch(number):
        return Drop(where, "no EudraCT number")
    dates = ("P. Date of the global end of the trial", "N. Date of Competent Authority Decision")
    is_random = _stated(fields, "E.8.1.1").casefold() == "yes"
    title = one_line(_stated(fields, "A.3") or _stated(fields, "Full Title"))
    document = Document(
        id=make_slug(number),
        title=title or number,
        sections=tuple(_sections(fields)),
        year=next(
            filter(None, (year_in(_stated(fields, d)) for d in (*dates, "Start Date"))), None
        ),
        url=_ADDRESS.format(number),
        code=f"EudraCT:{number}",
        kind="Randomized Controlled Trial (registered)"
        if is_random
        else "Clinical Trial (registered)",
        licence=_LICENCE,
    )
    return finish_document(document, where)


def _stated(fields: Fields, key: str) -> str:
    """The different values of a field, in order."""
    return "; ".join(dict.fromkeys(filter(None, fields.get(key, ()))))


def _sections(fields: Fields) -> Iterator[Section]:
    for heading, wanted in _SECTIONS:
        stated = ((label, _stated(fields, key)) for label, key in wanted)
        lines = [f"{label}: {value}" if label else value for label, value in stated if value]
        if lines:
            yield Section("\n".join(lines), (heading,))

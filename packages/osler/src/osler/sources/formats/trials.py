"""Trial registrations of ClinicalTrials.gov: JSON of its API (v2).

A registration says what a trial set out to do and, where results were posted, what it found.
Status, arms, outcomes and results are sections of their own; what a record does not state is left
out, and a trial without a date has no year. The NCT number stands in the text
too, so that a search for it finds the trial and the papers that name it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

from osler.sources.formats.json_lines import items_at, read_items, text_at, value_at
from osler.sources.formats.reading import date_in, plain_head, read_json_file, year_in
from osler.sources.formats.sections import finish_document
from osler.sources.records import Document, Drop, Record, Section
from osler.text import make_slug, one_line

_NCT = re.compile(r"NCT\d{8}")
_LARGEST = 64 * 2**20
"""Bytes of one study, whose results may be long."""
_NO_SPREAD = frozenset({"none", "na", "not applicable"})
_LICENCE = "public domain (ClinicalTrials.gov)"


class ClinicalTrialsJson:
    """One study, or an answer of the API with a list of them ("studies")."""

    name = "clinicaltrials-json"

    def matches(self, name: str, head: bytes) -> bool:
        start = plain_head(head)
        return start.startswith(b"{") and b'"protocolSection"' in head

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        start = stream.read(4096)
        stream.seek(0)
        if b'"studies"' in start:
            for number, study in enumerate(read_items(stream, "studies", name), 1):
                yield _read_study(study, f"{name}: study {number}")
        else:
            yield _read_study(read_json_file(stream, name, _LARGEST), name)


def _read_study(study: Any, where: str) -> Record:
    """The document; its year is that of the completion, else of the start, else none."""
    protocol = value_at(study, "protocolSection")
    named = "identificationModule", "statusModule", "designModule"
    identity, status, design = (value_at(protocol, name) for name in named)
    number = text_at(identity, "nctId").strip().upper()
    if not _NCT.fullmatch(number):
        return Drop(where, "no NCT number")
    title = text_at(identity, "briefTitle") or text_at(identity, "officialTitle")
    ends = (text_at(status, f"{end}DateStruct", "date") for end in ("completion", "start"))
    day = next(filter(year_in, ends), "")
    document = Document(
        id=make_slug(number),
        title=one_line(title) or number,
        sections=tuple(
            Section(text, (heading,))
            for heading, text in _read_rows(study, protocol, identity, status, design)
            if text.strip()
        ),
        year=year_in(day),
        date=date_in(day),
        url=f"https://clinicaltrials.gov/study/{number}",
        code=f"NCT:{number}",
        kind=_kind_of(text_at(design, "studyType"), text_at(design, "designInfo", "allocation")),
        licence=_LICENCE,
    )
    return finish_document(document, where)


def _read_rows(
    study: Any, protocol: Any, identity: Any, status: Any, design: Any
) -> Iterator[tuple[str, str]]:
    """Headings with their texts, in order; the text of what is not stated is empty."""
    described = value_at(protocol, "descriptionModule")
    yield "Summary", text_at(described, "briefSummary")
    yield "Description", text_at(described, "detailedDescription")
    yield (
        "Status",
        _join_stated(
            ("Number", text_at(identity, "nctId")),
            ("Status", text_at(status, "overallStatus")),
            ("Stopped because", text_at(status, "whyStopped")),
            ("Start", text_at(status, "startDateStruct", "date")),
            ("Completion", text_at(status, "completionDateStruct", "date")),
            ("Last update", text_at(status, "lastUpdatePostDateStruct", "date")),
        ),
    )
    yield (
        "Design",
        _join_stated(
            ("Type", text_at(design, "studyType")),
            ("Phase", ", ".join(map(str, items_at(design, "phases")))),
            ("Allocation", text_at(design, "designInfo", "allocation")),
            ("Masking", text_at(design, "designInfo", "maskingInfo", "masking")),
            ("Enrolment", _count_text(design)),
        ),
    )
    conditions = items_at(protocol, "conditionsModule", "conditions")
    yield "Conditions", "; ".join(map(str, conditions))
    arms = value_at(protocol, "armsInterventionsModule")
    yield "Arms", _join_lines(map(_arm_text, items_at(arms, "armGroups")))
    given = items_at(arms, "interventions")
    yield "Interventions", _texts_of(given, ": ", "type", "name", "description")
    yield "Eligibility", text_at(protocol, "eligibilityModule", "eligibilityCriteria")
    for which in ("primary", "secondary"):
        outcomes = items_at(protocol, "outcomesModule", f"{which}Outcomes")
        told = _texts_of(outcomes, ". ", "measure", "description", "timeFrame")
        yield f"{which.capitalize()} outcomes", told
    yield from _result_rows(study)
    papers = items_at(protocol, "referencesModule", "references")
    yield "Papers", _join_lines(map(_paper_text, papers))


def _count_text(design: Any) -> str:
    info = value_at(design, "enrollmentInfo")
    count, kind = value_at(info, "count"), text_at(info, "type")
    if not isinstance(count, int) or isinstance(count, bool):
        return ""
    return f"{count} ({kind.lower()})" if kind else str(count)


def _arm_text(arm: Any) -> str:
    label, kind, told = (text_at(arm, key) for key in ("label", "type", "description"))
    names = ", ".join(map(str, items_at(arm, "interventionNames")))
    head = f"{label} ({kind})" if label and kind else label or kind
    return ": ".join(filter(None, (head, told or names)))


def _texts_of(found: Sequence[Any], between: str, *keys: str) -> str:
    """A line for each: what stands under the keys."""
    return _join_lines(
        between.join(filter(None, (text_at(one, key) for key in keys))) for one in found
    )


def _paper_text(paper: Any) -> str:
    pmid, kind = text_at(paper, "pmid"), text_at(paper, "type")
    told = text_at(paper, "citation")
    return " ".join(
        filter(None, (told, f"PMID:{pmid}" if pmid else "", f"({kind})" if kind else ""))
    )


def _result_rows(study: Any) -> Iterator[tuple[str, str]]:
    """Each outcome measure with results: its groups and their values, with the unit as stated."""
    for outcome in items_at(study, "resultsSection", "outcomeMeasuresModule", "outcomeMeasures"):
        lines = [text_at(outcome, "title"), text_at(outcome, "timeFrame")]
        groups = {
            text_at(group, "id"): text_at(group, "title") for group in items_at(outcome, "groups")
        }
        for item in items_at(outcome, "classes"):
            for category in items_at(item, "categories"):
                row = ", ".join(filter(None, (text_at(one, "title") for one in (item, category))))
                for value in items_at(category, "measurements"):
                    told = _value_text(value, outcome)
                    lines.append(_join_named(row, groups.get(text_at(value, "groupId"), ""), told))
        for one in items_at(outcome, "analyses"):
            compared = (groups.get(str(group), "") for group in items_at(one, "groupIds"))
            lines.append(_join_named(", ".join(filter(None, compared)), _analysis_text(one)))
        yield "Results", _join_lines(lines)


def _join_named(*parts: str) -> str:
    """What was found, behind what it is of; nothing where nothing was found."""
    return ": ".join(filter(None, parts)) if parts[-1] else ""


def _value_text(value: Any, outcome: Any) -> str:
    """ "mean 3.2 kg (Standard Deviation 1.1)": the measure and the kind of spread as stated."""
    number, spread = text_at(value, "value"), text_at(value, "spread")
    low, high = text_at(value, "lowerLimit"), text_at(value, "upperLimit")
    if not number:
        return ""
    measure = text_at(outcome, "paramType").replace("_", " ").lower()
    # "Number" and "count of participants" say no more than the number and its unit.
    measure = "" if measure.startswith(("number", "count")) else measure
    kind = text_at(outcome, "dispersionType")
    kind = "" if kind.casefold() in _NO_SPREAD else kind
    around = f"{low} to {high}" if low and high else spread
    if around:
        sign = "±" if around == spread else ""
        around = f"({kind} {around})" if kind else f"({sign}{around})"
    return " ".join(filter(None, (measure, number, text_at(outcome, "unitOfMeasure"), around)))


def _analysis_text(one: Any) -> str:
    kind, value, p = (text_at(one, key) for key in ("paramType", "paramValue", "pValue"))
    level, low, high = (text_at(one, key) for key in ("ciPctValue", "ciLowerLimit", "ciUpperLimit"))
    level = f"{level}% " if level else ""
    sides = ", one-sided" if text_at(one, "ciNumSides") == "ONE_SIDED" else ""
    limits = f"{low} to {high}" if low and high else f"from {low}" if low else f"up to {high}"
    interval = f"{level}CI {limits}{sides}" if low or high else ""
    parts = (f"{kind} {value}".strip(), interval, f"P = {p}" if p else "")
    return "; ".join(filter(None, parts)) if value or p else ""


def _join_lines(lines: Iterable[str]) -> str:
    return "\n".join(filter(None, lines))


def _join_stated(*fields: tuple[str, str]) -> str:
    return "; ".join(f"{name}: {one_line(value)}" for name, value in fields if value.strip())


def _kind_of(study_type: str, allocation: str) -> str:
    """The registered design; nothing where the record does not state its type."""
    if study_type.casefold() != "interventional":
        return f"{study_type.capitalize()} Study" if study_type else "Trial Registration"
    is_random = allocation.casefold().startswith("random")
    return (
        "Randomized Controlled Trial (registered)" if is_random else "Clinical Trial (registered)"
    )

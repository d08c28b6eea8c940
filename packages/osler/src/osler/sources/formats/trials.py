"""Trial registrations of ClinicalTrials.gov: JSON of its API (v2).

A registration says what a trial set out to do and, where results were posted, what it found.
Status, arms, outcomes and results are sections of their own; what a record does not state is left
out, and a trial without a date has no year. The NCT number stands in the text
too, so that a search for it finds the trial and the papers that name it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from osler.sources.formats.json_lines import items_at, read_items, text_at
from osler.sources.formats.reading import date_in, plain_head, read_json_file, year_in
from osler.sources.formats.sections import finish_document
from osler.sources.records import Document, Drop, Record, Section
from osler.text import make_slug, one_line

_NCT = re.compile(r"NCT\d{8}")
_LARGEST = 64 * 2**20
"""Bytes of one study, whose results may be long."""
_LICENCE = "public domain (ClinicalTrials.gov)"
Rows = list[tuple[str, str]]
"""Headings with their texts, in order."""


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
    protocol = study.get("protocolSection") if isinstance(study, dict) else None
    named = "identificationModule", "statusModule", "designModule", "descriptionModule"
    identity, status, design, described = (items_or_none(protocol, name) for name in named)
    arms = [_arm_text(arm) for arm in items_at(protocol, "armsInterventionsModule", "armGroups")]
    given = items_at(protocol, "armsInterventionsModule", "interventions")
    outcomes = items_or_none(protocol, "outcomesModule")
    eligible = text_at(protocol, "eligibilityModule", "eligibilityCriteria")
    papers = items_at(protocol, "referencesModule", "references")
    rows: Rows = [
        ("Summary", text_at(described, "briefSummary")),
        ("Description", text_at(described, "detailedDescription")),
        (
            "Status",
            _join_stated(
                ("Number", text_at(identity, "nctId")),
                ("Status", text_at(status, "overallStatus")),
                ("Stopped because", text_at(status, "whyStopped")),
                ("Start", text_at(status, "startDateStruct", "date")),
                ("Completion", text_at(status, "completionDateStruct", "date")),
                ("Last update", text_at(status, "lastUpdatePostDateStruct", "date")),
            ),
        ),
        (
            "Design",
            _join_stated(
                ("Type", text_at(design, "studyType")),
                ("Phase", ", ".join(map(str, items_at(design, "phases")))),
                ("Allocation", text_at(design, "designInfo", "allocation")),
                ("Masking", text_at(design, "designInfo", "maskingInfo", "masking")),
                ("Enrolment", _count_text(design)),
            ),
        ),
        ("Conditions", "; ".join(map(str, items_at(protocol, "conditionsModule", "conditions")))),
        ("Arms", "\n".join(filter(None, arms))),
        ("Interventions", "\n".join(filter(None, map(_intervention_text, given)))),
        ("Eligibility", eligible),
        ("Primary outcomes", _outcome_texts(items_at(outcomes, "primaryOutcomes"))),
        ("Secondary outcomes", _outcome_texts(items_at(outcomes, "secondaryOutcomes"))),
        *_result_rows(study),
        ("Papers", "\n".join(filter(None, map(_paper_text, papers)))),
    ]
    title = text_at(identity, "briefTitle") or text_at(identity, "officialTitle")
    return _make_trial(
        text_at(identity, "nctId"),
        title,
        rows,
        (
            text_at(status, "completionDateStruct", "date"),
            text_at(status, "startDateStruct", "date"),
        ),
        _kind_of(text_at(design, "studyType"), text_at(design, "designInfo", "allocation")),
        where,
    )


def items_or_none(value: Any, key: str) -> Any:
    """The object at a key; `None` for anything else."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else None


def _count_text(design: Any) -> str:
    info = items_or_none(design, "enrollmentInfo") or {}
    count, kind = info.get("count"), text_at(info, "type")
    if not isinstance(count, int) or isinstance(count, bool):
        return ""
    return f"{count} ({kind.lower()})" if kind else str(count)


def _arm_text(arm: Any) -> str:
    label, kind, told = (text_at(arm, key) for key in ("label", "type", "description"))
    names = ", ".join(map(str, items_at(arm, "interventionNames")))
    head = f"{label} ({kind})" if label and kind else label or kind
    return ": ".join(filter(None, (head, told or names)))


def _intervention_text(one: Any) -> str:
    kind, name, told = (text_at(one, key) for key in ("type", "name", "description"))
    return ": ".join(filter(None, (kind, name, told)))


def _outcome_texts(outcomes: Sequence[Any]) -> str:
    keys = ("measure", "description", "timeFrame")
    lines = (". ".join(filter(None, (text_at(one, key) for key in keys))) for one in outcomes)
    return "\n".join(filter(None, lines))


def _paper_text(paper: Any) -> str:
    pmid, kind = text_at(paper, "pmid"), text_at(paper, "type")
    told = text_at(paper, "citation")
    return " ".join(
        filter(None, (told, f"PMID:{pmid}" if pmid else "", f"({kind})" if kind else ""))
    )


def _result_rows(study: Any) -> Iterator[tuple[str, str]]:
    """Each outcome measure with results: its groups and their values, with the unit as stated."""
    results = items_or_none(study, "resultsSection")
    for outcome in items_at(results, "outcomeMeasuresModule", "outcomeMeasures"):
        lines = [text_at(outcome, "title"), text_at(outcome, "timeFrame")]
        groups = {
            text_at(group, "id"): text_at(group, "title") for group in items_at(outcome, "groups")
        }
        unit = text_at(outcome, "unitOfMeasure")
        for item in items_at(outcome, "classes"):
            for category in items_at(item, "categories"):
                values = items_at(category, "measurements")
                lines += [_value_text(value, groups, unit) for value in values]
        lines += [_analysis_text(one) for one in items_at(outcome, "analyses")]
        yield "Results", "\n".join(filter(None, lines))


def _value_text(value: Any, groups: dict[str, str], unit: str) -> str:
    number, spread = text_at(value, "value"), text_at(value, "spread")
    low, high = text_at(value, "lowerLimit"), text_at(value, "upperLimit")
    if not number:
        return ""
    told = " ".join(filter(None, (number, unit)))
    interval = f" ({low} to {high})" if low and high else f" (±{spread})" if spread else ""
    group = groups.get(text_at(value, "groupId"), "")
    return f"{group}: {told}{interval}" if group else f"{told}{interval}"


def _analysis_text(one: Any) -> str:
    kind, value, p = (text_at(one, key) for key in ("paramType", "paramValue", "pValue"))
    level, low, high = (text_at(one, key) for key in ("ciPctValue", "ciLowerLimit", "ciUpperLimit"))
    interval = f"{level or '95'}% CI {low} to {high}" if low and high and level else ""
    parts = (f"{kind} {value}".strip(), interval, f"P = {p}" if p else "")
    return "; ".join(filter(None, parts)) if value or p else ""


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


def _make_trial(
    number: str, title: str, rows: Rows, dates: Sequence[str], kind: str, where: str
) -> Record:
    """The document; its year is that of the completion, else of the start, else none."""
    number = number.strip().upper()
    if not _NCT.fullmatch(number):
        return Drop(where, "no NCT number")
    document = Document(
        id=make_slug(number),
        title=one_line(title) or number,
        sections=tuple(Section(text, (heading,)) for heading, text in rows if text.strip()),
        year=next(filter(None, map(year_in, dates)), None),
        date=next((date_in(one) for one in dates if year_in(one)), ""),
        url=f"https://clinicaltrials.gov/study/{number}",
        code=f"NCT:{number}",
        kind=kind,
        licence=_LICENCE,
    )
    return finish_document(document, where)

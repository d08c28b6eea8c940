"""Guideline summaries of the National Guideline Clearinghouse, one XML file a guideline.

Every field is HTML inside an attribute. Sections about the summary itself (disclaimers,
funding, where to order a copy) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from osler.sources.formats.html import fragment_sections
from osler.sources.formats.licences import licence_of
from osler.sources.formats.reading import id_of, title_of
from osler.sources.formats.safe_xml import iterate_elements, root_tag
from osler.sources.formats.tree import Element
from osler.sources.records import Document, Drop, Record, Section
from osler.text import language_of, make_slug, one_line

# Sections about medicine; the others are about the summary itself.
_KEPT = frozenset(
    {
        "Scope",
        "Recommendations",
        "Methodology",
        "Evidence Supporting the Recommendations",
        "Benefits/Harms of Implementing the Guideline Recommendations",
        "Contraindications",
        "Regulatory Alert",
        "Qualifying Statements",
        "Implementation of the Guideline",
    }
)
_TAG = re.compile(r"<[^<>]*>")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_SAYS_NOTHING = re.compile(
    r"(?:not stated|none (?:provided|stated|available)|not applicable)\.?", re.IGNORECASE
)


class NgcXml:
    name = "ngc-xml"

    def matches(self, name: str, head: bytes) -> bool:
        return root_tag(head) == "Version" and b"<Section" in head and b"<Field" in head

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for summary in iterate_elements(stream, name, ("Version",)):
            yield _read_record(summary, name)


def _read_record(summary: Element, name: str) -> Record:
    title = _field_text(summary, "Guideline Title")
    if not title:
        return Drop(name, "no title")
    sections = tuple(_read_sections(summary))
    if not sections:
        return Drop(name, "no text")
    years = [int(year) for year in _YEAR.findall(_field_text(summary, "Date Released"))]
    identifier = title_of(name).replace(" ", "-")
    return Document(
        id=make_slug(identifier) if identifier.lower().startswith("ngc") else id_of(name),
        title=title.rstrip("."),
        sections=sections,
        language=language_of(sections[0].text),
        # "2011 Jan 28 (revised 2014)": what is read is the revision.
        year=max(years, default=None),
        code=identifier.upper().replace("-", ":", 1) if identifier.startswith("ngc-") else "",
        kind="guideline",
        licence=licence_of(_field_text(summary, "Copyright Statement")),
    )


def _field_text(summary: Element, field: str) -> str:
    """The text of the first field of this name, without markup; "" for none."""
    for element in summary.iter("Field"):
        if element.get("Name") == field:
            values = (value.get("Value") or "" for value in element.iter("FieldValue"))
            return one_line(_TAG.sub(" ", " ".join(values)))
    return ""


def _read_sections(summary: Element) -> Iterator[Section]:
    for part in summary.iterfind("Section"):
        heading = one_line(part.get("Name") or "")
        if heading not in _KEPT:
            continue
        for field in part.iterfind("Field"):
            name = one_line(field.get("Name") or "")
            path = (heading,) if name in {heading, ""} else (heading, name)
            values = (value.get("Value") or "" for value in field.iterfind("FieldValue"))
            for section in fragment_sections("".join(f"<p>{value}</p>" for value in values)):
                if not _SAYS_NOTHING.fullmatch(section.text):
                    yield Section(section.text, (*path, *section.path))

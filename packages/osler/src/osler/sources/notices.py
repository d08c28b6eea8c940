"""Notices about published works: which one stands, and the list of Retraction Watch (CSV, with its
published header)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from osler.errors import MalformedSource, translate_os_errors
from osler.sources.citable import normalise_id
from osler.sources.records import Drop
from osler.text import one_line

RETRACTION, CONCERN, CORRECTION = "Retraction", "Expression of concern", "Correction"
REINSTATEMENT = "Reinstatement"
_NATURE, _REASON, _DAY = "RetractionNature", "Reason", "RetractionDate"
_DOI, _PMID = "OriginalPaperDOI", "OriginalPaperPubMedID"
_LONGEST_FIELD = 2**24
"""Its notes and lists of authors may be longer than the module's 128 KiB for a field."""
_DAYS = ("%m/%d/%Y", "%Y-%m-%d", "%Y/%m/%d")


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice about a published work."""

    nature: str
    date: str
    """ISO 8601; "" where it is not known."""
    reason: str
    pmid: str = ""
    doi: str = ""
    """Of the work, not of the notice; lower case."""

    def __str__(self) -> str:
        when = ", ".join(filter(None, (self.nature, self.date)))
        return ": ".join(filter(None, (when, self.reason)))


def choose_notice(notices: Iterable[Notice]) -> Notice | None:
    """The gravest that stands, of equal ones the latest; a reinstatement ends what is older, or of
    its day. Without a day, a reinstatement ends nothing and any other notice stands."""
    by_date = sorted(notices, key=_order)
    back = max((n for n, one in enumerate(by_date) if one.nature == REINSTATEMENT), default=0)
    standing = by_date[back:]
    for nature in (RETRACTION, CONCERN, CORRECTION):
        if grave := [one for one in standing if one.nature.startswith(nature)]:
            return max(grave, key=lambda one: one.date)
    return standing[-1] if standing else None


def _order(notice: Notice) -> tuple[str, bool]:
    is_back = notice.nature == REINSTATEMENT
    return notice.date or ("" if is_back else "9999"), is_back


def read_notices(path: Path) -> Iterator[Notice | Drop]:
    """The notices of the file in order; a row that names no work is a drop, and so is a day that
    cannot be read, behind its notice.

    Raises `MalformedSource` for another table, and for a file that cannot be read.
    """
    fix = "give the CSV file that Retraction Watch publishes with Crossref"
    with (
        _long_fields(),
        translate_os_errors(f"{path} cannot be read", MalformedSource, fix),
        # A few names in it are in no known encoding; no field that is read here is.
        path.open(encoding="utf-8-sig", errors="replace", newline="") as file,
    ):
        table = csv.DictReader(file)
        try:
            if missing := {_NATURE, _REASON, _DAY, _DOI, _PMID} - set(table.fieldnames or ()):
                said = f"{path} has no column {min(missing)}"
                raise MalformedSource(said, fix=fix)
            for row in table:
                yield (read := _read_row(row, f"{path.name}:{table.line_num}"))
                if isinstance(read, Notice) and not read.date and (row[_DAY] or "").strip():
                    yield Drop(f"{path.name}:{table.line_num}", "unknown day")
        except csv.Error as error:
            raise MalformedSource(f"{path}:{table.line_num}: {error}", fix=fix) from error


@contextmanager
def _long_fields() -> Iterator[None]:
    before = csv.field_size_limit(_LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _read_row(row: dict[str, str | None], where: str) -> Notice | Drop:
    nature, reason, written, doi, pmid = (
        one_line(row[name] or "") for name in (_NATURE, _REASON, _DAY, _DOI, _PMID)
    )
    # "0" and "unavailable" stand for none.
    pmid = pmid if pmid.isdecimal() and pmid.strip("0") else ""
    doi = normalise_id("doi", doi) if doi.startswith("10.") else ""
    if not nature:
        return Drop(where, "no nature")
    if not (pmid or doi):
        return Drop(where, "neither PMID nor DOI")
    reasons = "; ".join(filter(None, (one.strip() for one in reason.replace("+", "").split(";"))))
    return Notice(nature, _read_day(written), reasons, pmid, doi)


@lru_cache(16_384)  # the days of 45 years; each is named by several notices
def _read_day(written: str) -> str:
    """ "7/14/2019 0:00" as "2019-07-14"; "" for what is no day."""
    for form in _DAYS:
        try:
            return datetime.strptime(re.split("[ T]", written)[0], form).date().isoformat()
        except ValueError:
            continue
    return ""

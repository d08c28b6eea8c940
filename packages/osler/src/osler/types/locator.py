"""Where a passage comes from in the published world."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Locator:
    """Origin of a passage in the published world; unknown parts are `None` or empty, never
    guessed."""

    section: str = ""
    """Heading path, joined by " > "."""
    page: int | None = None
    year: int | None = None
    url: str = ""
    code: str = ""
    """The publisher's own identifier: "PMID:123", "CUI:C0002871", "DOID:10763"."""
    kind: str = ""
    """Publication or record type as its publisher names it ("Randomized Controlled Trial")."""
    authors: tuple[str, ...] = ()
    """Family name and initials, in the work's order: "Smith JA"."""
    journal: str = ""
    notice: str = ""
    """What was published against the work: "Retraction, 2019-07-14: Error in Data"."""
    key: str = ""
    """Its citation key in the library of references that it came from."""
    date: str = ""
    """Month or day, "2024-03" or "2024-03-15", where more than the year is known."""

    @property
    def dated(self) -> str:
        """The day, month or year, as far as it is known; "" for none."""
        return self.date or ("" if self.year is None else str(self.year))

    @property
    def latest_day(self) -> int | None:
        """The last day that it may be of, as 20240131; `None` without a year."""
        digits = self.dated.replace("-", "")
        return int(digits + "1231"[len(digits) - 4 :]) if digits else None

    @property
    def is_retracted(self) -> bool:
        """Whether its notice is that of a retraction."""
        return self.notice.startswith("Retraction")

    @property
    def byline(self) -> str:
        """Authors, year and journal: "Smith JA, Lee K et al. · 2021 · Lancet"; "" where neither
        author nor journal is told."""
        named = ", ".join(self.authors[:2]) + (" et al." if len(self.authors) > 2 else "")
        told = (named, self.dated, self.journal) if named or self.journal else ()
        return " · ".join(filter(None, told))

    def __str__(self) -> str:
        page = f"p. {self.page}" if self.page is not None else ""
        year = "" if self.byline else self.dated
        place = ", ".join(filter(None, (self.section, page, self.kind, year, self.code)))
        return " · ".join(filter(None, (self.notice, self.byline, place)))

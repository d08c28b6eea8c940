"""The documents that an answer cites, each once, with the identifiers that its source gives.

Nothing is guessed: an identifier stands in a passage's locator (code or address) or not at all, and
one whose check digit is wrong is left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from osler.sources.citable import FINDERS, find_citable_ids
from osler.types import Evidence, Passage


@dataclass(frozen=True, slots=True)
class Reference:
    """A cited document."""

    numbers: tuple[int, ...]
    """Of the answer's citations that quote it."""
    passages: tuple[Passage, ...]
    """Those that are quoted, in the order of their first number."""
    quotes: tuple[str, ...]
    identifiers: dict[str, str]
    """By name, lower case: those of `osler.sources.citable`."""

    @property
    def first(self) -> Passage:
        return self.passages[0]

    @property
    def key(self) -> str:
        """A name for reference managers, of ASCII letters, digits and hyphens."""
        document = self.first.id.partition("#")[0]
        return re.sub(r"[^A-Za-z0-9]+", "-", document).strip("-") or f"ref-{self.numbers[0]}"

    @property
    def url(self) -> str:
        """Where it can be read: as its source says, else by its identifier."""
        found = self.identifiers
        by_name = {
            "doi": "https://doi.org/{}",
            "pmcid": "https://pmc.ncbi.nlm.nih.gov/articles/{}/",
            "pmid": "https://pubmed.ncbi.nlm.nih.gov/{}/",
            "nct": "https://clinicaltrials.gov/study/{}",
            "eudract": "https://www.clinicaltrialsregister.eu/ctr-search/search?query=eudract_number:{}",
            "nbk": "https://www.ncbi.nlm.nih.gov/books/{}/",
        }
        resolved = (form.format(found[name]) for name, form in by_name.items() if name in found)
        return self.first.locator.url or next(resolved, "")

    @property
    def line(self) -> str:
        """As a reader sees it: title, section, source, year, identifiers."""
        place = self.first.locator
        named = [f"{name.upper()} {value}" for name, value in self.identifiers.items()]
        known = (self.first.title, place.section, place.kind or self.first.source)
        year = str(place.year) if place.year is not None else ""
        return ". ".join(part.rstrip(".") for part in (*known, year, *named) if part) + "."


def list_references(evidence: Sequence[Evidence]) -> list[Reference]:
    """The cited documents in the order of their first citation."""
    grouped: dict[str, list[tuple[int, Evidence]]] = {}
    for number, one in enumerate(evidence, 1):
        grouped.setdefault(one.passage.id.partition("#")[0], []).append((number, one))
    return [_make_reference(group) for group in grouped.values()]


def _make_reference(group: list[tuple[int, Evidence]]) -> Reference:
    passages = tuple({one.passage.id: one.passage for _, one in group}.values())
    identifiers: dict[str, str] = {}
    for passage in passages:
        identifiers = {**find_identifiers(passage), **identifiers}
    return Reference(
        tuple(number for number, _ in group),
        passages,
        tuple(one.quote for _, one in group),
        {name: identifiers[name] for name in FINDERS if name in identifiers},
    )


def find_identifiers(passage: Passage) -> dict[str, str]:
    """The identifiers in the passage's code, address and id, by name."""
    document = passage.id.partition("#")[0].partition(":")[2]
    text = f"{passage.locator.code} {passage.locator.url} {document}"
    found: dict[str, str] = {}
    for one in find_citable_ids(text):
        if one.is_valid:
            found.setdefault(one.kind, one.value)
    return found

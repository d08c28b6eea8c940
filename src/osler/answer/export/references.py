"""The documents that an answer cites, each once, with the identifiers that its source gives.

Nothing is guessed: an identifier stands in a passage's locator (code or address) or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from osler.types import Evidence, Passage

_DOI = r"10\.\d{4,9}/[^\s\"<>?#]+"
# Each name with the ways in which codes and addresses write it.
_PATTERNS = {
    "pmid": r"(?:\bPMID:\s*|pubmed\.ncbi\.nlm\.nih\.gov/|ncbi\.nlm\.nih\.gov/pubmed/)(\d{1,9})\b",
    "doi": rf"(?:\bdoi:\s*|doi\.org/)({_DOI})",
    "pmcid": r"\b(PMC\d{1,9})\b",
    "nct": r"\b(NCT\d{8})\b",
    "isbn": r"\bISBN(?:-1[03])?:?\s*([\d][\d -]{8,15}[\dX])\b",
    "nbk": r"\b(NBK\d{1,9})\b",
}
_FINDERS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _PATTERNS.items()}


@dataclass(frozen=True, slots=True)
class Reference:
    """A cited document."""

    numbers: tuple[int, ...]
    """Of the answer's citations that quote it."""
    passages: tuple[Passage, ...]
    """Those that are quoted, in the order of their first number."""
    quotes: tuple[str, ...]
    identifiers: dict[str, str]
    """By name, lower case: pmid, doi, pmcid, nct, isbn, nbk."""

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
        {name: identifiers[name] for name in _FINDERS if name in identifiers},
    )


def find_identifiers(passage: Passage) -> dict[str, str]:
    """The identifiers in the passage's code, address and id, by name."""
    document = passage.id.partition("#")[0].partition(":")[2]
    text = f"{passage.locator.code} {passage.locator.url} {document}"
    found = {name: match for name, finder in _FINDERS.items() if (match := finder.search(text))}
    values = {name: match.group(1) for name, match in found.items()}
    for name in {"pmcid", "nct", "nbk"} & values.keys():
        values[name] = values[name].upper()
    if "isbn" in values:
        values["isbn"] = re.sub(r"[ -]", "", values["isbn"])
    if "doi" in values:
        values["doi"] = values["doi"].rstrip(".,;)/")
    return values

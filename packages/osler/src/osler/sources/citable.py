"""Identifiers of published works: found in texts, brought to one form, checked by their own rules.

| Kind | Form after normalising | Check |
|---|---|---|
| `pmid` | 33012345 | 1 to 8 digits, the first not 0 |
| `pmcid` | PMC7001234 | as `pmid` |
| `doi` | 10.1000/xyz.12, lower case | prefix and suffix |
| `nct` | NCT04280705 | 8 digits |
| `eudract` | 2010-018418-26 | a year from 1990, 6 digits, 2 digits |
| `isbn` | 9787117263757 | the check digit of ISBN-10 or ISBN-13; an ISBN-10 becomes an ISBN-13 |
| `nbk` | NBK430685 | digits |
| `guideline` | NICE NG136, SIGN 155, NGC 10422 | form |
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

# Within "<…>" of an older form: 10.1002/(SICI)1097-0258(1998)17:15/16<1661::AID-SIM968>3.0.CO;2-2.
_DOI = r"10\.\d{4,9}/(?:[^\s\"<>?#，。；）]|<[^\s\"<>]+:[^\s\"<>]*>(?=\d))+"
_NUMBER = r"[\d][\d -]{8,15}[\dXx]"
# Each kind with the ways in which texts, codes and addresses write it.
_PATTERNS = {
    "pmid": (
        r"(?:\b(?:PMID|PubMed(?: ID)?)[:：#]?\s*|pubmed\.ncbi\.nlm\.nih\.gov/"
        r"|ncbi\.nlm\.nih\.gov/pubmed/)(\d{1,9})\b"
    ),
    "doi": rf"(?:\bdoi[:：]?\s*|doi\.org/|(?<![\w/.]))({_DOI})",
    "pmcid": r"\b(PMC\s?\d{1,9})\b",
    "nct": r"\b(NCT\s?\d{4,12})\b",
    "eudract": r"(?:\bEudraCT(?: number)?[:：]?\s*|(?<![\d-]))(\d{4}-\d{6}-\d{2})(?![\d-])",
    "isbn": rf"\bISBN(?:-?1[03])?:?\s*({_NUMBER})\b",
    "nbk": r"\b(NBK\d{1,9})\b",
    "guideline": (
        r"\b(NICE (?:guideline )?\[?(?:NG|CG|TA|QS|PH|DG)\s?\d{1,4}|SIGN (?:guideline )?\d{1,3}"
        r"|NGC[-: ]\d{3,6})\b"
    ),
}
FINDERS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _PATTERNS.items()}


@dataclass(frozen=True, slots=True)
class CitableId:
    """An identifier in a text, `text[start:end]` with the words that announce it."""

    kind: str
    value: str
    """Normalised."""
    start: int
    end: int
    is_valid: bool
    """Whether its form and check digit are right; whether the work exists is not known by it."""


def find_citable_ids(text: str) -> Iterator[CitableId]:
    """The identifiers in the text, kind by kind."""
    for kind, finder in FINDERS.items():
        for match in finder.finditer(text):
            value = normalise_id(kind, match[1])
            cut = len(match[1]) - len(match[1].rstrip(".,;:)/]"))
            yield CitableId(kind, value, match.start(), match.end() - cut, is_valid_id(kind, value))


def normalise_id(kind: str, written: str) -> str:
    """The one form of an identifier."""
    if kind == "doi":
        return unquote(written.rstrip(".,;:)/]")).lower()  # an address encodes "<" and ">"
    if kind == "isbn":
        return _isbn_13(re.sub(r"[ -]", "", written).upper())
    if kind == "guideline":
        plain = re.sub(r"guideline |\[", "", written, flags=re.IGNORECASE).upper()
        plain = re.sub(r"^(NGC)[-: ]", r"\1 ", plain)
        return re.sub(r"([A-Z]{2}) (?=\d)", r"\1", plain) if plain.startswith("NICE") else plain
    return re.sub(r"\s", "", written).upper()


def is_valid_id(kind: str, value: str) -> bool:
    """Whether a normalised identifier keeps the rules of its kind."""
    if kind == "isbn":
        return len(value) == 13 and _weigh_13(value) % 10 == 0
    if kind == "nct":
        return len(value) == 11
    if kind == "eudract":
        return value[:2] in ("19", "20") and value >= "1990"
    if kind in ("pmid", "pmcid"):
        digits = value.removeprefix("PMC")
        return digits[:1] != "0" and len(digits) <= 8
    return True


def _isbn_13(digits: str) -> str:
    """An ISBN-10 with a right check digit as an ISBN-13; others as they are."""
    if len(digits) != 10 or not digits[:9].isdigit():
        return digits
    tenth = 10 if digits[9] == "X" else int(digits[9])
    if (sum((10 - n) * int(d) for n, d in enumerate(digits[:9])) + tenth) % 11:
        return digits
    body = f"978{digits[:9]}"
    return f"{body}{-_weigh_13(body) % 10}"


def _weigh_13(digits: str) -> int:
    if not digits.isdigit():
        return -1
    return sum(int(digit) * (3 if n % 2 else 1) for n, digit in enumerate(digits))

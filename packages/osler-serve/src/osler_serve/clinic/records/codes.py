"""Codes of diagnoses, and the hierarchies of ICD-9-CM and ICD-10-CM.

The levels follow from the code itself: its category is what stands before the dot, and blocks
and chapters are ranges of categories (the tabular lists of ICD-9-CM 2015 and ICD-10-CM 2018).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from osler.errors import BadQuestion
from osler.text import read_packaged_table


class CodeSystem(StrEnum):
    """A vocabulary; the value is its name in records."""

    ICD9 = "ICD-9-CM"
    ICD10 = "ICD-10-CM"
    ICD10_WHO = "ICD-10"
    PCS = "ICD-10-PCS"
    SNOMED = "SNOMED CT"
    LOINC = "LOINC"
    RXNORM = "RxNorm"
    NDC = "NDC"
    CPT = "CPT"
    CVX = "CVX"
    LOCAL = "source code"
    """Of a vocabulary that neither the record nor the code's form reveals."""


@dataclass(frozen=True, slots=True, order=True)
class Code:
    """A code as publications write it: with its dot."""

    system: CodeSystem
    value: str

    def __str__(self) -> str:
        return f"{self.system} {self.value}"


class CodeLevel(StrEnum):
    """Levels of the hierarchy, from the most specific to the least."""

    CODE = "code"
    SUBCATEGORY = "subcategory"
    CATEGORY = "category"
    BLOCK = "block"
    CHAPTER = "chapter"


Node = tuple[CodeLevel, str]
"""A place in the hierarchy: `(CodeLevel.CATEGORY, "ICD-10-CM E11")`."""

# A letter sorts after the digits, so M1A (chronic gout) would fall behind its block.
_ELSEWHERE = {"M1A": "M05-M14"}

_ICD_9 = re.compile(r"(?:\d{3}|V\d\d)(?:\.?\d{1,2})?|E\d{3}(?:\.?\d)?")
_ICD_10 = re.compile(r"[A-Z]\d[0-9AB](?:\.?[0-9A-Z]{1,4})?")
_EXTERNAL_9 = re.compile(r"E(?:0[0-3]|[89])\d")
_DOTTED = r"(?:\d{3}\.\d{1,2}|V\d\d\.\d{1,2}|E\d{3}\.\d|[A-Z]\d[0-9AB]\.[0-9A-Z]{1,4})"
_NAMED = re.compile(
    r"(ICD-?9(?:-?CM)?|ICD-?10(?:-?CM)?|SNOMED(?:[ -]?CT)?|SCT)[ :：|]*([0-9A-Z][0-9A-Z.]*)"
    rf"((?:\s*[,;、/]\s*{_DOTTED}(?![\w.]))*)",
    re.IGNORECASE,
)
# In running text a number with a dot is a number, and B12 is a vitamin: only a letter with
# a dot is a code without being named one.
_BARE = re.compile(
    r"(?<![A-Za-z0-9_.-])([A-Z]\d[0-9AB]\.[0-9A-Z]{1,4}|V\d\d\.\d{1,2}|E\d{3}\.\d)"
    r"(?![A-Za-z0-9_-])"
)


def icd_code(code: str, version: str, *, is_procedure: bool = False) -> Code:
    """The code that a database stores without its dot and padded; `version` is "9" or "10"."""
    bare = "".join(code.split()).replace(".", "").upper()
    if version == "9":
        return Code(CodeSystem.ICD9, dotted_code(bare, version, is_procedure=is_procedure))
    system = CodeSystem.PCS if is_procedure else CodeSystem.ICD10
    return Code(system, dotted_code(bare, version, is_procedure=is_procedure))


def dotted_code(code: str, version: str, *, is_procedure: bool) -> str:
    """A code with its dot, which databases leave out: 99591 is 995.91."""
    if is_procedure:
        place = 2 if version == "9" else len(code)
    else:
        place = 4 if version == "9" and code.startswith("E") else 3
    return f"{code[:place]}.{code[place:]}" if len(code) > place else code


def version_of(code: str) -> str:
    """The ICD version ("9" or "10") by the code's form; "" where it could be either or neither."""
    written = "".join(code.split()).upper()
    bare = written.replace(".", "")
    is_9, is_10 = bool(_ICD_9.fullmatch(written)), bool(_ICD_10.fullmatch(written))
    if is_9 and bare.startswith("E") and not _EXTERNAL_9.match(bare):
        is_9 = False
    if is_10 and bare.startswith("V") and len(bare) < 6:
        is_10 = False  # every ICD-10-CM code that begins with V has six characters or seven
    if is_9 == is_10:
        return ""
    return "9" if is_9 else "10"


def parse_code(text: str) -> Code:
    """Parses a code as users write it: "E11.9", "ICD-9-CM 250.00", "snomed:44054006".

    Raises `BadQuestion` for other text, and where the vocabulary must be named.
    """
    written = " ".join(text.split())
    if (named := _NAMED.fullmatch(written)) and not named[3]:
        return _named_code(named[1], named[2])
    if version := version_of(written):
        return icd_code(written, version)
    why = "could be ICD-9-CM or ICD-10-CM" if _ICD_10.fullmatch(written.upper()) else "is no code"
    raise BadQuestion(f"{written[:40]!r} {why}", fix='name the vocabulary, as in "ICD-10-CM E83.4"')


def found_in(text: str) -> tuple[Code, ...]:
    """The codes in running text, each once: those with a named vocabulary, then the others."""
    codes: dict[Code, None] = {}
    for match in _NAMED.finditer(text):
        for value in (match[2], *re.findall(_DOTTED, match[3], re.IGNORECASE)):
            codes[_named_code(match[1], value)] = None
    rest = _NAMED.sub(" ", text)
    for match in _BARE.finditer(rest):
        if version := version_of(match[1]):
            codes[icd_code(match[1], version)] = None
    return tuple(codes)


def _named_code(name: str, value: str) -> Code:
    if name.upper().startswith("S"):
        return Code(CodeSystem.SNOMED, value.rstrip("."))
    return icd_code(value, "9" if "9" in name else "10")


@cache
def code_lineage(code: Code) -> tuple[Node, ...]:
    """The code and all that contains it, most specific first; outside ICD the code alone."""
    own: tuple[Node, ...] = ((CodeLevel.CODE, str(code)),)
    if code.system not in (CodeSystem.ICD9, CodeSystem.ICD10, CodeSystem.ICD10_WHO):
        return own
    # The two ICD-10 share their categories; the clinical modification only goes deeper.
    system = CodeSystem.ICD9 if code.system is CodeSystem.ICD9 else CodeSystem.ICD10
    category, _, rest = code.value.partition(".")
    if len(rest) > 1:
        own += ((CodeLevel.SUBCATEGORY, f"{system} {category}.{rest[0]}"),)
    own += ((CodeLevel.CATEGORY, f"{system} {category}"),)
    for level, ranges in (
        (CodeLevel.BLOCK, _load_ranges(system, "blocks")),
        (CodeLevel.CHAPTER, _load_ranges(system, "chapters")),
    ):
        if name := ranges.range_of(category):
            own += ((level, f"{system} {name}"),)
    return own


@dataclass(frozen=True, slots=True)
class _CodeRanges:
    starts: tuple[str, ...]
    names: tuple[str, ...]
    single: dict[str, str]

    @classmethod
    def from_resource(cls, text: str) -> _CodeRanges:
        names = sorted(text.split())
        single = {name[: len(name) // 2]: name for name in names if _is_single(name)}
        wide = [name for name in names if not _is_single(name)]
        return cls(tuple(name.partition("-")[0] for name in wide), tuple(wide), single)

    def range_of(self, category: str) -> str:
        """The range that contains the category, or ""; a range of one category goes first."""
        if own := self.single.get(category):
            return own
        if (moved := _ELSEWHERE.get(category)) in self.names:
            return moved or ""
        place = bisect_right(self.starts, category) - 1
        name = self.names[place] if place >= 0 else ""
        return name if name and category <= name.partition("-")[2] else ""


def _is_single(name: str) -> bool:
    first, _, last = name.partition("-")
    return first == last


@cache
def _load_ranges(system: CodeSystem, level: str) -> _CodeRanges:
    """The `blocks` or `chapters` of ICD-9-CM or ICD-10-CM."""
    every = read_packaged_table(__package__, "icd_ranges.toml")
    return _CodeRanges.from_resource(every[system.value][level])

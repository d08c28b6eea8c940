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

_CHAPTERS_9 = """
001-139 140-239 240-279 280-289 290-319 320-389 390-459 460-519 520-579 580-629 630-679 680-709
710-739 740-759 760-779 780-799 800-999 E000-E999 V01-V91"""
_BLOCKS_9 = """
001-009 010-018 020-027 030-041 042-042 045-049 050-059 060-066 070-079 080-088 090-099 100-104
110-118 120-129 130-136 137-139 140-149 150-159 160-165 170-176 179-189 190-199 200-208 209-209
210-229 230-234 235-238 239-239 240-246 249-259 260-269 270-279 280-289 290-294 295-299 300-316
317-319 320-327 330-337 338-338 339-339 340-349 350-359 360-379 380-389 390-392 393-398 401-405
410-414 415-417 420-429 430-438 440-449 451-459 460-466 470-478 480-488 490-496 500-508 510-519
520-529 530-539 540-543 550-553 555-558 560-569 570-579 580-589 590-599 600-608 610-612 614-616
617-629 630-639 640-649 650-659 660-669 670-677 678-679 680-686 690-698 700-709 710-719 720-724
725-729 730-739 740-759 760-763 764-779 780-789 790-796 797-799 800-804 805-809 810-819 820-829
830-839 840-848 850-854 860-869 870-879 880-887 890-897 900-904 905-909 910-919 920-924 925-929
930-939 940-949 950-957 958-959 960-979 980-989 990-995 996-999 E000-E000 E001-E030 E800-E807
E810-E819 E820-E825 E826-E829 E830-E838 E840-E845 E846-E849 E850-E858 E860-E869 E870-E876
E878-E879 E880-E888 E890-E899 E900-E909 E910-E915 E916-E928 E929-E929 E930-E949 E950-E959
E960-E969 E970-E979 E980-E989 E990-E999 V01-V09 V10-V19 V20-V29 V30-V39 V40-V49 V50-V59 V60-V69
V70-V82 V83-V84 V85-V85 V86-V86 V87-V87 V88-V88 V89-V89 V90-V90 V91-V91"""
_CHAPTERS_10 = """
A00-B99 C00-D49 D50-D89 E00-E89 F01-F99 G00-G99 H00-H59 H60-H95 I00-I99 J00-J99 K00-K95 L00-L99
M00-M99 N00-N99 O00-O9A P00-P96 Q00-Q99 R00-R99 S00-T88 U00-U85 V00-Y99 Z00-Z99"""
_BLOCKS_10 = """
A00-A09 A15-A19 A20-A28 A30-A49 A50-A64 A65-A69 A70-A74 A75-A79 A80-A89 A90-A99 B00-B09 B10-B10
B15-B19 B20-B20 B25-B34 B35-B49 B50-B64 B65-B83 B85-B89 B90-B94 B95-B97 B99-B99 C00-C14 C15-C26
C30-C39 C40-C41 C43-C44 C45-C49 C50-C50 C51-C58 C60-C63 C64-C68 C69-C72 C73-C75 C7A-C7A C7B-C7B
C76-C80 C81-C96 D00-D09 D10-D36 D3A-D3A D37-D48 D49-D49 D50-D53 D55-D59 D60-D64 D65-D69 D70-D77
D78-D78 D80-D89 E00-E07 E08-E13 E15-E16 E20-E35 E36-E36 E40-E46 E50-E64 E65-E68 E70-E88 E89-E89
F01-F09 F10-F19 F20-F29 F30-F39 F40-F48 F50-F59 F60-F69 F70-F79 F80-F89 F90-F98 F99-F99 G00-G09
G10-G14 G20-G26 G30-G32 G35-G37 G40-G47 G50-G59 G60-G65 G70-G73 G80-G83 G89-G99 H00-H05 H10-H11
H15-H22 H25-H28 H30-H36 H40-H42 H43-H44 H46-H47 H49-H52 H53-H54 H55-H57 H59-H59 H60-H62 H65-H75
H80-H83 H90-H94 H95-H95 I00-I02 I05-I09 I10-I1A I20-I25 I26-I28 I30-I5A I60-I69 I70-I79 I80-I89
I95-I99 J00-J06 J09-J18 J20-J22 J30-J39 J40-J4A J60-J70 J80-J84 J85-J86 J90-J94 J95-J95 J96-J99
K00-K14 K20-K31 K35-K38 K40-K46 K50-K52 K55-K64 K65-K68 K70-K77 K80-K87 K90-K95 L00-L08 L10-L14
L20-L30 L40-L45 L49-L54 L55-L59 L60-L75 L76-L76 L80-L99 M00-M02 M04-M04 M05-M14 M15-M19 M20-M25
M26-M27 M30-M36 M40-M43 M45-M49 M50-M54 M60-M63 M65-M67 M70-M79 M80-M85 M86-M90 M91-M94 M95-M95
M96-M96 M97-M97 M99-M99 N00-N08 N10-N16 N17-N19 N20-N23 N25-N29 N30-N39 N40-N53 N60-N65 N70-N77
N80-N98 N99-N99 O00-O08 O09-O09 O10-O16 O20-O29 O30-O48 O60-O77 O80-O82 O85-O92 O94-O9A P00-P04
P05-P08 P09-P09 P10-P15 P19-P29 P35-P39 P50-P61 P70-P74 P76-P78 P80-P83 P84-P84 P90-P96 Q00-Q07
Q10-Q18 Q20-Q28 Q30-Q34 Q35-Q37 Q38-Q45 Q50-Q56 Q60-Q64 Q65-Q79 Q80-Q89 Q90-Q99 R00-R09 R10-R19
R20-R23 R25-R29 R30-R39 R40-R46 R47-R49 R50-R69 R70-R79 R80-R82 R83-R89 R90-R94 R97-R97 R99-R99
S00-S09 S10-S19 S20-S29 S30-S39 S40-S49 S50-S59 S60-S69 S70-S79 S80-S89 S90-S99 T07-T07 T14-T14
T15-T19 T20-T25 T26-T28 T30-T32 T33-T34 T36-T50 T51-T65 T66-T78 T79-T79 T80-T88 U00-U49 V00-V09
V10-V19 V20-V29 V30-V39 V40-V49 V50-V59 V60-V69 V70-V79 V80-V89 V90-V94 V95-V97 V98-V99 W00-W19
W20-W49 W50-W64 W65-W74 W85-W99 X00-X08 X10-X19 X30-X39 X50-X50 X52-X58 X71-X83 X92-Y09 Y21-Y33
Y35-Y38 Y62-Y69 Y70-Y82 Y83-Y84 Y90-Y99 Z00-Z13 Z14-Z15 Z16-Z16 Z17-Z17 Z18-Z18 Z19-Z19 Z20-Z29
Z30-Z3A Z40-Z53 Z55-Z65 Z66-Z66 Z67-Z67 Z68-Z68 Z69-Z76 Z77-Z99"""
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
        (CodeLevel.BLOCK, _load_blocks(system)),
        (CodeLevel.CHAPTER, _load_chapters(system)),
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
def _load_blocks(system: CodeSystem) -> _CodeRanges:
    return _CodeRanges.from_resource(_BLOCKS_9 if system is CodeSystem.ICD9 else _BLOCKS_10)


@cache
def _load_chapters(system: CodeSystem) -> _CodeRanges:
    return _CodeRanges.from_resource(_CHAPTERS_9 if system is CodeSystem.ICD9 else _CHAPTERS_10)

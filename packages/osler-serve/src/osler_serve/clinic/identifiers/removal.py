"""A text or a document without what identifies a person: marks in their place, dates moved."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from functools import cache

from osler.sources.common_words import is_listed
from osler.sources.patients import hash_keyed
from osler.sources.records import Document
from osler_serve.clinic.identifiers import chinese, english
from osler_serve.clinic.identifiers.chinese import find_chinese_names
from osler_serve.clinic.identifiers.found import (
    Identifier,
    Patterns,
    Rule,
    compile_rules,
    match_rules,
    settle_overlaps,
)
from osler_serve.clinic.identifiers.places import find_places
from osler_serve.clinic.identifiers.tokens import DOUBTFUL, read_line
from osler_serve.clinic.identifiers.towns import find_towns

# No digit or letter beside it: Chinese writes no blanks, so \b does not do.
_L, _R = r"(?<![0-9A-Za-z])", r"(?![0-9A-Za-z])"
_YEAR = r"(?:1[89]|20)\d\d"

PATTERNS: Patterns = {
    "URL": (r"(?:https?://|www\.)[^\s，。；）)>]+",),
    "AGE": (
        r"\b(?i:(?:wom[ae]n|m[ae]n|lady|gentleman|widow|widower|resident|patient|male|female|teacher"
        r"|farmer) of )(?P<x>9\d|1[01]\d)\b",
        r"(?i:\bage(?:d|:)?\s)(?P<x>9\d|1[01]\d)\b",
        r"(?<![\d.])(?P<x>9\d|1[01]\d)(?=(?:[- ]?(?:year|yr|y/?o\b)|\s?岁"
        r"|(?:st|th|nd|rd) birthday| ?[FM]\b))",
        r"\b(?i:(?:turn(?:ed|s|ing)|aged|reached) |(?:s?he|mum|mom|dad|gran\w*|nana?|mother|father"
        r"|wife|husband|who|i)(?: is| was|['’][sm]| am) (?:now |over |nearly )?)"
        r"(?P<x>9\d|1[01]\d)\b(?! ?(?:%|[mk]?g\b|cm|mm|bpm|/|\.\d))",
    ),
    "EMAIL": (r"[\w.+-]+@[^\W_][\w-]*(?:\.[^\W_][\w-]*)+",),
    "PHONE": (
        rf"\+\d{{1,3}}[ -]?(?:\(\d{{1,4}}\)[ -]?)?\d{{1,4}}(?:[ -]?\d{{2,4}}){{1,4}}{_R}",
        r"(?<![\w-])(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}(?![\w-])",
        rf"{_L}\(?0\d{{2,4}}\)?[ -]?\d{{3,4}}[ -]?\d{{3,4}}{_R}",
        rf"{_L}1[3-9]\d[ -]?\d{{4}}[ -]?\d{{4}}{_R}",
        r"[（(]0\d[）)] ?\d{3,4}[ -]?\d{3,4}(?!\d)",
        r"[（(]0\d{2,4}[）)] ?\d{3,4}[ -]?\d{3,4}(?!\d)",
        rf"{_L}0\d{{2,3}}-?\d{{3,4}}[ -]?\d{{4}}(?: ?(?:转|ext\.?|x) ?\d{{1,6}})?{_R}",
        rf"{_L}[48]00[- ]?\d{{3,4}}[- ]?\d{{3,4}}{_R}",
        # A label, then whatever looks like a number of seven digits or more.
        r"(?i:\b(?:cell|phone|tel|telephone|mobile|ph|fax|pager|contact|call|ring|text|voicemail"
        r"|reached (?:at|on)|home|work)\b|电话|座机|手机号?|致电|请拨|拨打|热线"
        r"|传真|联系方式|微信|来电|去电|电联|通话|小灵通|固话|宅电)"
        r"(?i:\s?(?:no\.?|number|is|at|on|her|him|号码?|记录|为|是|改为))*\s*[:：.#]?\s*"
        r"(?P<x>[(（+]?\d(?:[ ()（）./-]{0,2}\d){6,14}(?:,? ?(?i:x|ext\.?|extension"
        r"|转) ?\d{1,6})?)",
        r"(?i:\b(?:ext|extension|pager|bleep)\b\.?(?: no\.?)?) ?#?(?P<x>\d{3,6})\b",
    ),
    "ID": (
        rf"{_L}\d{{3}}-\d\d-\d{{4}}{_R}",
        rf"{_L}\d{{17}}[\dXx]{_R}",
        rf"{_L}\d{{4}}([ -]?)\d{{4}}\1\d{{4}}\1\d{{3,7}}{_R}",
        rf"{_L}(?=\w*\d)(?=\w*[A-Z])[A-HJ-NPR-Z0-9]{{17}}{_R}",
        rf"{_L}(?:\d{{1,3}}\.){{3}}\d{{1,3}}{_R}(?!\.\d)",
        rf"{_L}0\d{{6,9}}{_R}(?!\.\d)",
        r"(?<![\w.])@[A-Za-z_]\w{2,}",
        r"(?i:微信号?|wechat(?: id)?|whatsapp|instagram|skype)[:：]?\s*(?P<x>[A-Za-z][\w-]{4,})",
        r"QQ(?:号码?)?[:：]?\s*(?P<x>\d{5,11})",
    ),
    "DATE": (
        rf"{_L}{_YEAR}([-/.])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])(?![0-9A-SU-Za-z])",
        r"(?i:\b(?:date|dob|born|on)\b|日期|生日|出生)[:： ]*(?P<x>(?:19|20)\d\d[01]\d[0-3]\d)"
        r"(?!\d)",
        rf"{_L}\d{{1,2}}([-/.])\d{{1,2}}\1(?:{_YEAR}|\d\d){_R}",
        rf"{_L}\d{{1,2}}([-/.])(?i:[ivx]{{1,4}})\1(?:{_YEAR}|\d\d){_R}",
        # A month and a day that no score, strength or acuity has; others where a word says so.
        r"(?<![\d/.])(?P<x>(?:0?[1-5]|0?[7-9]|1[0-2])/(?:1[3-9]|2\d|3[01]))(?![\d/%]|\.\d)",
        r"(?i:\b(?:on|since|until|till|wk of|week of|dated|before|after|through|thru|due|lmp|edd)) "
        r"(?P<x>(?:0?[1-9]|1[0-2])/(?:0?[1-9]|[12]\d|3[01]))(?![\d/%]|\.\d)",
        r"(?i:\bfrom )(?P<x>\d{1,2}/\d{1,2})(?= (?:to|through|until) \d{1,2}/(?:1[1-9]|2\d|3[01]))",
        r"(?<![\d/.-])(?P<x>(?:0?[1-9]|1[0-2])[-/](?:0?[1-9]|[12]\d|3[01]))"
        r"(?=\s*(?:\d{1,2}[:：]\d\d|上午|下午|晚|早|凌晨|中午|夜))",
    ),
}


_YEAR_FIRST = re.compile(r"(\d{4})(年|[-/.])(\d{1,2})(月|[-/.])(\d{1,2})(日|号)?")
_PART = re.compile(r"\b[A-Z][a-zà-ÿ'’-]{2,}\b|[\u4e00-\u9fff]{2,}")
_FARTHEST = 365
"""Days by which dates are moved, at most, always back."""


@cache
def _rules() -> tuple[Rule, ...]:
    """Compiled when first used: it takes a seventh of the time in which a process starts."""
    return compile_rules(PATTERNS, english.PATTERNS, chinese.PATTERNS)


def find_identifiers(text: str, named: Collection[str] = ()) -> list[Identifier]:
    """All that the network finds and the rules of both languages, in order, and the words `named`
    wherever they stand. Raises `ModelError` where the multilingual encoder is not there."""
    found: list[Identifier] = []
    at = 0
    for line in text.splitlines(keepends=True):  # an identifier does not go over a line
        found += [
            Identifier(one.kind, at + one.start, at + one.end) for one in _find_together(line)
        ]
        at += len(line)
    words = {*_name_words(text, found), *named}
    return settle_overlaps((*found, *_find_again(text, words)))


def _find_together(line: str) -> list[Identifier]:
    if not line.strip():
        return []
    read = read_line(line)
    ruled = [
        one
        for one in find_by_rules(line)
        if one.kind not in DOUBTFUL or not read.speaks_against(one)
    ]
    return settle_overlaps((*ruled, *read.find_identifiers(ruled)))


def find_by_rules(line: str) -> list[Identifier]:
    """All that the rules find in one line, in order."""
    return settle_overlaps(_find_in_line(line))


def _find_in_line(line: str) -> Iterator[Identifier]:
    for one in match_rules(_rules(), line):
        if one.kind != "NAME" or not _is_heading(line[one.start : one.end]):
            yield one
    yield from find_places(line)
    yield from find_towns(line)
    yield from find_chinese_names(line)


def _is_heading(words: str) -> bool:
    """Whether each word is one that stands beside names (Pt, Admit): none is a name."""
    return all(is_listed(word.strip(".,:"), "never", "short") for word in words.split())


def _name_words(text: str, found: Iterable[Identifier]) -> set[str]:
    """Names, and the parts of English ones."""
    names = {text[one.start : one.end] for one in found if one.kind == "NAME"}
    return {word for name in names for word in _PART.findall(name)}


def _find_again(text: str, words: Iterable[str]) -> Iterator[Identifier]:
    """Where words stand again without what gave them away."""
    again = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    for match in re.finditer(rf"(?<![A-Za-z])(?:{again})(?![A-Za-z])", text) if again else ():
        yield Identifier("NAME", match.start(), match.end())


def remove_identifiers(text: str, shift: int = 0, named: Collection[str] = ()) -> str:
    """The text with `[NAME]`, `[PHONE]`, … in their place, and in that of `named`.

    Whole dates that are written year first are moved by `shift` days, so that the time between
    two of one patient stays; other dates become `[DATE]`, and a year alone stays.
    """
    pieces, at = [], 0
    for one in find_identifiers(text, named):
        pieces += [text[at : one.start], _replace_one(one, text[one.start : one.end], shift)]
        at = one.end
    return "".join((*pieces, text[at:]))


def _replace_one(one: Identifier, words: str, shift: int) -> str:
    if one.kind != "DATE":
        return f"[{one.kind}]"
    if re.fullmatch(r"\d{4}年?", words):
        return words
    if shift and (match := _YEAR_FIRST.fullmatch(words)):
        year, first, month, second, day, last = match.groups()
        try:
            moved = date(int(year), int(month), int(day)) + timedelta(days=shift)
        except (ValueError, OverflowError):  # no such day
            return "[DATE]"
        wide = len(month) == 2 or first in "-/."
        numbers = (f"{moved:%m}", f"{moved:%d}") if wide else (str(moved.month), str(moved.day))
        return f"{moved.year}{first}{numbers[0]}{second}{numbers[1]}{last or ''}"
    return "[DATE]"


def remove_from_document(document: Document) -> Document:
    """The document without identifiers, also in its id and title, which files often name; a name
    that is found in one part is hidden in all."""
    parts = [document.title, *(one.text for one in document.sections)]
    named = {word for part in parts for word in _name_words(part, find_identifiers(part))}
    shift = -1 - int(hash_keyed(f"shift {document.id}"), 16) % _FARTHEST

    def clean(text: str) -> str:
        return remove_identifiers(text, shift, named)

    return replace(
        document,
        id=f"text-{hash_keyed(document.id)}",
        title=clean(document.title),
        sections=tuple(
            replace(one, text=clean(one.text), path=tuple(map(clean, one.path)))
            for one in document.sections
        ),
        url="",
        origin="",
        checksum="",
    )

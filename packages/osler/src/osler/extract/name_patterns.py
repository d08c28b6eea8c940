"""Recognises names by their form: "-itis", "… syndrome", "…综合征", with the words before them.

A cheap recogniser beside the graph and the names that texts introduce. It knows endings and head
words of medicine in general (`forms.toml`), no list of diseases or drugs: names without such a
form are missed, and an ending may mislead. The type is that of the form, and so a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from osler.text import is_cjk, read_packaged_table

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9\-]*|\d+")
_GAP = re.compile(r" ?")
_RUN = re.compile(r"[\u4e00-\u9fffA-Za-z0-9\-]{2,}")
# Words before the head of an English name.
_MOST_BEFORE = 3
_MOST_HAN = 10
# Least length of a word with a listed ending: "coma" is no "-oma".
_SHORT_ENDING = 5
_CUT_ZH = re.compile(
    "[的了是在和与及或对由于因为使让把被将即则也都很更最以至到从向其该此这那每如若能可会应须需要并而但且不未无非非有患]|"
    "引起|导致|造成|诱发|治疗|用于|预防|表现|包括|发生|出现|合并|伴随|伴|常见|主要|诊断|首选|症状|患者|病人|给予|服用|"
    "使用|口服|检测|控制|降低|升高|增加|减少|严重|通过|进行|属于|称为|一种|一类|多种|各种|其他|以下|之一|发展|原因|存在|"
    "接受|考虑|改善|缓解|避免|损害|影响|抑制(?!剂|药)|促进|怀疑|确诊|反复|持续|明显|早期|长期|容易|经常|停用|暂停|选|判读|排查|代替|替代|既往|监测"
)


Words = Annotated[frozenset[str], BeforeValidator(str.split)]
Endings = Annotated[tuple[str, ...], BeforeValidator(str.split)]


class NameForm(BaseModel):
    type: str
    endings: Endings = ()
    heads: Words = frozenset()
    zh: Endings = ()
    alone: bool = True


class WordsBefore(BaseModel):
    """The words that may stand before the head of a name."""

    words: Words
    adjectives: Endings
    barred: Words = Field(alias="not")
    """Words that look like adjectives of a name but are not."""
    generic: Words
    """Heads that are no name by themselves."""


class NameForms(BaseModel):
    form: tuple[NameForm, ...]
    before: WordsBefore


@cache
def packaged_forms() -> NameForms:
    return NameForms.model_validate(read_packaged_table(__package__, "forms.toml"))


def type_of(name: str) -> str:
    """The entity type of a name by its form, "" for none."""
    if name and is_cjk(name[-1]):
        return next((f.type for f in packaged_forms().form if name.endswith(f.zh)), "")
    units = name.split()
    form = _form_of_head(units[-1]) if units else None
    return form.type if form and (form.alone or len(units) > 1) else ""


def find_names(text: str) -> Iterator[tuple[int, int]]:
    """Spans of names in the text; they do not overlap and are ordered within each script."""
    yield from _english_names(text)
    yield from _chinese_names(text)


def _form_of_head(word: str) -> NameForm | None:
    word = word.casefold()
    for form in packaged_forms().form:
        if word in form.heads:
            return form
        if any(
            word.endswith(ending) and len(word) >= max(_SHORT_ENDING, len(ending) + 2)
            for ending in form.endings
        ):
            return form
    return None


def _english_names(text: str) -> Iterator[tuple[int, int]]:
    words = list(_WORD.finditer(text))
    ended = 0
    for place, word in enumerate(words):
        form = _form_of_head(word[0])
        if form is None or _goes_on(words, place, text):
            continue
        first = _name_begin(words, place, text)
        is_bare = not form.alone or word[0].casefold() in packaged_forms().before.generic
        if (first == place and is_bare) or words[first].start() < ended:
            continue
        # Names must not overlap: the next may begin only here.
        ended = word.end()
        yield words[first].start(), ended


def _goes_on(words: list[re.Match[str]], place: int, text: str) -> bool:
    """Whether the word precedes the head of a longer name, as in "hepatitis B vaccine"."""
    if not _belongs_to_name(words[place][0]):
        return False
    for one, other in pairwise(words[place : place + _MOST_BEFORE + 1]):
        if not _are_adjacent(one, other, text):
            return False
        if _form_of_head(other[0]) is not None:
            return True
        if not _belongs_to_name(other[0]):
            return False
    return False


def _name_begin(words: list[re.Match[str]], place: int, text: str) -> int:
    """Index of the first word of the name whose head is at `place`."""
    first = place
    while (
        first > 0
        and place - first < _MOST_BEFORE
        and _are_adjacent(words[first - 1], words[first], text)
        and _belongs_to_name(words[first - 1][0])
    ):
        first -= 1
    return first


def _are_adjacent(one: re.Match[str], other: re.Match[str], text: str) -> bool:
    return _GAP.fullmatch(text, one.end(), other.start()) is not None


def _belongs_to_name(word: str) -> bool:
    """Whether a word before a head belongs to the name."""
    known, word = packaged_forms().before, word.casefold()
    if word in known.barred:
        return False
    is_adjective = len(word) > 4 and word.endswith(known.adjectives)
    return word in known.words or is_adjective or _form_of_head(word) is not None


def _chinese_names(text: str) -> Iterator[tuple[int, int]]:
    """Runs of Han characters between two phrase boundaries that end like a name."""
    for run in _RUN.finditer(text):
        begin = run.start()
        for cut in [*_CUT_ZH.finditer(run[0]), None]:
            end = run.start() + cut.start() if cut else run.end()
            if span := _name_zh(text, begin, end):
                yield span
            begin = run.start() + cut.end() if cut else end


def _name_zh(text: str, begin: int, end: int) -> tuple[int, int] | None:
    phrase = text[begin:end]
    is_long = 2 <= len(phrase) <= _MOST_HAN and phrase not in packaged_forms().before.generic
    return (begin, end) if is_long and is_cjk(phrase[-1]) and type_of(phrase) else None

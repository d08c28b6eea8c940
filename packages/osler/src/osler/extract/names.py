"""Names that the texts themselves introduce: titles, abbreviations, other names, definitions,
and words with the form of a medical name ("-itis", "… syndrome", "…综合征").

They give texts without a concept graph concepts to be linked by. The rules look at form, in
English and Chinese. Of medicine only word forms are known here (`forms.toml`), no list of diseases
or drugs: names without such a form are missed, and an ending may mislead. The type is that of the
form, and so a guess.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from osler.graph.derive import normalize_name
from osler.text import has_cjk, is_cjk, read_packaged_table, split_sentences
from osler.types import Passage

PREFIX = "TEXT:"
"""Prefix of concepts that occur only in texts."""
_HAN = "\u4e00-\u9fff"
# An abbreviation in brackets: "(COPD)", "（CKD；见下）".
_SHORT = re.compile(r"[(（]\s*([A-Za-z][A-Za-z0-9\-]{1,9})(?:[;,，；][^()（）]*)?\s*[)）]")
_ALSO_ZH = re.compile(
    rf"([{_HAN}A-Za-z0-9\-]{{2,20}})[（(]?，?(?:又称为?|也称为?|亦称|简称为?|俗称)[“\"]?([{_HAN}]{{2,16}})"
)
_ALSO = re.compile(
    r"([A-Za-z][\w'\-]*(?: [\w'\-]+){0,4}?),? (?:\(?also (?:known as|called|termed)) (?:the )?"
    r"([A-Za-z][\w'\-]*(?: [a-z][\w'\-]*){0,3})(?=[,.;)]| is\b| are\b)"
)
_IS_A = re.compile(r"^(?:An? |The )?([A-Z][\w'\-]*(?: [\w'\-]+){0,3}?) (?:is|are) (?:an?|the) ")
_IS_A_ZH = re.compile(
    rf"^([{_HAN}A-Za-z0-9\-]{{2,14}}?)(?:[（(][^（）()]*[)）])?，?是(?:一种|一类|指|由)"
)
_PLAIN_WORDS = """this that these those it there he she they we you who what which such one other
another here patients people treatment diagnosis introduction overview summary background methods
results conclusion conclusions abstract symptoms causes prevention"""
_NO_NAME = frozenset(_PLAIN_WORDS.split())
_NO_NAME_ZH = re.compile(
    "[该此这其本某之的]|^(?:如果|目前|它|他|她|但|而|患者|主要|常见|治疗|诊断|概述)"
)
# Upper bounds on a title that may be a name: English words, Chinese characters.
_LONGEST_TITLE = (4, 12)


@dataclass(frozen=True, slots=True)
class IntroducedName:
    """A name that a text introduces, with another spelling or ""."""

    name: str
    other: str = ""


def text_concept_id(name: str) -> str:
    """Concept identifier of a name that no graph has; the same in every text."""
    return PREFIX + hashlib.sha256(normalize_name(name).encode()).hexdigest()[:12]


def introduced_names(passage: Passage, *, by_form: bool = True) -> Iterator[IntroducedName]:
    """The names that a chunk introduces, in text order; `by_form`: also those known by their
    form."""
    if _is_name(passage.title, *_LONGEST_TITLE):
        yield IntroducedName(passage.title)
    for start, end in split_sentences(passage.text):
        sentence = passage.text[start:end].strip()
        yield from _find_abbreviations(sentence)
        yield from _other_names(sentence)
        for pattern in (_IS_A, _IS_A_ZH):
            if (match := pattern.match(sentence)) and _is_name(match[1], 4, 14):
                yield IntroducedName(match[1])
        for begin, finish in find_names(sentence) if by_form else ():
            yield IntroducedName(sentence[begin:finish])


def _is_name(text: str, words: int, characters: int) -> bool:
    """Whether the text is as short as a name and neither a pronoun nor a generic heading."""
    if has_cjk(text):
        return 2 <= len(text) <= characters and not _NO_NAME_ZH.search(text)
    parts = text.split()
    first = parts[0].casefold() if parts else ""
    return (
        0 < len(parts) <= words
        and len(text) > 2
        and first not in _NO_NAME
        and text[0].isalpha()
        and not re.search(r"[?!:;,/]", text)
    )


def _find_abbreviations(sentence: str) -> Iterator[IntroducedName]:
    """Long forms with their abbreviations (Schwartz and Hearst 2003); in Chinese the name right
    before the bracket."""
    for found in _SHORT.finditer(sentence):
        short, before = found[1], sentence[: found.start()].rstrip()
        if not any(char.isupper() for char in short):
            continue
        is_zh = bool(before) and is_cjk(before[-1])
        long = _last_name_zh(before) if is_zh else long_form(short, before)
        if long:
            yield IntroducedName(long, short)


def _last_name_zh(before: str) -> str:
    """The run at the end, from the last phrase boundary, with the figures and letters of a name:
    "2型糖尿病", "β受体阻滞剂"."""
    run = re.search(rf"[{_HAN}A-Za-zα-ωΑ-Ω0-9\-]+$", before)
    name = re.split(f"[是为即称例]|{_CUT_ZH.pattern}", run[0])[-1] if run else ""
    return name if 3 <= len(name) <= 16 else ""


def long_form(short: str, before: str) -> str:
    """The words at the end of `before` that `short` abbreviates; "" without any.

    From the last letter back, each letter of the short form is found in the long one, and
    the first begins a word. The long form has at most as many words as the short one has
    letters and five, or twice as many (Schwartz and Hearst 2003, Fig. 1).
    """
    letters = [char for char in short.casefold() if char.isalnum()]
    most = min(len(letters) + 5, 2 * len(letters))
    words = before.split()[-most:]
    text = " ".join(words)
    lowered, at = text.casefold(), len(text) - 1
    # Schwartz and Hearst's algorithm: match letters from right to left.
    for place in range(len(letters) - 1, -1, -1):
        while at >= 0 and not (
            lowered[at] == letters[place]
            and (place > 0 or at == 0 or not lowered[at - 1].isalnum())
        ):
            at -= 1
        if at < 0:
            return ""
        at -= 1
    long = text[at + 1 :].strip(" ,;:")
    is_longer = len(long) > len(short) + 2 and len(long.split()) >= min(2, len(letters))
    return long if is_longer and _is_name(long, most, 16) else ""


def _other_names(sentence: str) -> Iterator[IntroducedName]:
    for found in _ALSO_ZH.finditer(sentence):
        name = re.split("[是的和与及或在对由，]", found[1])[-1]
        if name.startswith("一"):  # "X is a disease, also called Y": of X, not of the disease
            subject = _IS_A_ZH.match(sentence)
            name = subject[1] if subject else ""
        if _is_name(name, 5, 16):
            yield IntroducedName(name, found[2])
    for found in _ALSO.finditer(sentence):
        if _is_name(found[1], 5, 16) and _is_name(found[2], 4, 16):
            yield IntroducedName(found[1], found[2])


_WORD = re.compile(r"[A-Za-z][A-Za-z0-9\-]*|\d+")
_GAP = re.compile(r" ?")
_RUN = re.compile(r"[\u4e00-\u9fffA-Za-z0-9\-]{2,}")
# Words before the head of an English name.
_MOST_BEFORE = 3
_MOST_HAN = 10
# Least length of a word with a listed ending: "coma" is no "-oma".
_SHORT_ENDING = 5
_CUT_ZH = re.compile(
    # What is no pneumonia is another thing than what is not insulin-dependent.
    "(?<!合)并非|(?<=[是绝])非|对(?!乙酰)|[的了是在和与及或由于因为使让把被将即则也都很更最以至到从向其该此这那每如若能可会应须需要并而但且不未无有患]|"
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
    generic = packaged_forms().before.generic
    for run in _RUN.finditer(text):
        begin = run.start()
        for cut in [*_CUT_ZH.finditer(run[0]), None]:
            end = run.start() + cut.start() if cut else run.end()
            phrase = text[begin:end]
            is_long = 2 <= len(phrase) <= _MOST_HAN
            if is_long and is_cjk(phrase[-1]) and phrase not in generic and type_of(phrase):
                yield begin, end
            begin = run.start() + cut.end() if cut else end

"""Names that the texts themselves introduce: titles, abbreviations, other names, definitions,
and words with the form of a medical name (`name_patterns`).

They give texts without a concept graph concepts to be linked by. The rules look at form, in
English and Chinese; of medicine only word forms are known here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from osler.extract import name_patterns
from osler.graph.normal import normalize_name
from osler.text import has_cjk, is_cjk, split_sentences
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
        for begin, finish in name_patterns.find_names(sentence) if by_form else ():
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
    """The run of Han characters at the end, from the last phrase boundary."""
    run = re.search(rf"[{_HAN}]+$", before)
    name = (
        re.split("[是为的和与及或在对由将即称有]|患者|包括|治疗|导致|引起", run[0])[-1]
        if run
        else ""
    )
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

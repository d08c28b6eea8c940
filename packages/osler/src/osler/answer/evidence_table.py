"""What the studies behind an answer did and found, as they state it: a table in which each number
is a quote.

A cell is a span of its passage, so a number that is not in the text cannot be built. Nothing is
computed, converted or weighed; what a text does not state is left empty. No model is asked.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from osler.sources.catalogue import BOOK, GUIDELINE, WEB, WIKI
from osler.text import read_packaged, split_sentences
from osler.types import Evidence, Hit, Passage

Design = Literal[
    "guideline",
    "systematic-review",
    "randomised-trial",
    "trial",
    "cohort",
    "case-control",
    "cross-sectional",
    "book",
    "narrative",
    "case-report",
    "encyclopaedia",
    "laboratory",
    "web",
]
DESIGNS: tuple[Design, ...] = get_args(Design)
"""Those on which more rests stand first."""
_OF_SOURCE: dict[str, Design] = {
    BOOK: "book",
    GUIDELINE: "guideline",
    WIKI: "encyclopaedia",
    WEB: "web",
}
_WORDS = tomllib.loads(read_packaged(__package__, "designs.toml"))


def _read_rules(place: str) -> tuple[tuple[re.Pattern[str], Design], ...]:
    return tuple(
        (re.compile("|".join(rule["words"]), re.IGNORECASE), rule["design"])
        for rule in _WORDS[place]
    )


_OF_RECORD, _OF_TITLE, _OF_TEXT = map(_read_rules, ("record", "title", "text"))
# What others did stands in the background; it says nothing of the study's own design.
_BACKGROUND = re.compile(
    r"(?:^|\n|(?<=[.?!] ))(?:BACKGROUND|INTRODUCTION|SUMMARY OF BACKGROUND DATA|CONTEXT)\b"
    r"[^:\n]{0,30}:"
    r".*?(?=(?:\n|(?<=[.?!])\s)[A-Z][A-Z ,/&]{3,60}:|\Z)",
    re.DOTALL,
)
_SMALL, _TENS = (_WORDS["numbers"][place].split() for place in ("small", "tens"))
_NUMBER_WORDS = dict(zip(_SMALL, range(1, 20), strict=True)) | dict(
    zip(_TENS, range(20, 100, 10), strict=True)
)
_COUNT = r"\d{1,3}(?:,\d{3}){1,3}|\d{1,9}"
_WORD = rf"(?:{'|'.join(_NUMBER_WORDS)}|hundred|thousand|and)\b"
_WORDED = rf"{_WORD}(?:[- ]{_WORD}){{0,7}}+"
_BETWEEN = r"(?:[ -](?!(?:of|and|the|to|were|years?|months?)\b)[\w/()]++){0,6}?"
_SAMPLE = re.compile(
    rf"\bN\s*=\s*(?P<stated>{_COUNT})"
    rf"|(?<![\w.,=<>≤≥-])(?P<count>{_COUNT}|{_WORDED})(?!\s*%){_BETWEEN}"
    rf"[ -](?:{'|'.join(_WORDS['numbers']['people'].split())})\b"
    rf"|(?<!\d)(?P<zh>\d{{1,9}})\s*(?:例|名)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StudyDesign:
    """A design with what says so."""

    design: Design
    by: Literal["record", "source", "text"]
    said: str
    """The record's type, the source's name, or the words."""


@dataclass(frozen=True, slots=True)
class SampleSize:
    """How many were studied, with the place of the number: `text[start:end]`."""

    count: int
    start: int
    end: int


def design_of(passage: Passage) -> StudyDesign | None:
    """The design of what the passage is from; `None` where nothing says it."""
    for pattern, design in _OF_RECORD:
        if found := pattern.search(passage.locator.kind):
            # PubMed files systematic reviews under "Review" too.
            own = read_design(passage.title, "") if design == "narrative" else None
            return own or StudyDesign(design, "record", found.string)
    if own_source := _OF_SOURCE.get(passage.source):
        return StudyDesign(own_source, "source", passage.source)
    return read_design(passage.title, passage.text)


def read_design(title: str, text: str) -> StudyDesign | None:
    """The design that the words of title and abstract say; `None` where they do not."""
    own = _BACKGROUND.sub(" ", text)
    for rules, words in ((_OF_TITLE, title), (_OF_TEXT, own if own.strip() else text)):
        for pattern, design in rules:
            if found := pattern.search(words):
                return StudyDesign(design, "text", found[0])
    return None


def read_sample_size(text: str) -> SampleSize | None:
    """The number of those studied, where the text states one."""
    background = [found.span() for found in _BACKGROUND.finditer(text)]
    found = [
        size
        for size in _find_counts(text)
        if not any(start <= size.start < end for start, end in background)
    ]
    return found[0] if found else None


def _find_counts(text: str) -> Iterator[SampleSize]:
    for match in _SAMPLE.finditer(text):
        group = next(name for name in ("stated", "count", "zh") if match[name])
        count = _read_count(match[group])
        if count > 1:
            start = match.start(group)
            yield SampleSize(count, start, start + len(match[group].rstrip(" -")))


def _read_count(words: str) -> int:
    if words[0].isdigit():
        return int(words.replace(",", "").rstrip())
    total = current = 0
    for word in re.findall(r"[a-z]+", words.casefold()):
        if word == "thousand":
            total, current = total + (current or 1) * 1000, 0
        elif word == "hundred":
            current = (current or 1) * 100
        else:
            current += _NUMBER_WORDS.get(word, 0)
    return total + current


Span = tuple[int, int]
"""Start and end in the text."""
_NUMBER = r"[-−+]?(?:\d{1,9}(?:[·.]\d{1,9})?|[·.]\d{1,9})"
# The ratio, difference or coefficient that an effect is; a share (below) may stand nearer to the
# number and only say of what it is.
_COMPARES = (
    r"odds ratios?|hazard ratios?|risk ratios?|rate ratios?|relative risks?"
    r"|risk (?:difference|reduction)|mean difference|regression coefficient"
    r"|(?:\b|(?<=[a-z]))(?:AOR|OR|AHR|HR|RRR|RR|IRR|ARR|SMD|WMD|MD|AUC|NNT)(?=\b|[A-Z]?\d)"
    r"|β|\bbeta\b|比值比|风险比|相对危险度|危险比|均数差"
)
_SHARES = r"sensitivity|specificity|survival|incidence|prevalence|存活率|发生率|患病率"
_LEVEL = r"(?:9[059](?:\.\d)?\s*(?:%|per ?cent|percent)\s*)?"
_NAMED = (
    rf"{_LEVEL}(?:C\.?I\.?s?(?![a-z])|[Cc]onfidence (?:[Ii]ntervals?|limits)|置信区间|可信区间)"
)
_ASIDE = r"(?:\s*[,;]?\s*[(\[]\s*(?:95 ?% ?)?CI\s*[)\]]|\s*[\[(]CI[\])]|\s+of [A-Z]{2,3})?"
_BOUNDS = (
    rf"(?P<low>{_NUMBER})\s*(?:%|per ?cent)?\s*(?:-|–|—|~|to\b|,|;|and\b|至)\s*(?P<high>{_NUMBER})"
)
_VALUE_BETWEEN = (
    r"(?P<unit>\s*(?!and\b|with\b)(?:%|per ?cent|percent"
    r"|[a-zA-Zµ°]+(?:/[a-zA-Z²³0-9]+)?)(?![a-z]))?"
    r"(?:\s*[,;(\[:，（]|\s+and\b|\s+with an?\b)*\s*(?:[Pp]\s*[<=>≤]\s*[\d.·]+\s*[,;]\s*)?"
)
_INTERVAL = re.compile(
    rf"(?<![\w.])(?P<value>{_NUMBER})(?!\s*(?:%|per ?cent)\s*(?:CI|[Cc]onf)){_VALUE_BETWEEN}"
    rf"{_NAMED}{_ASIDE}[\s:=,(\[：，]*{_BOUNDS}"
)
_NAMED_FIRST = re.compile(
    rf"[(\[]\s*{_NAMED}\s*[)\]](?:\s*[,:=]|\s+of|\s+was)?\s*(?P<value>{_NUMBER})(?P<unit>\s*%)?"
    rf"\s*[(\[]\s*{_BOUNDS}"
)
_BARE = re.compile(
    rf"(?P<name>{_COMPARES})[)\]]?[^.;()\d]{{0,40}}?(?:=|:|,|\bwas\b|\bof\b)\s*(?P<value>{_NUMBER})"
)
_P_VALUE = re.compile(r"[Pp]\s*[<=>≤]\s*$")
_REACH = 240
"""Characters before a value in which its measure is looked for."""


@dataclass(frozen=True, slots=True)
class StatedEffect:
    """An effect of a text, in spans of it; a part that is not stated is `None`."""

    value: Span
    measure: Span | None = None
    unit: Span | None = None
    low: Span | None = None
    high: Span | None = None

    @property
    def whole(self) -> Span:
        """From the first part to the last: what is quoted."""
        parts = [
            part for part in (self.measure, self.value, self.unit, self.low, self.high) if part
        ]
        return min(start for start, _ in parts), max(end for _, end in parts)


def read_effects(text: str) -> tuple[StatedEffect, ...]:
    """The effects that the text states, in its order, each value once."""
    found: dict[int, StatedEffect] = {}
    for pattern in (_INTERVAL, _NAMED_FIRST):
        for match in pattern.finditer(text):
            effect = StatedEffect(
                match.span("value"),
                _find_measure(text, match.start("value")),
                _span_of(match, "unit"),
                match.span("low"),
                match.span("high"),
            )
            if not _P_VALUE.search(text, 0, effect.value[0]):
                found.setdefault(effect.value[0], effect)
    taken = [effect.whole for effect in found.values()]
    for match in _BARE.finditer(text):
        place = match.start("value")
        if not any(start <= place < end for start, end in taken):
            found.setdefault(place, StatedEffect(match.span("value"), match.span("name")))
    return tuple(found[place] for place in sorted(found))


def _span_of(match: re.Match[str], group: str) -> Span | None:
    if not match[group]:
        return None
    start, end = match.span(group)
    return start + len(match[group]) - len(match[group].lstrip()), end


def _find_measure(text: str, before: int) -> Span | None:
    """The last comparison that is named before the place in its sentence, else the last share."""
    start = max(0, before - _REACH)
    if stop := list(re.finditer(r"[.;] (?=[A-Z])", text[start:before])):
        start += stop[-1].end()
    for names in (_COMPARES, _SHARES):
        if named := list(re.compile(names).finditer(text, start, before)):
            return named[-1].span()
    return None


USE = "table"
"""`Evidence.use` of a cell."""
# What a text says of itself that bears on how far it can be trusted; no judgement is made of it.
_HINTS = re.compile(
    r"double[- ]blind(?:ed)?|single[- ]blind(?:ed)?|open[- ]label|unblinded|placebo"
    r"|intention[- ]to[- ]treat|allocation conceal\w+|lost to follow[- ]?up|retrospective(?:ly)?"
    r"|self-report(?:ed)?|not randomi[sz]ed|no control group|single[- ]cent(?:er|re)|small sample"
    r"|双盲|单盲|安慰剂|失访|意向性分析",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class QuotedEffect:
    """An effect and its parts, each a quote; a part that is not stated is `None`."""

    value: Evidence
    measure: Evidence | None
    unit: Evidence | None
    low: Evidence | None
    high: Evidence | None
    sentence: Evidence
    """The sentence or sentences that hold all of them."""


@dataclass(frozen=True, slots=True)
class StudyRow:
    """A passage of a study: its design, how many took part, what was found."""

    passage: Passage
    design: StudyDesign | None
    sample: Evidence | None
    people: Evidence | None
    """The sentence that states the sample."""
    effects: tuple[QuotedEffect, ...]
    hints: tuple[Evidence, ...]


def tabulate_studies(hits: Iterable[Hit]) -> list[StudyRow]:
    """A row for each passage, in order; passages that state no number have one too."""
    unique: dict[str, Hit] = {}
    for hit in hits:
        if hit.passage.text.strip():
            unique.setdefault(hit.passage.id, hit)
    return [_read_study(hit) for hit in unique.values()]


def _read_study(hit: Hit) -> StudyRow:
    text = hit.passage.text
    size = read_sample_size(text)
    hints = {match[0].casefold(): match.span() for match in reversed([*_HINTS.finditer(text)])}
    return StudyRow(
        hit.passage,
        design_of(hit.passage),
        _quote(hit, (size.start, size.end)) if size else None,
        _quote(hit, _enclosing_sentences(text, (size.start, size.end))) if size else None,
        tuple(_quote_effect(hit, effect) for effect in read_effects(text)),
        tuple(_quote(hit, span) for span in sorted(hints.values())),
    )


def _quote(hit: Hit, span: Span) -> Evidence:
    return Evidence(hit, *span, USE)


def _quote_effect(hit: Hit, effect: StatedEffect) -> QuotedEffect:
    parts = (effect.measure, effect.unit, effect.low, effect.high)
    measure, unit, low, high = (_quote(hit, part) if part else None for part in parts)
    sentence = _quote(hit, _enclosing_sentences(hit.passage.text, effect.whole))
    return QuotedEffect(_quote(hit, effect.value), measure, unit, low, high, sentence)


def _enclosing_sentences(text: str, span: Span) -> Span:
    touched = [each for each in split_sentences(text) if each[0] < span[1] and span[0] < each[1]]
    return min([span[0], *(a for a, _ in touched)]), max([span[1], *(b for _, b in touched)])


def flat_rows(rows: Iterable[StudyRow]) -> Iterator[dict[str, Any]]:
    """A flat row for each effect, and one for a study that states none, for files and the API."""
    for row in rows:
        place = row.passage.locator
        shared = {
            "title": row.passage.title,
            "year": place.year,
            "design": row.design.design if row.design else "",
            "design_by": row.design.by if row.design else "",
            "design_said": row.design.said if row.design else "",
            "n": row.sample.quote if row.sample else "",
            "people": row.people.quote if row.people else "",
            "hints": "; ".join(hint.quote for hint in row.hints),
        }
        for effect in row.effects or (None,):
            yield {**shared, **_effect_cells(effect), "passage": row.passage.id}


def _effect_cells(effect: QuotedEffect | None) -> dict[str, Any]:
    names = ("measure", "value", "unit", "low", "high")
    parts = {name: getattr(effect, name, None) for name in names}
    cells: dict[str, Any] = {name: part.quote if part else "" for name, part in parts.items()}
    quote = effect.sentence if effect else None
    return {
        **cells,
        "quote": quote.quote if quote else "",
        "start": quote.start if quote else None,
        "end": quote.end if quote else None,
    }

"""Effects as a text states them: measure, value and interval, each with its place in the text.

A number that is not in the text cannot be built: every part is a span. Nothing is computed, and a
number whose measure the text does not name has none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
_BETWEEN = (
    r"(?P<unit>\s*(?!and\b|with\b)(?:%|per ?cent|percent"
    r"|[a-zA-Zµ°]+(?:/[a-zA-Z²³0-9]+)?)(?![a-z]))?"
    r"(?:\s*[,;(\[:，（]|\s+and\b|\s+with an?\b)*\s*(?:[Pp]\s*[<=>≤]\s*[\d.·]+\s*[,;]\s*)?"
)
_INTERVAL = re.compile(
    rf"(?<![\w.])(?P<value>{_NUMBER})(?!\s*(?:%|per ?cent)\s*(?:CI|[Cc]onf)){_BETWEEN}"
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

"""Tables of the natural questions: shares with intervals, beside the simple rule's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from natural.asking import AskedRow
from osler_lab.evaluate.intervals import difference, mean, proportion

Row = AskedRow
MEASURES: Mapping[str, Callable[[Row], float]] = {
    "right in a quote": lambda row: float(row.any and row.outcome != "refused"),
    "right first": lambda row: float(row.first and row.outcome != "refused"),
    "answered": lambda row: float(row.outcome == "answer"),
    "nearest": lambda row: float(row.outcome == "nearest"),
    "refused": lambda row: float(row.outcome == "refused"),
}
"""Of answerable questions, or of all where nobody said which are."""


def area_under_curve(rows: Sequence[Row]) -> float | None:
    """Chance that a question whose first quote is right has more sureness than another; `None`
    without both, or without sureness. What is refused has none, and counts as 0."""
    scored = [(row.sure or 0.0, row.first and row.answerable is not False) for row in rows]
    good = [sure for sure, right in scored if right]
    bad = [sure for sure, right in scored if not right]
    if not good or not bad or all(row.sure is None for row in rows):
        return None
    wins = sum((a > b) + 0.5 * (a == b) for a in good for b in bad)
    return wins / (len(good) * len(bad))


def measure_ways(rows: Sequence[Row], rule: str = "cosine") -> list[dict[str, object]]:
    """A document for each way of each set: n, figures, and differences from the rule, paired."""
    return [dict(_measure_way(name, way, rows, rule)) for name, way in _pairs_of(rows)]


def _pairs_of(rows: Sequence[Row]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((row.set, row.way) for row in rows))


def _measure_way(
    name: str, way: str, rows: Sequence[Row], rule: str
) -> Iterator[tuple[str, object]]:
    own = {row.id: row for row in rows if (row.set, row.way) == (name, way)}
    others = {row.id: row for row in rows if (row.set, row.way) == (name, rule)}
    there = [row for row in own.values() if row.answerable is not False]
    absent = [row for row in own.values() if row.answerable is False]
    yield "set", name
    yield "way", way
    yield "n", len(there)
    for measure, value in MEASURES.items():
        yield measure, str(mean([value(row) for row in there])) if there else "-"
    paired = [row for row in there if row.id in others]
    if way != rule and paired:
        ours = [MEASURES["right first"](row) for row in paired]
        theirs = [MEASURES["right first"](others[row.id]) for row in paired]
        yield "first, less the rule", str(difference(theirs, ours))
    if absent:
        answered = sum(row.outcome == "answer" for row in absent)
        yield "not answerable", len(absent)
        yield "of these answered", str(proportion(answered, len(absent)))
    area = area_under_curve(list(own.values()))
    if area is not None:
        yield "sureness AUROC", round(area, 3)

"""Where a name stands in a text, whatever its case, width and punctuation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from osler.graph.normal import split_units, unit_spans

Span = tuple[int, int]


@dataclass(frozen=True)
class Anchors:
    """The units of one text, to look names up in."""

    text: str
    _units: list[tuple[str, int, int]] = field(init=False, repr=False)
    _starts: dict[str, list[int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        units = unit_spans(self.text)
        starts: dict[str, list[int]] = {}
        for place, (unit, _, _) in enumerate(units):
            starts.setdefault(unit, []).append(place)
        object.__setattr__(self, "_units", units)
        object.__setattr__(self, "_starts", starts)

    def all_spans(self, name: str) -> list[Span]:
        """Every place of the name as whole words, in order; [] when it is not there.

        A name of signs alone ("+") is nowhere.
        """
        wanted = split_units(name)
        if not wanted:
            return []
        size, found = len(wanted), list[Span]()
        for place in self._starts.get(wanted[0], ()):
            here = self._units[place : place + size]
            if [unit for unit, _, _ in here] == wanted:
                found.append((here[0][1], here[-1][2]))
        return found

    def first_span(self, name: str) -> Span | None:
        places = self.all_spans(name)
        return places[0] if places else None

    def covering_span(self, names: Sequence[str]) -> Span | None:
        """The shortest stretch, from one name's places, that holds one place of each.

        `None` when one of them is not there. Exact for two names; of more the others are
        taken nearest to the first.
        """
        every = [self.all_spans(name) for name in names]
        if not every or not all(every):
            return None
        best: Span | None = None
        for anchor in every[0]:
            near = [
                min(places, key=lambda span: _gap_between(anchor, span)) for places in every[1:]
            ]
            found = _joint_span([anchor, *near])
            if best is None or found[1] - found[0] < best[1] - best[0]:
                best = found
        return best


def _gap_between(one: Span, other: Span) -> int:
    start, end = _joint_span([one, other])
    return end - start


def _joint_span(spans: Iterable[Span]) -> Span:
    every = list(spans)
    return min(start for start, _ in every), max(end for _, end in every)

"""Cells of tables that a question asks for by row and column: "max daily dose of ibuprofen".

Rows of tables are passages "drug: Ibuprofen; max daily dose: 1.2 g". A cell answers where every
word of the question is accounted for: by the row's name, the column's, the table's, another cell of
the row ("oral"), or as a word that asks. One word more, and it is another question, which the row
may be near to but does not answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from osler.sources.catalogue import TABLE
from osler.text import has_cjk, one_line
from osler.types import Hit

Span = tuple[Hit, int, int]

_CELL = re.compile(r"(?:^|(?<=; ))([^;:\n]{1,80}): (.*?)(?=; [^;:\n]{1,80}: |$)", re.MULTILINE)
_WORD = re.compile(r"[^\W_]+(?:[.-](?=\w)[^\W_]+)*")
_SHARED, _LEFT = 4, 4
"""Letters that two forms of a word begin with, at least, and that each has besides, at most."""
_MOST = 3


@dataclass(frozen=True, slots=True)
class FoundCells:
    """What the rows say to a question."""

    cells: tuple[Span, ...] = ()
    """The cells that are asked for, of one row; with its column's name each."""
    rows: frozenset[str] = field(default_factory=frozenset)
    """Ids of all passages that are rows: none of them answers otherwise."""


def find_cells(asked: str, hits: Sequence[Hit]) -> FoundCells:
    """The cells that are asked for. Questions in English alone have any."""
    rows = [hit for hit in hits if hit.passage.locator.kind == TABLE]
    if has_cjk(asked) or not rows:
        return FoundCells()
    words = _words(asked)
    named = [hit for hit in rows if _is_named(hit, words)]
    best: list[tuple[int, tuple[Span, ...]]] = []
    for hit in named:
        # "Paracetamol" is not meant where "Paracetamol intravenous" is named.
        if any(_name(hit) < _name(other) for other in named):
            continue
        if cells := _choose_cells(hit, words - _name(hit)):
            best.append((len(_name(hit)), cells))
    most = max((length for length, _ in best), default=0)
    found = [cells for length, cells in best if length == most]
    return FoundCells(
        found[0] if len(found) == 1 else (), frozenset(hit.passage.id for hit in rows)
    )


def _choose_cells(hit: Hit, left: frozenset[str]) -> tuple[Span, ...]:
    """The cells of a row that account for what is left of the question."""
    passage = hit.passage
    cells = [cell for cell in _CELL.finditer(passage.text) if cell[2] != passage.title]
    left -= _same(left, _words(passage.locator.section))
    columns = [_covered(left, cell[1]) for cell in cells]
    left -= _same(left, read_words().asking)
    if most := max(map(len, columns), default=0):
        rest = left - _same(left, frozenset().union(*(_words(cell[2]) for cell in cells)))
        chosen = [n for n, one in enumerate(columns) if len(one) == most and rest <= one]
        fewest = min((len(_words(cells[n][1])) for n in chosen), default=0)
        chosen = [n for n in chosen if len(_words(cells[n][1])) == fewest]
    else:  # no column is named: a cell that says all of it
        chosen = [n for n, cell in enumerate(cells) if left and left <= _words(cell[2])]
    return tuple(_span(hit, cells[n]) for n in chosen[:_MOST])


def _span(hit: Hit, cell: re.Match[str]) -> Span:
    return hit, cell.start(1), cell.end(2)


def _is_named(hit: Hit, words: frozenset[str]) -> bool:
    return bool(name := _name(hit)) and name <= words


@cache
def _words(text: str) -> frozenset[str]:
    """The words that say something, without the ending of a plural."""
    found = _WORD.findall(one_line(text).casefold())
    return frozenset(_singular(word) for word in found if word not in read_words().empty)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _name(hit: Hit) -> frozenset[str]:
    return _words(hit.passage.title)


def _covered(left: frozenset[str], column: str) -> frozenset[str]:
    """Words of the question that name the column, as it does or by another word."""
    names = _words(column)
    also = [cues for told, cues in read_words().columns if _same(names, told)]
    return _same(left, names.union(*also))


def _same(words: Iterable[str], others: Iterable[str]) -> frozenset[str]:
    """Those of the words that are among the others, in whatever form."""
    listed = tuple(others)
    return frozenset(w for w in words if any(_is_form(w, other) for other in listed))


def _is_form(one: str, other: str) -> bool:
    if one == other:
        return True
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    longest = max(len(one), len(other))
    return shared >= max(_SHARED, longest - _LEFT) and min(len(one), len(other)) >= _SHARED


@dataclass(frozen=True, slots=True)
class CellWords:
    """Words of questions about tables."""

    empty: frozenset[str]
    """Say nothing anywhere."""
    asking: frozenset[str]
    """Ask, or name what every table is about."""
    columns: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """Words of columns, and others by which they are asked for."""


@cache
def read_words() -> CellWords:
    text = resources.files("osler.answer").joinpath("cells.txt").read_text(encoding="utf-8")
    lists: dict[str, list[str]] = {"empty": [], "asking": []}
    columns = []
    for line in text.splitlines():
        told, _, words = line.partition(":")
        if told in lists:
            lists[told] += words.split()
        elif words and not line.startswith("#"):
            columns.append((frozenset(told.split()), frozenset(words.split())))
    return CellWords(frozenset(lists["empty"]), frozenset(lists["asking"]), tuple(columns))

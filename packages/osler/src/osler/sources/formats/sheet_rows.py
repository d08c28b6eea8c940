"""Rows of a worksheet, which is read as a stream: a cell merged over several rows stands in each.

Where the first row of several cells has one merged over columns, the row below it may belong to
the head, as "mild" and "severe" below "dose". Then a cell merged over columns stands in each.

A number is told whole, with the percent sign or unit that its format adds: 7.25%, 5 mg.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from osler.sources.formats.containers import Unreadable
from osler.sources.formats.rows import cell_text
from osler.sources.formats.safe_xml import iterate_elements
from osler.text import one_line

_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
# Rows, as Excel has at most.
_LONGEST = 2**20
# Characters of merged cells, with those repeated.
_MOST_REPEATED = 64 * 2**20
_LONGEST_FORMAT = 255
_UNSHOWN = re.compile(r"\[[^\]]*\]|[_*].")
# What stands before a number and behind it; not of one that is shown in thousands.
_FORMAT = re.compile(
    r'((?:"[^"]*"|\\.|[^"\\0#?])*?)(?:General|[0#?][0#?,.]*+(?<!,))((?:"[^"]*"|\\.|[^"\\])*)'
)
_SIGN = re.compile(r'"([^"]*)"|\\(.)|(%)')

Row = tuple[str, ...]
Range = tuple[int, int, int, int]
"""First column, first row, last column, last row; from 1."""


def look_through(sheet: Any, name: str) -> tuple[list[Range], bool]:
    """The merged cells, and whether there are formulas whose value was not kept: openpyxl tells
    neither where it reads a sheet as a stream."""
    from openpyxl.utils import range_boundaries

    merged, is_bare = list[Range](), False
    with sheet._get_source() as source:
        for element in iterate_elements(source, name, (f"{_S}row", f"{_S}mergeCell")):
            if element.tag == f"{_S}mergeCell":
                merged.append(range_boundaries(element.get("ref", "")))
            for cell in () if is_bare else element.iterfind(f"{_S}c[{_S}f]"):
                # The value of one that is text may be empty.
                is_bare = is_bare or not (cell.findtext(f"{_S}v") or cell.get("t") == "str")
    return merged, is_bare


def _text_of(cell: Any) -> str:
    value = cell.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(IndexError, OverflowError):  # of a style that is not there, or a huge number
            before, after, is_percent = _signs_of(cell.number_format)
            return one_line(f"{before}{f'{value * 100:.12g}' if is_percent else value}{after}")
    return one_line(cell_text(value, ", "))


@lru_cache
def _signs_of(number_format: str) -> tuple[str, str, bool]:
    """What a format writes before and behind a number, and whether that is told in percent."""
    shown = _FORMAT.fullmatch(_UNSHOWN.sub("", number_format[:_LONGEST_FORMAT].partition(";")[0]))
    if shown is None or "[<" in number_format or "[>" in number_format or "[=" in number_format:
        return "", "", False
    signs = [_SIGN.findall(part) for part in shown.groups()]
    before, after = ("".join(map("".join, part)) for part in signs)
    return before, after, any(percent for part in signs for _, _, percent in part)


def read_sheet_rows(sheet: Any, merged: Iterable[Range], name: str) -> Iterator[tuple[int, Row]]:
    """The rows that are not empty with their numbers, each cell on one line.

    Raises `Unreadable` where merged cells unfold to more than any sheet has.
    """
    rows = _filled_rows(sheet, merged, name)
    is_before_head, has_two = True, False
    for number, row, wide in rows:
        is_several = sum(map(bool, row)) > 1  # a title over all columns stands once
        below = next(rows, None) if is_before_head and is_several and wide != row else None
        is_before_head = is_before_head and not is_several
        if below is None:
            yield number, wide if has_two and is_several else row
        elif names := _join_heads(row, wide, below[2]):
            has_two = True
            yield below[0], names
        else:
            yield number, row
            yield below[:2]


def _join_heads(row: Row, wide: Row, below: Row) -> Row:
    """The names of a head of two rows; () where the second names a column that has a name."""
    changed = {at for at, cell in enumerate(wide) if row[at : at + 1] != (cell,)}
    covered = changed | {at - 1 for at in changed}
    pairs = list(zip_longest(wide, below, fillvalue=""))
    if any(under not in ("", over) for at, (over, under) in enumerate(pairs) if at not in covered):
        return ()
    return tuple(over if over == under else f"{over} {under}".strip() for over, under in pairs)


def _filled_rows(sheet: Any, merged: Iterable[Range], name: str) -> Iterator[tuple[int, Row, Row]]:
    """Each row with the cells merged from above, and with those merged over columns as well."""
    begin, going = defaultdict[int, list[Range]](list), dict[int, tuple[Range, str]]()
    for area in merged:
        begin[area[1]].append(area)
    left = _MOST_REPEATED
    sheet.reset_dimensions()  # a wrong claim of the file's would cut the sheet off
    for number, cells in enumerate(sheet.iter_rows(max_row=_LONGEST), 1):
        row = [_text_of(cell) for cell in cells]
        if not any(row):
            continue
        for one in begin.get(number, ()):
            if text := "".join(row[one[0] - 1 : one[0]]):
                going[one[0]] = one, text
        wide = row.copy()
        for (first, _, last, last_row), text in list(going.values()):
            if last_row < number:
                del going[first]
                continue
            left -= (last - first + 1) * (len(text) + 1)
            if left < 0:
                raise Unreadable(name, "decompression bomb", fix="save it in smaller parts")
            wide += [""] * (last - len(wide))
            wide[first - 1 : last] = [text] * (last - first + 1)
            row += [""] * (first - len(row))
            row[first - 1] = text
        yield number, tuple(row), tuple(wide)

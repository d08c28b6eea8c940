"""Rows of a worksheet, which is read as a stream: a cell merged over several rows stands in each.

Where the first row of several cells has one merged over columns, the row below it may belong to
the head, as "mild" and "severe" below "dose". Then a cell merged over columns stands in each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from osler.sources.formats.containers import Unreadable
from osler.sources.formats.safe_xml import iterate_elements
from osler.text import one_line

_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
# Rows, as Excel has at most.
_LONGEST = 2**20
# Characters of merged cells, with those repeated.
_MOST_REPEATED = 64 * 2**20

Row = tuple[str, ...]
Range = tuple[int, int, int, int]
"""First column, first row, last column, last row; from 1."""


def merged_ranges(sheet: Any, name: str) -> list[Range]:
    """The merged cells: openpyxl does not tell them where it reads a sheet as a stream."""
    from openpyxl.utils import range_boundaries

    with sheet._get_source() as source:
        return [
            range_boundaries(element.get("ref", ""))
            for element in iterate_elements(source, name, (f"{_S}row", f"{_S}mergeCell"))
            if element.tag == f"{_S}mergeCell"
        ]


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
    for cells in merged:
        begin[cells[1]].append(cells)
    left = _MOST_REPEATED
    sheet.reset_dimensions()  # a wrong claim of the file's would cut the sheet off
    for number, values in enumerate(sheet.iter_rows(max_row=_LONGEST, values_only=True), 1):
        row = ["" if value is None else one_line(str(value)) for value in values]
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

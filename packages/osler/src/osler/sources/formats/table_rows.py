"""Rows of tables without running text, as formularies and lists of tests: which columns name them,
and each as a document of all its cells, "drug: Ibuprofen; max daily: 1.2 g".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from osler.errors import MalformedSource
from osler.sources.catalogue import TABLE
from osler.sources.formats.json_lines import text_in
from osler.sources.records import Document, Drop, Record, Section
from osler.text import language_of, make_slug, one_line

_KEY = frozenset(
    [
        *("drug", "drug_name", "medicine", "medication", "generic", "generic_name", "ingredient"),
        *("test", "analyte", "name", "item"),
        *("药品", "药名", "药品名称", "通用名", "药物", "检验项目", "项目", "项目名称", "名称"),
    ]
)
"""Columns by which a row of a table is called."""
_LOOKED_AT = 200
"""First rows of a table by which the columns that name its rows are chosen."""
IS_NAME = re.compile(r"[^\W\d]")
_IS_WORD = re.compile(r"[^\W\d_]{3}|[\u4e00-\u9fff]")


class TableParser:
    """Base of the parsers of tables."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        """`keys`: columns that name a row of a table without text; none = chosen."""
        self._keys = keys


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A row by its columns' names, and where it stands."""

    cells: Mapping[str, Any]
    where: str
    identifier: str
    """Of its document, where it has none of its own: the table's name and the row's number."""


def read_table(
    names: Sequence[str], rows: Iterable[PlacedRow | Drop], keys: Sequence[str] = ()
) -> Iterator[Record]:
    """A document of each row, named by `keys` or by what tells the first rows apart.

    Raises `MalformedSource` where the table has none of a key's name.
    """
    rows = iter(rows)
    head = list(islice(rows, _LOOKED_AT))
    chosen = _find_keys(names, keys) or choose_keys(
        names, [one.cells for one in head if isinstance(one, PlacedRow)]
    )
    for one in chain(head, rows):
        yield one if isinstance(one, Drop) else table_row(one, chosen)


def _find_keys(names: Sequence[str], keys: Sequence[str]) -> list[str]:
    told = {column_name(name).casefold(): name for name in names}
    for key in keys:
        if column_name(key).casefold() not in told:
            raise MalformedSource(
                f"there is no column {key!r}", fix=f"the columns are {', '.join(names)}"
            )
    return [told[column_name(key).casefold()] for key in keys]


def choose_keys(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that name a row: one with a name for it, else the first of words that are all
    different, else the first of words; and, where that repeats, another that tells rows apart."""
    values = {name: [one_line(text_in(row, name)) for row in rows] for name in names}
    wordy = [name for name in names if _are_words(values[name])]
    called = [name for name in names if column_name(name).casefold().replace(" ", "_") in _KEY]
    different = [name for name in wordy if len(set(values[name])) == len(rows)]
    first = next(iter([*called, *different, *wordy]), "")
    if not first:
        return []

    def count_apart(other: str) -> int:
        return len(set(zip(values[first], values[other], strict=True)))

    if len(set(values[first])) < len(rows):
        apart = [n for n in names if n != first and count_apart(n) == len(rows)]
        if second := next((n for n in apart if n in wordy), next(iter(apart), "")):
            return [first, second]
    return [first]


def _are_words(values: Sequence[str]) -> bool:
    return sum(_IS_WORD.search(one) is not None for one in values) > 0.8 * len(values)


def column_name(name: str) -> str:
    """A column's name as a row tells it."""
    return one_line(name.lstrip("\ufeff").replace("_", " "))


def table_row(row: PlacedRow, keys: Sequence[str]) -> Record:
    """A row of a table as one sentence, every cell behind its column's name, titled by its keys."""
    cells = {column_name(name): text_in(row.cells, name) for name in row.cells}
    filled = {name: one_line(text) for name, text in cells.items() if text}
    told = [filled[name] for name in map(column_name, keys) if name in filled]
    told = told or [text for text in filled.values() if _IS_WORD.search(text)][:1]
    if len(filled) < 2 or not any(map(IS_NAME.search, told)):
        return Drop(row.where, "no text")
    text = "; ".join(f"{name}: {cell}" for name, cell in filled.items())
    table = one_line(row.identifier.rpartition("-")[0].replace("_", " "))
    return Document(
        id=make_slug(row.identifier),
        title=", ".join(told),
        sections=(Section(text, (table,) if table else ()),),
        language=language_of(text),
        kind=TABLE,
    )

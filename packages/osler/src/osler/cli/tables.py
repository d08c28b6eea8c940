"""Plain data as pages of a terminal: names and values, tables, sections. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.containers import Lines
from rich.table import Table
from rich.text import Text

from osler.cli.help_page import UNIT
from osler.cli.words import say, say_all
from osler.reports import age_at
from osler.text import escape_controls, has_cjk

if TYPE_CHECKING:
    from osler.doctor import Check
    from osler.types import Answer, Language, Money, Passage

# The smallest amount that is written out.
_LEAST = 0.0001
_COLOURS = {"pass": "green", "warn": "yellow", "fail": "red"}
_EMPTY: tuple[object, ...] = ("", [], {}, ())
# Characters of a cell from which on its column is folded; below, ids and counts are copied whole.
_FOLDED = 32
# Characters up to which a list is one line.
_LISTED = 80


def document_page(document: object) -> Group:
    """What `--json` writes, for a reader: names and values, a table for a list of records, a
    section for what is nested deeper. What is empty is left out."""
    return Group(*_draw_value(document))


def _draw_value(value: object) -> Iterator[RenderableType]:
    if isinstance(value, Mapping) and _are_records(value):
        yield from _draw_value([{"": name, **one} for name, one in value.items()])
    elif isinstance(value, Mapping):
        held = {name: one for name, one in value.items() if one not in _EMPTY}
        if facts := [(_words(k), format_value(v)) for k, v in held.items() if _is_flat(v)]:
            yield plain_table(facts)
        for name, one in held.items():
            if not _is_flat(one):
                yield Text(f"\n{_words(name)}", style="bold")
                yield from _draw_value(one)
    elif isinstance(value, Sequence) and value and all(isinstance(v, Mapping) for v in value):
        yield _Records(value)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from (plain_text(format_value(one)) for one in value)
    else:
        yield plain_text(format_value(value))


def _are_records(value: Mapping[str, Any]) -> bool:
    """Whether it holds several records of equal names by name."""
    held = list(value.values())
    every = all(isinstance(one, Mapping) and not _is_range(one) for one in held)
    return every and len(held) > 1 and len({tuple(one) for one in held}) == 1


@dataclass(frozen=True)
class _Records:
    """A row for each record, a column for each name; what is too wide goes on in a table below."""

    records: Sequence[Mapping[str, Any]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [dict(_spread_figures(record)) for record in self.records]
        columns = {
            name: [row.get(name, "") for row in rows]
            for name in dict.fromkeys(name for row in rows for name in row)
        }
        shown = {k: v for k, v in columns.items() if any(one not in _EMPTY for one in v)}
        for number, names in enumerate(_fit_columns(shown, options.max_width)):
            if number:
                yield Text()
            table = Table(box=None, pad_edge=False, header_style="bold")
            for name in names:
                table.add_column(
                    _words(name),
                    justify="right" if _is_numeric(shown[name]) else "left",
                    no_wrap=_column_width(name, shown[name]) < _FOLDED,
                    overflow="fold",
                )
            for cells in zip(*(shown[name] for name in names), strict=True):
                table.add_row(*(plain_text(format_value(cell)) for cell in cells))
            yield table


def _fit_columns(columns: Mapping[str, Sequence[object]], width: int) -> list[list[str]]:
    """The names of each table; each begins with the one or two that say what a row is of."""
    every = list(columns)
    lead = [name for name in every[:2] if not _is_numeric(columns[name])]
    parts, left = [[*lead]], width
    for name in every:
        need = _column_width(name, columns[name]) + 2
        if name not in lead and need > left and len(parts[-1]) > len(lead):
            parts.append([*lead])
            left = width - sum(_column_width(one, columns[one]) + 2 for one in lead)
        if name not in lead:
            parts[-1].append(name)
        left -= need
    return parts


def _column_width(name: str, cells: Iterable[object]) -> int:
    return min(_FOLDED, max(map(cell_len, (_words(name), *map(format_value, cells)))))


def _is_numeric(cells: Iterable[object]) -> bool:
    return all(isinstance(cell, int | float | None) for cell in cells)


def _spread_figures(record: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The record with nested figures beside the others, and their n once where all have one."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        nested = isinstance(value, Mapping) and any(map(_is_range, value.values()))
        flat |= value if nested else {name: value}
    figures = [value for value in flat.values() if _is_range(value) and "n" in value]
    alike = len({figure["n"] for figure in figures}) == 1
    for name, value in flat.items():
        named = alike and value in figures
        yield name, {k: v for k, v in value.items() if k != "n"} if named else value
    if alike and "n" not in flat:
        yield "n", figures[0]["n"]


def format_value(value: object) -> str:
    """A value in one line: "-" for none, a figure with its interval, counts with their names."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return say("yes" if value else "no")
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    if _is_range(value):
        return _format_range(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{_words(k)} {format_value(v)}" for k, v in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        pairs = (v if isinstance(v, tuple) else (v,) for v in value)
        words = [" ".join(map(format_value, pair)) for pair in pairs]
        return ("\n" if sum(map(len, words)) > _LISTED else ", ").join(words)
    # A name is data; what has several words may be a line, such as a reason.
    return say_all(str(value)) if " " in str(value) else str(value)


def _is_range(value: object) -> Any:
    return isinstance(value, Mapping) and {"low", "high"} <= value.keys()


def _format_range(value: Any) -> str:
    """A figure in its interval, or what a cost may be."""
    low, high = format_value(value["low"]), format_value(value["high"])
    if "value" in value:
        n = f", n {value['n']:,}" if "n" in value else ""
        return f"{format_value(value['value'])} [{low}, {high}]{n}"
    if value["high"] is None:
        return f"at least {low}"
    usual = value.get("usual")
    mostly = "" if usual is None else f", mostly about {format_value(usual)}"
    return low if low == high else f"{low} to {high}{mostly}"


def _is_flat(value: object) -> bool:
    """Whether it is told in one line."""
    if isinstance(value, Mapping):
        return _is_range(value) or not any(isinstance(v, Mapping) for v in value.values())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return not any(isinstance(one, Mapping) for one in value)
    return True


def _words(name: object) -> str:
    return say(str(name).replace("_", " "))


def count_noun(count: int, one: str, many: str = "") -> str:
    return say(f"{count:,} {one if count == 1 else many or one + 's'}")


def format_time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def format_size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"


def format_money(money: Money) -> str:
    """An amount with its currency; one that is not 0 is never written as 0."""
    if 0 < money.amount < _LEAST:
        return f"under {_LEAST} {money.currency}"
    digits = 4 if money.amount < 1 else 2
    return f"{money.amount:,.{digits}f} {money.currency}"


def checks_page(checks: Sequence[Check]) -> Group:
    lines: list[RenderableType] = []
    for check in checks:
        told = f"{say(check.status):<5} {say(check.name)}{say(': ')}{say_all(check.detail)}"
        lines.append(plain_text(told, _COLOURS[check.status]))
        if check.fix and check.status != "pass":
            lines.append(plain_text(f"      {say_all(check.fix)}"))
    return Group(*lines)


def plain_table(rows: Iterable[Sequence[str]]) -> Table:
    """Rows without a head: mostly a name and its value."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(2):
        table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*map(plain_text, row))
    return table


class WrappedText(Text):
    """A text whose lines of Chinese break between signs and words; Rich breaks "2.5" too."""

    def wrap(self, console: Console, width: int, **how: Any) -> Lines:
        if how.get("no_wrap") or self.no_wrap or not has_cjk(self.plain):
            return super().wrap(console, width, **how)
        lines = Lines()
        for line in self.split(allow_blank=True):
            line.expand_tabs(how.get("tab_size", 8))
            parts = line.divide(find_breaks(line.plain, width))
            for part in parts:
                part.rstrip_end(width)
            lines.extend(parts)
        return lines


def find_breaks(text: str, width: int) -> Iterator[int]:
    """Where the lines of a text begin, but the first, in `width` columns."""
    filled = 0
    for unit in filter(lambda one: one[0], UNIT.finditer(text)):
        word, at = unit[0].rstrip(), unit.start()
        if filled and filled + cell_len(word) > width:
            yield at
            filled = 0
        for piece in chop_cells(word, width)[:-1]:  # a word longer than a line
            at += len(piece)
            yield at
            filled = 0
        filled += cell_len(text[at : unit.end()])


def plain_text(words: str, style: str = "") -> Text:
    """A cell or a line, without what a terminal would obey instead of show."""
    return WrappedText(escape_controls(words), style=style)


def age_notes(answer: Answer, passage: Passage, run: str) -> list[str]:
    """How old a passage was when the run was made, and that a later issue of it was found."""
    age = age_at(run, passage.locator.year)
    zh = answer.language == "zh"
    old = f"{age} 年前" if zh else f"{count_noun(age or 0, 'year')} old"
    aged = "" if age is None else old if age else say("of this year", answer.language)
    later = say("superseded", answer.language) if passage.id in answer.superseded else ""
    return [note for note in (aged, later) if note]


_LANGUAGES: Mapping[Language, str] = {"en": "English", "zh": "Chinese"}


def by_words_lines(counts: Mapping[Language, int], *, built: bool = True) -> list[str]:
    """A line for each language whose passages have no vectors."""
    others = " and ".join(name for one, name in _LANGUAGES.items() if one not in counts)
    have = (
        "have no vectors"
        if built
        else f"get no vectors, since the encoder reads {others or 'neither'} only"
    )
    return [
        f"{count:,} {_LANGUAGES[language]} passages {have}: they are found by words alone"
        for language, count in counts.items()
    ]

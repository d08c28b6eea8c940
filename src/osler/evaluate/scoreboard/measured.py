"""What other benches measured: retrieval, plans, attacks and the like, as files of figures.

A file is CSV with a line for each set, row and measure, and one of three kinds of figure:

- `values`: a number for each question, with a space between, in the same order in all rows of a
  set; made anew, with Wilson's interval for zeros and ones and else a bootstrap;
- `n` and `hits`: made anew, with Wilson's interval;
- `n`, `value`, and where there is an interval `low` and `high`: copied from the evaluation log.

`source` is a heading of that log. `opponent` names the simple row of the same set: where both have
values, their paired difference is made.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from osler.errors import BadRun, translate_os_errors
from osler.evaluate.intervals import Estimate, difference, estimate_mean, proportion
from osler.text import read_packaged_table

COLUMNS = (
    "table",
    "set",
    "row",
    "measure",
    "n",
    "hits",
    "value",
    "low",
    "high",
    "opponent",
    "source",
    "values",
)


@dataclass(frozen=True, slots=True)
class BenchFigure:
    """A figure of a table: of a row, on a set, by a measure."""

    table: str
    set: str
    row: str
    measure: str
    n: int
    """Questions, runs or pairs; 0 where it is a time or a size."""
    value: float
    source: str
    """Heading of the evaluation log."""
    interval: tuple[float, float] | None = None
    """95 %."""
    opponent: str = ""
    gain: Estimate | None = None
    """Over the opponent, paired."""
    copied: bool = False
    """Whether the figure is the log's, and not made anew from counts or values."""

    @property
    def place(self) -> tuple[str, str, str]:
        return self.table, self.set, self.measure


@dataclass(frozen=True, slots=True)
class BenchTable:
    """A table of the page: its key in the files, its title, and a sentence or two."""

    key: str
    title: str
    about: str


def read_bench_tables() -> tuple[BenchTable, ...]:
    """The packaged tables, in the order of the page."""
    rows = read_packaged_table(__package__, "measured.toml")["table"]
    return tuple(BenchTable(**row) for row in rows)


def is_measured(path: Path) -> bool:
    """Whether a file holds such figures, and no scores."""
    with translate_os_errors(f"{path} cannot be read", BadRun):
        return path.is_file() and path.read_text(encoding="utf-8").startswith("table,set,row")


def read_measured(path: Path) -> tuple[BenchFigure, ...]:
    """Reads a file of figures. Raises `BadRun` naming the line that cannot be read, and for rows
    of a table that rest on different numbers of questions."""
    with translate_os_errors(f"{path} cannot be read", BadRun):
        text = path.read_text(encoding="utf-8")
    rows = [*csv.DictReader(io.StringIO(text))]
    items = {_key(row): [*map(float, row["values"].split())] for row in rows if row.get("values")}
    found = []
    for at, row in enumerate(rows, 2):
        try:
            found.append(_read_row(row, items))
        except (ValueError, KeyError, TypeError) as error:
            raise BadRun(f"{path.name}, line {at}, is no figure: {error!r}") from error
    require_same_questions(found)
    return tuple(found)


def require_same_questions(figures: Iterable[BenchFigure]) -> None:
    """Raises `BadRun` for two rows of a set that were measured on more and on fewer questions."""
    counts: dict[tuple[str, str, str], BenchFigure] = {}
    for one in figures:
        first = counts.setdefault(one.place, one)
        if first.n != one.n:
            raise BadRun(
                f"{one.table}, {one.set}: {one.row} has {one.n} questions, {first.row} {first.n}",
                fix="give the smaller sample a set of its own",
            )


def _key(row: Mapping[str, str], name: str = "row") -> tuple[str, str, str, str]:
    return row["table"], row["set"], row["measure"], row[name]


def _read_row(
    row: Mapping[str, str], items: Mapping[tuple[str, str, str, str], Sequence[float]]
) -> BenchFigure:
    known = items.get(_key(row))
    gain, interval = None, None
    if known is not None:
        made = estimate_mean(known, seed=0)
        simple = items.get(_key(row, "opponent"))
        gain = None if simple is None else difference(simple, known)
    elif row["hits"]:
        made = proportion(int(row["hits"]), int(row["n"]))
    else:
        made = Estimate(float(row["value"]), 0, 0, int(row["n"]))
        interval = (float(row["low"]), float(row["high"])) if row["low"] else None
    copied = known is None and not row["hits"]
    return BenchFigure(
        row["table"],
        row["set"],
        row["row"],
        row["measure"],
        n=made.n,
        value=made.value,
        source=row["source"],
        interval=interval if copied else (made.low, made.high),
        opponent=row["opponent"],
        gain=gain,
        copied=copied,
    )


def render_bench_tables(figures: Sequence[BenchFigure]) -> Iterator[str]:
    """Each packaged table for which there are figures, as a heading, its words, and rows that can
    be sorted. Raises `BadRun` for figures of a table that is not packaged."""
    tables = read_bench_tables()
    if unknown := {one.table for one in figures} - {table.key for table in tables}:
        raise BadRun(f"no table of this name: {', '.join(sorted(unknown))}")
    for table in tables:
        if own := [one for one in figures if one.table == table.key]:
            yield f"## {table.title}\n\n{table.about}\n"
            yield from map(_render_rows, _alike(own))


def _alike(figures: Sequence[BenchFigure]) -> Iterator[list[BenchFigure]]:
    """The figures of sets that have the same measures from one place of the log."""
    measures: dict[tuple[str, str], dict[str, None]] = {}
    for one in figures:
        measures.setdefault((one.set, one.source), {})[one.measure] = None
    groups: dict[tuple[str, ...], list[BenchFigure]] = {}
    for one in figures:
        key = (one.source, *measures[one.set, one.source])
        groups.setdefault(key, []).append(one)
    yield from groups.values()


def _render_rows(figures: Sequence[BenchFigure]) -> str:
    measures = list(dict.fromkeys(one.measure for one in figures))
    rows: dict[tuple[str, str, int], dict[str, BenchFigure]] = {}
    for one in figures:
        rows.setdefault((one.set, one.row, one.n), {})[one.measure] = one
    head = "".join(f"<th>{escape(name)}</th>" for name in ("on", "row", "n", *measures))
    lines = (
        f"<td>{escape(of)}</td><td>{escape(row)}</td><td>{n or '–'}</td>"
        f"{''.join(_render_figure(found.get(measure)) for measure in measures)}"
        for (of, row, n), found in rows.items()
    )
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<table class="scores"><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>\n'
        f"\nLog: {figures[0].source}.\n"
    )


def _render_figure(figure: BenchFigure | None) -> str:
    if figure is None:
        return "<td>–</td>"
    shown = f"{figure.value:.3f}" if figure.interval else f"{figure.value:g}"
    if figure.interval:
        shown += f" [{figure.interval[0]:.3f}, {figure.interval[1]:.3f}]"
    if figure.gain is not None:
        shown += f"<br>{figure.gain.value:+.3f} [{figure.gain.low:.3f}, {figure.gain.high:.3f}]"
        shown += f" over {escape(figure.opponent)}"
    return f'<td data-value="{figure.value:.6g}">{shown}</td>'

"""Figures of other benches: made anew from values, copied from the log, and shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.errors import BadRun
from osler.evaluate.intervals import difference, proportion
from osler.evaluate.scoreboard.measured import (
    COLUMNS,
    BenchFigure,
    is_measured,
    read_bench_tables,
    read_measured,
    render_bench_tables,
)

PUBLISHED = Path(__file__).parents[4]
FILES = sorted((PUBLISHED / "benchmarks/scoreboard").glob("*.csv"))
MEASURED = [path for path in FILES if is_measured(path)]


def write(folder: Path, *lines: str) -> Path:
    path = folder / "figures.csv"
    path.write_text("\n".join([",".join(COLUMNS), *lines, ""]), encoding="utf-8")
    return path


def test_figures_are_made_from_values_from_counts_or_copied(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "retrieval,a,hybrid,recall@10,,,,,,,Retrieval,1 0 0.5 1",
        "retrieval,a,expert,recall@10,,,,,,hybrid,Retrieval,1 1 1 1",
        "injection,b,quotes,obeyed,200,9,,,,,Poison,",
        "speed,c,ask,seconds,3,,2.9,2.7,3.2,,Speed,",
        "speed,c,size,MB,0,,5.3,,,,Speed,",
    )
    simple, ours, counted, copied, size = read_measured(path)
    gain = difference([1, 0, 0.5, 1], [1, 1, 1, 1], seed=0)
    assert (simple.value, simple.n, simple.gain) == (0.625, 4, None)
    assert (ours.interval, ours.gain) == ((proportion(4, 4).low, 1.0), gain)
    assert counted.interval == (proportion(9, 200).low, proportion(9, 200).high)
    assert [one.copied for one in (simple, ours, counted, copied, size)] == [False] * 3 + [True] * 2
    assert (copied.interval, size.interval) == ((2.7, 3.2), None)
    page = "\n".join(render_bench_tables([simple, ours, counted, copied, size]))
    assert page.index("## Retrieval") < page.index("## Poison") < page.index("## Speed")
    assert f"+0.375 [{gain.low:.3f}, {gain.high:.3f}] over hybrid" in page


def test_rows_of_more_and_of_fewer_questions_are_refused(tmp_path: Path) -> None:
    lines = ("open,a,rag,gold cited,,,,,,,L,1 0", "open,a,auto,gold cited,,,,,,,L,1 0 1")
    with pytest.raises(BadRun, match="auto has 3 questions, rag 2"):
        read_measured(write(tmp_path, *lines))


def test_a_line_that_is_no_figure_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRun, match="line 2, is no figure"):
        read_measured(write(tmp_path, "open,a,rag,gold cited,,,,,,,L,"))
    with pytest.raises(BadRun, match="no table of this name: other"):
        [*render_bench_tables([BenchFigure("other", "a", "b", "c", 1, 1.0, "L")])]


def test_every_packaged_table_is_published() -> None:
    found = {one.table for path in MEASURED for one in read_measured(path)}
    assert found == {table.key for table in read_bench_tables()}


def test_a_copied_figure_stands_in_the_log_under_its_heading() -> None:
    files = sorted((PUBLISHED / "research" / "log").glob("*.md"))
    log = "\n".join(path.read_text(encoding="utf-8") for path in files)
    sections = {text.partition("\n")[0]: text.replace("−", "-") for text in log.split("\n## ")[1:]}
    for one in (one for path in MEASURED for one in read_measured(path)):
        (section,) = [text for head, text in sections.items() if head.startswith(one.source)]
        if one.copied:
            for value in (one.value, *(one.interval or ())):
                assert any(spelling in section for spelling in spellings(value)), (one, value)


def spellings(value: float) -> set[str]:
    """A number as the log may have it: .25, 0.250, 25.0, 11,560."""
    made = {f"{value:g}", f"{value:,.0f}"} if value == round(value) else {f"{value:g}"}
    made |= {f"{value:.{digits}f}" for digits in (2, 3) if round(value, digits) == value}
    made |= {f"{100 * value:.1f}"} if 0 < value < 1 else set()
    return made | {one.replace("0.", ".", 1) for one in made if one.lstrip("-").startswith("0.")}

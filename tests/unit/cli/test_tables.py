"""Plain data as a page of the terminal."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from osler.cli.tables import document_page, format_value

SHARE = {"value": 0.5, "low": 0.25, "high": 0.75, "n": 8}


def lines_of(document: Any, width: int = 100) -> list[str]:
    console = Console(width=width)
    with console.capture() as seen:
        console.print(document_page(document))
    return [" ".join(line.split()) for line in seen.get().splitlines()]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "-"),
        (True, "yes"),
        (12_345, "12,345"),
        (0.91111, "0.911"),
        (12_345.6, "12,346"),
        (SHARE, "0.5 [0.25, 0.75], n 8"),
        ({"low": 1, "high": None}, "at least 1"),
        ({"low": 2, "high": 2}, "2"),
        ({"low": 1, "high": 9, "usual": 4}, "1 to 9, mostly about 4"),
        ({"no_text": 2, "other": 1}, "no text 2, other 1"),
        ([("a", 1), ("b", 2)], "a 1, b 2"),
        (["x" * 50, "y" * 50], "x" * 50 + "\n" + "y" * 50),
    ],
)
def test_a_value_is_told_in_words(value: object, words: str) -> None:
    assert format_value(value) == words


def test_names_and_values_come_first_and_what_is_empty_is_left_out() -> None:
    document = {"parts": {"deep": {"steps_at_most": 3}}, "wall_s": 1.5, "note": "", "left": []}

    assert lines_of(document)[0] == "wall s 1.5"
    assert "note" not in " ".join(lines_of(document))


def test_records_are_a_table_whose_empty_columns_are_left_out() -> None:
    rows = [{"name": "a", "n": 1, "why": ""}, {"name": "b", "n": 20, "why": ""}]
    assert lines_of({"rows": rows}) == ["", "rows", "name n", "a 1", "b 20"]
    by_name = {"a": {"n": 1}, "b": {"n": 20}}
    assert lines_of({"rows": by_name})[2:] == ["n", "a 1", "b 20"]


def test_figures_of_one_n_tell_it_once() -> None:
    rows = [{"kind": "clean", "em": SHARE, "means": {"first": SHARE}}]
    assert lines_of(rows) == ["kind em first n", "clean 0.5 [0.25, 0.75] 0.5 [0.25, 0.75] 8"]


def test_what_is_too_wide_goes_on_below_with_what_its_rows_are_of() -> None:
    rows = [{"name": "a", **{f"figure_{n}": n for n in range(6)}}]
    assert lines_of(rows, width=40) == [
        "name figure 0 figure 1 figure 2",
        "a 0 1 2",
        "",
        "name figure 3 figure 4 figure 5",
        "a 3 4 5",
    ]


def test_what_a_terminal_would_obey_is_shown() -> None:
    assert "\x1b" not in "".join(lines_of({"note": "\x1b[31mred"}))

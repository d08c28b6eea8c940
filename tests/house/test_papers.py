"""PAPERS.md is true: modules and tests exist, departures have reasons, behaviours are counted."""

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("PAPERS.md", *(f"docs/papers/{name}.md" for name in ("tc-rag", "kag-thinker", "omni-rag")))
PAGES += ("docs/papers/behaviours.md",)
TEXT = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)


def rows(*headings: str) -> list[list[str]]:
    """Cells of every table row under headings that begin so."""
    found = []
    for section in re.split(r"^##+ ", TEXT, flags=re.MULTILINE)[1:]:
        if not section.startswith(headings):
            continue
        lines = [line for line in section.splitlines() if line.startswith("|")]
        found += [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return found


PLACES, DEPARTURES = rows("Place", "Ours"), rows("Departures")
COUNTS, BEHAVIOURS = rows("Count"), rows("Behaviours\n")
SETS = {"TC": 82, "KT": 101, "OM": 89, "M": 22, "B": 20}
"""Behaviours of the three papers in the order of the table of counts, then measures and methods."""


def test_there_is_something_to_check() -> None:
    assert len(PLACES) >= 20
    assert len(DEPARTURES) >= 5


@pytest.mark.parametrize("row", PLACES, ids=lambda row: row[0])
def test_the_place_is_implemented_where_the_row_says(row: list[str]) -> None:
    _, symbol, _ = row
    module, _, name = symbol.strip("`").partition(":")
    # A module of `tests/support` stands there by its path, and is imported by its name.
    found = importlib.import_module(Path(module).stem if module.endswith(".py") else module)
    for part in filter(None, name.split(".")):
        found = getattr(found, part)


@pytest.mark.parametrize("row", PLACES, ids=lambda row: row[0])
def test_the_place_is_proven_where_the_row_says(row: list[str]) -> None:
    path, _, name = row[2].strip("`").partition("::")
    assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("row", DEPARTURES, ids=lambda row: row[0][:40])
def test_a_departure_says_what_the_paper_has_what_we_do_and_why(row: list[str]) -> None:
    assert len(row) == 3
    assert all(len(cell) > 10 for cell in row)


def test_every_behaviour_stands_in_the_list_once_and_in_order() -> None:
    wanted = [f"{name}-{n:02d}" for name, count in SETS.items() for n in range(1, count + 1)]
    assert [row[0] for row in BEHAVIOURS] == wanted
    assert all(len(row) == 3 and row[1] for row in BEHAVIOURS)


def test_what_is_called_a_departure_is_a_row_of_the_departures() -> None:
    for number, _, state in BEHAVIOURS:
        kind, colon, named = state.partition(": ")
        assert (kind, colon) in (("whole", ""), ("open", ""), ("departure", ": ")), number
        found = [row for row in DEPARTURES if row[0].startswith(named)]
        assert not colon or (len(named) > 10 and found), f"{number}: no departure {named!r}"


def test_the_counts_are_those_of_the_list() -> None:
    states = {name: Counter[str]() for name in SETS}
    for number, _, state in BEHAVIOURS:
        states[number.partition("-")[0]][state.partition(":")[0]] += 1
    papers = states["TC"] + states["KT"] + states["OM"]
    wanted = [states["TC"], states["KT"], states["OM"], papers, states["M"], states["B"]]
    for row, counted in zip(COUNTS, wanted, strict=True):
        kinds = [counted[kind] for kind in ("whole", "departure", "open")]
        assert [int(cell) for cell in row[1:]] == [counted.total(), *kinds], row[0]
    assert papers.total() == 272

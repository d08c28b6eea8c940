"""PAPERS.md is true: each row's module and test exist, each departure has a reason."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAPERS = (ROOT / "PAPERS.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Cells of every table row under level-3 headings of this name."""
    found = []
    for section in re.split(r"^### ", PAPERS, flags=re.MULTILINE)[1:]:
        if not section.startswith(heading):
            continue
        lines = [line for line in section.splitlines() if line.startswith("|")]
        found += [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return found


PLACES, DEPARTURES = rows("Place"), rows("Departures")


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

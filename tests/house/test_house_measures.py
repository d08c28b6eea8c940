"""The bounds of `make house`: sizes, names, comments and references of the package."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import house

BUDGET = Path(__file__).with_name("budget.toml")


@pytest.fixture(scope="module")
def measures() -> house.Measures:
    return house.measure_house()


def test_files_are_neither_crumbs_nor_heaps(measures: house.Measures) -> None:
    assert measures.under_40 <= 10  # an `__init__` is short by nature
    assert measures.over_400 == 0


def test_functions_fit_a_screen(measures: house.Measures) -> None:
    assert measures.over_60 == 0
    assert measures.function_median <= 12


def test_functions_are_named_verb_and_noun(measures: house.Measures) -> None:
    assert measures.one_word <= 0.45


def test_class_names_are_unique(measures: house.Measures) -> None:
    assert measures.shared <= 0.03


def test_arguments_are_typed(measures: house.Measures) -> None:
    assert measures.typed == 1.0


def test_comments_stand_where_a_reader_would_stop(measures: house.Measures) -> None:
    assert 0.02 <= measures.comments <= 0.05


def test_the_packages_weigh_no_more_than_they_may(measures: house.Measures) -> None:
    budget = tomllib.loads(BUDGET.read_text(encoding="utf-8"))
    assert measures.files <= budget["files"]
    assert measures.imports <= budget["import_share"]
    assert measures.packages.keys() == budget["code_lines"].keys()
    heavier = {
        name: size for name, size in measures.packages.items() if size > budget["code_lines"][name]
    }
    assert heavier == {}


def test_a_question_imports_no_more_than_it_needs() -> None:
    """What `osler ask` imports before it looks at the question; the rest comes when wanted."""
    names = (
        "osler.cli.ask",
        "osler.runs.answering",
        "osler.build.strategies",
        "osler.retrieve.hybrid",
    )
    code = f"import sys, {', '.join(names)}; print(*sys.modules)"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    sizes = {file.name: file.count_lines()[0] for file in house.read_sources()}
    lines = sum(sizes.get(name, 0) for name in done.stdout.split())
    assert lines <= tomllib.loads(BUDGET.read_text(encoding="utf-8"))["ask_lines"]


def test_references_lead_to_files_that_are_here(measures: house.Measures) -> None:
    assert measures.lost == ()


@pytest.mark.parametrize(
    ("name", "one_word"),
    [("read", True), ("_read", True), ("read_page", False), ("_read_page", False), ("__x", True)],
)
def test_a_name_is_one_word_without_an_underscore_inside(name: str, one_word: bool) -> None:
    assert house.is_one_word(name) is one_word

"""Imports go one way only, as drawn in docs/architecture.md, and never in a circle."""

import ast
import functools
from pathlib import Path

import pytest

import house

SRC = Path(__file__).parents[2] / "src" / "osler"

LAYERS: tuple[set[str], ...] = (
    {"types", "errors", "text", "questions", "danger"},
    {"trace", "prompts"},
    {"reports"},
    {"llm"},
    {"sources"},
    {"kb"},
    {"graph"},
    {"extract"},
    {"retrieve"},
    {"answer"},
    {"methods"},
    {"jobs"},
    {"evaluate"},
    {"train"},
    {"app", "sample"},
    {"client"},
    {"serve"},
    {"cli"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
SIBLINGS = {"types", "errors", "text", "questions", "danger", "trace", "prompts"}
"""Parts of one layer that may import each other; the circle test still holds for their modules."""

PAPERS = {"tcrag", "kag", "omni"}
"""Inside `methods`, the three papers know nothing of each other; `unified` may know all of them."""

ROOMS = {
    "kb": ("store", "encoders", "search", "index", "ingest"),
    "app": ("config", "wiring"),
}
"""Rooms of one part, low to high; what stands beside them may import them all."""


@functools.cache
def read_imports() -> dict[str, set[str]]:
    """Module to the modules it imports, read when a test asks and not by all that collect."""
    return house.import_graph(house.read_sources())


def imported_modules(source: str) -> set[str]:
    """Modules of Osler that a source imports, wherever the import stands."""
    return {
        house.module_of(name, read_imports())
        for name in house.imported_names(ast.walk(ast.parse(source)))
    }


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def room(module: str) -> str:
    return ".".join(module.split(".")[2:3])


def is_free(module: str) -> bool:
    """Whether a module may import anything: the package itself, its entry, and the doubles."""
    return part(module) in {"", "__main__", "testing"}


def is_breach(module: str, other: str) -> bool:
    own, its = part(module), part(other)
    if not its:  # `osler` itself holds nothing but lazy public names
        return True
    if own != its:
        same_level = LEVEL[its] == LEVEL[own] and not {own, its} <= SIBLINGS
        return LEVEL[its] > LEVEL[own] or same_level
    if own == "methods" and {room(module), room(other)} & PAPERS:
        return room(module) not in {room(other), "unified"}
    order = ROOMS.get(own, ())
    if room(other) in order and room(module) in order:
        return order.index(room(other)) > order.index(room(module))
    return room(module) in order and room(other) not in order and room(other) != ""


def test_every_part_has_its_layer() -> None:
    assert {part(module) for module in read_imports() if not is_free(module)} <= LEVEL.keys()


def test_only_core_modules_stand_loose_at_the_root() -> None:
    loose = {path.stem for path in SRC.glob("*.py")}
    assert loose == {"__init__", "__main__", "errors", "text", "questions"}


def test_imports_go_one_way_only() -> None:
    breaches = [
        f"{module} imports {other}"
        for module, others in read_imports().items()
        if not is_free(module)
        for other in sorted(others)
        if is_breach(module, other)
    ]
    assert breaches == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert house.find_circles(read_imports()) == []


def test_a_circle_would_be_seen() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert house.find_circles(graph) == [{"b", "c"}]


def test_nothing_but_tests_imports_the_doubles() -> None:
    users = [
        module
        for module, others in read_imports().items()
        if part(module) != "testing" and any(part(other) == "testing" for other in others)
    ]
    assert users == []


def test_only_wiring_and_the_doors_read_settings() -> None:
    users = {
        part(module)
        for module, others in read_imports().items()
        if any(other.startswith("osler.app.config") for other in others)
    }
    assert users <= {"app", "serve", "cli", "testing", ""}


def test_the_client_imports_no_more_than_errors_and_reports() -> None:
    used = {
        part(other)
        for module, others in read_imports().items()
        if part(module) == "client"
        for other in others
    }
    assert used == {"client", "errors", "reports"}


@pytest.mark.parametrize(
    ("line", "breach"),
    [
        ("from osler import cli", True),
        ("import osler.app.wiring", True),
        ("from osler.methods.tcrag import stack", True),
        ("from osler.methods.kag.planner import Planner", False),
        ("from osler.types import Question", False),
    ],
)
def test_an_upward_import_would_be_seen(line: str, breach: bool) -> None:
    """The test tests itself: the same reading finds each way to write it."""
    (module,) = imported_modules(line)
    assert is_breach("osler.methods.kag.solver", module) is breach

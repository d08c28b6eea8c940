"""Imports go one way only, as drawn in docs/architecture.md, and never in a circle."""

import ast
import functools

import pytest

import house

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
    {"settings"},
    {"build"},
    {"audit", "doctor", "sample"},
    {"runs", "probe"},
    {"cli"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
SIBLINGS = {"types", "errors", "text", "questions", "danger", "trace", "prompts"}
"""Parts of one layer that may import each other; the circle test still holds for their modules."""

PAPERS = {"tcrag", "kag", "omni"}
"""Inside `methods`, the three papers know nothing of each other; `unified` may know all of them."""

ROOMS = {"kb": ("store", "encoders", "search", "index", "ingest")}
"""Rooms of one part, low to high; what stands beside them may import them all."""

OPTIONAL = {"osler_serve.evaluations", "osler_serve.state"}
"""Modules of the server that read the laboratory's reports, where it is installed."""


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
    home, its_home = module.partition(".")[0], other.partition(".")[0]
    if home != its_home:
        return its_home != "osler" and module not in OPTIONAL
    return home == "osler" and is_breach_of_layers(module, other)


def is_breach_of_layers(module: str, other: str) -> bool:
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
    core = (module for module in read_imports() if module.startswith("osler."))
    assert {part(module) for module in core if not is_free(module)} <= LEVEL.keys()


def test_only_core_modules_stand_loose_at_the_root() -> None:
    loose = {path.stem for path in house.SRC.glob("*.py")}
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


def test_only_what_builds_and_the_interfaces_read_settings() -> None:
    users = {
        part(module)
        for module, others in read_imports().items()
        if module.startswith("osler.")
        and any(other.startswith("osler.settings") for other in others)
    }
    assert users <= {"settings", "build", "audit", "runs", "doctor", "probe", "cli", "testing", ""}


def test_the_client_imports_no_more_than_errors_reports_and_replies() -> None:
    used = {
        other.split(".")[0] + "." + part(other)
        for module, others in read_imports().items()
        if module.startswith("osler_serve.client")
        for other in others
    }
    light = {"osler.errors", "osler.reports"}
    light |= {"osler_serve.replies", "osler_serve.evaluation_replies"}
    assert used == {"osler_serve.client", *light}


@pytest.mark.parametrize(
    ("line", "breach"),
    [
        ("from osler import cli", True),
        ("import osler.build", True),
        ("import osler_lab.evaluate", True),
        ("from osler_serve.app import make_app", True),
        ("from osler.methods.tcrag import stack", True),
        ("from osler.methods.kag.planner import Planner", False),
        ("from osler.types import Question", False),
    ],
)
def test_an_upward_import_would_be_seen(line: str, breach: bool) -> None:
    """The test tests itself: the same reading finds each way to write it."""
    (module,) = imported_modules(line)
    assert is_breach("osler.methods.kag.solver", module) is breach

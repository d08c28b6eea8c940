"""Imports go one way only, low to high (DESIGN "The house")."""

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "osler"

LAYERS = (
    {"types", "errors", "text"},
    {"trace", "prompts", "questions", "lanes"},
    {"llm", "kb"},
    {"retrieve"},
    {"answer"},
    {"tcrag", "kag", "omni", "baselines"},
    {"unified"},
    {"evaluate"},
    {"train"},
    {"config", "presets", "sample"},
    {"wiring"},
    {"runs", "doctor", "calibrate", "studies", "trials"},
    {"plans"},
    {"web"},
    {"serve"},
    {"cli"},
)
SIBLINGS_MAY_MEET = {
    "types",
    "errors",
    "text",
    "trace",
    "prompts",
    "questions",
    "lanes",
    "llm",
    "kb",
}
"""Parts of one layer that may import each other; the papers' own never do."""
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            head = node.module.split(".")
            if head == ["osler"]:
                found += [alias.name for alias in node.names]
            elif head[0] == "osler":
                found.append(head[1])
        elif isinstance(node, ast.Import):
            found += [a.name.split(".")[1] for a in node.names if a.name.startswith("osler.")]
    return found


def part(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def breaches(path: Path) -> list[str]:
    own = part(path)
    if own in {"__init__", "__main__", "testing"}:
        return []
    return [
        f"{path.relative_to(SRC)} ({own}) imports {other}"
        for other in imports(path)
        if other != own
        and (
            LEVEL[other] > LEVEL[own]
            or (LEVEL[other] == LEVEL[own] and not {own, other} <= SIBLINGS_MAY_MEET)
        )
    ]


def test_every_part_has_its_layer() -> None:
    parts = {part(path) for path in SRC.rglob("*.py")} - {"__init__", "__main__", "testing"}
    assert parts <= LEVEL.keys()


def test_imports_go_one_way_only() -> None:
    assert [b for path in sorted(SRC.rglob("*.py")) for b in breaches(path)] == []


def test_nothing_but_tests_imports_the_doubles() -> None:
    users = [p for p in SRC.rglob("*.py") if "testing" in imports(p) and part(p) != "testing"]
    assert users == []


def test_only_wiring_and_the_doors_read_settings() -> None:
    allowed = {"wiring", "runs", "doctor", "calibrate", "studies", "trials", "plans"}
    allowed |= {"cli", "serve", "config", "testing", "__init__"}
    users = {part(p) for p in SRC.rglob("*.py") if "config" in imports(p)}
    assert users <= allowed


@pytest.mark.parametrize(
    "line",
    ["from osler import cli", "import osler.app.wiring", "from osler.methods.tcrag import stack"],
)
def test_an_upward_import_would_be_seen(tmp_path: Path, line: str) -> None:
    """The test tests itself: the same reading finds each way to write it."""
    file = tmp_path / "x.py"
    file.write_text(line, encoding="utf-8")
    assert imports(file)[0] in {"cli", "wiring", "tcrag"}

"""Prints how the packages measure: sizes, names, types, comments, imports (`make house`).

One-word names have no underscore inside (leading and trailing ones do not count; dunders are left
out). A class shares its name when the same name is defined more than once in the package; the
share is over all class definitions. Code lines are lines with code on them, without docstrings.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {
    name.replace("-", "_"): ROOT / "packages" / name / "src" / name.replace("-", "_")
    for name in ("osler", "osler-lab", "osler-serve")
}
"""Import name of each package, and its folder."""
SRC = PACKAGES["osler"]
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class SourceFile:
    """One module: its text, its syntax tree and its counted lines."""

    path: Path
    text: str = field(init=False)
    tree: ast.Module = field(init=False)

    def __post_init__(self) -> None:
        self.text = self.path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    @property
    def name(self) -> str:
        """The dotted name of the module."""
        parts = self.path.with_suffix("").parts
        parts = parts[len(parts) - parts[::-1].index("src") :]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree: walking it is most of the work, and is done once."""
        return list(ast.walk(self.tree))

    @cached_property
    def functions(self) -> list[Function]:
        return [n for n in self.nodes if isinstance(n, Function)]

    @cached_property
    def classes(self) -> list[str]:
        return [n.name for n in self.nodes if isinstance(n, ast.ClassDef)]

    @cached_property
    def handlers(self) -> list[ast.ExceptHandler]:
        return [n for n in self.nodes if isinstance(n, ast.ExceptHandler)]

    def count_lines(self) -> tuple[int, int]:
        """Lines with code (docstrings left out), and lines with a comment."""
        code: set[int] = set()
        comments: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                comments.add(token.start[0])
            elif token.type not in LAYOUT:
                code.update(range(token.start[0], token.end[0] + 1))
        return len(code - self._docstring_lines()), len(comments)

    def _docstring_lines(self) -> set[int]:
        found: set[int] = set()
        for node in self.nodes:
            if not isinstance(node, Function | ast.ClassDef | ast.Module):
                continue
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                found.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
        return found


def count_import_lines(file: SourceFile) -> int:
    found = (n for n in file.nodes if isinstance(n, ast.Import | ast.ImportFrom))
    return sum((one.end_lineno or one.lineno) - one.lineno + 1 for one in found)


def is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in {"Exception", "BaseException"})
        for kind in kinds
    )


def is_one_word(name: str) -> bool:
    return "_" not in name.strip("_")


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def arguments_of(function: Function) -> Iterator[ast.arg]:
    """All arguments but `self` and `cls`."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    every += [one for one in (given.vararg, given.kwarg) if one is not None]
    return (one for one in every if one.arg not in {"self", "cls"})


def span_of(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def quantile(values: list[int], share: float) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@cache
def read_sources() -> list[SourceFile]:
    """Every module of the packages, parsed once in a process."""
    return [SourceFile(path) for home in PACKAGES.values() for path in sorted(home.rglob("*.py"))]


def imported_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Dotted names of the packages that a module imports, wherever the import stands."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] in PACKAGES)


def module_of(name: str, modules: Container[str]) -> str:
    """The longest prefix of a dotted name that is a module."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def import_graph(files: list[SourceFile]) -> dict[str, set[str]]:
    """Module to the modules of the packages that it imports."""
    modules: dict[str, SourceFile] = {}
    for file in files:
        modules[file.name] = file
    return {
        name: {module_of(other, modules) for other in imported_names(file.nodes)} - {name, ""}
        for name, file in modules.items()
    }


def find_circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules that import each other in a circle (Tarjan's components of two and more)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    circles: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                circles.append(set(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in index:
            visit(node)
    return circles


TRACKED_TEXT = {".py", ".md", ".toml", ".yml", ".yaml", ".ts", ".tsx", ".cfg", ".txt", ""}
PATH = re.compile(
    r"(?<![\w/.<-])((?:packages|tests|docs|benchmarks|research|examples|scripts|web|osler)/[\w./-]+"
    r"\.(?:py|md|toml|jsonl?|svg|png|tsx?|ya?ml|j2|sh|txt|css|html))\b"
)
OUTSIDE = re.compile(
    r"\bF-(?:TC|KT|OM)-\d+|\b(?:FEATURES(?=\.md)|DESIGN|ENGINES|ECOSYSTEM|HOUSE|EXPERTS|AUDIT-\w+)(?:\.md)?\b"
    r"|\bSTYLE\.md\b"
)
DOTTED = re.compile(r"`((?:osler|osler_lab|osler_serve)(?:\.[A-Za-z_]\w*)+)(?:\(\))?`")
FILES_AND_GROUPS = {
    "toml",
    "service",
    "access",
    "prompts",
    "datasets",
    "encoders",
    "formats",
    "strategies",
}
"""What follows `osler.` in names of files and of groups of entry points."""
BUILT = re.compile(r"/dist/|/node_modules/")
"""What a command of the repository makes is named, and not kept."""


@cache
def defined_names() -> dict[str, set[str]]:
    """Module to the names that it defines or imports at its top level."""
    return {file.name: set(names_at_top(file.tree.body)) for file in read_sources()}


def names_at_top(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, Function | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named = (part for one in targets for part in ast.walk(one))
            yield from (part.id for part in named if isinstance(part, ast.Name))
        elif isinstance(node, ast.If | ast.Try):
            yield from names_at_top([*node.body, *node.orelse])


def is_lost(dotted: str) -> bool:
    """Whether a dotted name leads to no module, and to no name of one; settings files are files."""
    module = module_of(dotted, defined_names())
    rest = dotted.removeprefix(module).lstrip(".").split(".")[0]
    return bool(rest) and rest not in defined_names().get(module, set()) | FILES_AND_GROUPS


def lost_references() -> list[str]:
    """References to files that are not in the repository, as `file:line: reference`."""
    listed = subprocess.run(  # noqa: S603 - git of the one who calls
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
    )
    lost = []
    for name in listed.stdout.splitlines():
        path = ROOT / name
        # The log tells what was measured when; tests make files of any name.
        if path.suffix not in TRACKED_TEXT or not path.is_file() or ".lock" in name:
            continue
        if name.startswith(("tests/", "research/log/")) or path == Path(__file__).resolve():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            lost += [f"{name}:{number}: {found}" for found in OUTSIDE.findall(line)]
            lost += [f"{name}:{number}: {one}" for one in DOTTED.findall(line) if is_lost(one)]
            for found in PATH.findall(line):
                homes = (ROOT / found, *(home.parent / found for home in PACKAGES.values()))
                if not BUILT.search(found) and not any(home.exists() for home in homes):
                    lost.append(f"{name}:{number}: {found}")
    return lost


@dataclass(frozen=True)
class Measures:
    """The figures of the packages."""

    files: int
    code: int
    packages: dict[str, int]
    """Code lines of each package."""
    file_median: int
    file_p90: int
    file_max: int
    under_40: int
    over_400: int
    functions: int
    function_median: int
    function_p95: int
    function_max: int
    over_60: int
    typed: float
    broad: int
    excepts: int
    one_word: float
    shared: float
    comments: float
    circles: int
    loose: tuple[str, ...]
    lost: tuple[str, ...]
    imports: float
    """Share of the code lines that are imports."""


def measure_house() -> Measures:
    files = read_sources()
    lines = [file.lines for file in files]
    counted = [file.count_lines() for file in files]
    code, comments = sum(c for c, _ in counted), sum(c for _, c in counted)
    functions = [function for file in files for function in file.functions]
    spans = [span_of(function) for function in functions]
    names = [function.name for function in functions if not is_dunder(function.name)]
    arguments = [argument for function in functions for argument in arguments_of(function)]
    classes = Counter(name for file in files for name in file.classes)
    shared = sum(count for count in classes.values() if count > 1)
    handlers = [handler for file in files for handler in file.handlers]
    sizes = Counter[str]()
    for file, (own, _) in zip(files, counted, strict=True):
        sizes[file.package] += own
    return Measures(
        files=len(files),
        code=code,
        packages=dict(sizes),
        file_median=quantile(lines, 0.5),
        file_p90=quantile(lines, 0.9),
        file_max=max(lines),
        under_40=sum(f.lines < 40 and not f.path.stem.startswith("__") for f in files),
        over_400=sum(count > 400 for count in lines),
        functions=len(names),
        function_median=quantile(spans, 0.5),
        function_p95=quantile(spans, 0.95),
        function_max=max(spans),
        over_60=sum(span > 60 for span in spans),
        typed=sum(a.annotation is not None for a in arguments) / len(arguments),
        broad=sum(map(is_broad, handlers)),
        excepts=len(handlers),
        one_word=sum(map(is_one_word, names)) / len(names),
        shared=shared / sum(classes.values()),
        comments=comments / code,
        circles=len(find_circles(import_graph(files))),
        loose=tuple(sorted(path.stem for path in SRC.glob("*.py"))),
        lost=tuple(lost_references()),
        imports=sum(map(count_import_lines, files)) / code,
    )


def print_table(found: Measures) -> None:
    rows = (
        ("files / code lines", f"{found.files} / {found.code:,}"),
        *((f"code lines of {name}", f"{size:,}") for name, size in found.packages.items()),
        ("file median / p90 / max", f"{found.file_median} / {found.file_p90} / {found.file_max}"),
        ("modules under 40 / files over 400 lines", f"{found.under_40} / {found.over_400}"),
        (
            "function median / p95 / max",
            f"{found.function_median} / {found.function_p95} / {found.function_max}",
        ),
        ("functions over 60 lines", f"{found.over_60} of {found.functions:,}"),
        ("typed arguments", f"{found.typed:.1%}"),
        ("broad / all excepts", f"{found.broad} / {found.excepts}"),
        ("one-word function names", f"{found.one_word:.1%}"),
        ("classes that share their name", f"{found.shared:.1%}"),
        ("comment lines, of code", f"{found.comments:.1%}"),
        ("import lines, of code", f"{found.imports:.1%}"),
        ("import circles", f"{found.circles}"),
        ("modules loose at the root", " ".join(found.loose)),
        ("references to files that are not here", f"{len(found.lost)}"),
    )
    print("| measure | Osler |\n|---|--:|")
    for name, value in rows:
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    measures = measure_house()
    print_table(measures)
    if "--list" in sys.argv:
        print("\n".join(measures.lost))

"""Counts the faults that the tests would see: mutants of three rooms, by mutmut (`make mutants`).

A seeded sample of the mutants of `methods/`, `answer/` and `evaluate/metrics` is tried, each with
only the tests that ran its function when nothing was wrong. What was tried is kept (in
`.venv/mutants`): a second run goes on where the first one ended, and tries again what has changed.
mutmut leaves out decorated functions (properties) and code outside functions.

Mutants that change nothing that could be seen stand in `equivalent_mutants.toml` with the reason;
they are not counted.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import fnmatch
import io
import os
import random
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORK = ROOT / ".venv" / "mutants"
LOG = WORK / "run.log"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
ROOMS = {
    "methods": "packages/osler/src/osler/methods/*",
    "answer": "packages/osler/src/osler/answer/*",
    "evaluate/metrics": "packages/osler-lab/src/osler_lab/evaluate/metrics/*",
}
LINKED = (
    "packages",
    "tests",
    "benchmarks",
    "research",
    "scripts",
    "docs",
    "examples",
    "pyproject.toml",
)
CAUGHT = {"killed", "timeout", "segfault", "suspicious"}
"""A mutant that hangs or crashes would be seen as well; "suspicious" is any other exit."""


@dataclass(frozen=True)
class Mutant:
    """One change of one function, and what came of it."""

    name: str
    path: str
    status: str

    @property
    def room(self) -> str:
        return next(room for room, files in ROOMS.items() if fnmatch.fnmatch(self.path, files))


@dataclass(frozen=True)
class Change:
    """The lines that a mutant takes out and puts in."""

    line: int
    """In the file, 1-based; 0 where it could not be found."""
    removed: str
    added: str


@dataclass(frozen=True)
class Equivalent:
    """A change that no test can see, with the reason."""

    path: str
    removed: str
    added: str

    def holds_for(self, mutant: Mutant, change: Change) -> bool:
        return (mutant.path, change.removed, change.added) == (self.path, self.removed, self.added)


def sample_names(names: Iterable[str], count: int, seed: int) -> list[str]:
    """A sample that grows: a larger one with the same seed holds the smaller ones."""
    ordered = sorted(names)
    random.Random(seed).shuffle(ordered)
    return ordered[:count]


def read_equivalents(path: Path = EQUIVALENT) -> list[Equivalent]:
    """The reviewed list; every entry has a reason. Raises `ValueError` for one without."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", [])
    for entry in entries:
        if not entry.get("reason", "").strip():
            raise ValueError(f"no reason: {entry}")
    return [Equivalent(e["path"], e["removed"], e["added"]) for e in entries]


def read_change(diff: str, source: str, function: str) -> Change:
    """Finds the change of a unified diff of one function in the file's source.

    `function` is "name" or "Class.name". Several changed lines are joined by a space.
    """
    lines = diff.splitlines()[2:]
    removed = " ".join(line[1:].strip() for line in lines if line.startswith("-"))
    added = " ".join(line[1:].strip() for line in lines if line.startswith("+"))
    first = next((line[1:].strip() for line in lines if line[:1] in "-+"), "")
    start = next((line[1:].strip() for line in lines if line.startswith("-")), first)
    begin, end = _function_lines(source, function)
    within = enumerate(source.splitlines()[begin - 1 : end], start=begin)
    matches = [number for number, text in within if text.strip() == start]
    return Change(matches[0] if matches else begin, removed, added)


def _function_lines(source: str, function: str) -> tuple[int, int]:
    class_name, _, name = function.rpartition(".")
    body: Sequence[ast.stmt] = ast.parse(source).body
    if class_name:
        classes = (node for node in body if isinstance(node, ast.ClassDef))
        body = next((node.body for node in classes if node.name == class_name), [])
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node.lineno, node.end_lineno or node.lineno
    return 0, 0


def summarise(mutants: Iterable[Mutant]) -> dict[str, Counter[str]]:
    """Counts "tried" and "caught" by room, in the order of `ROOMS`."""
    counts: dict[str, Counter[str]] = {room: Counter() for room in ROOMS}
    for mutant in mutants:
        counts[mutant.room]["tried"] += 1
        counts[mutant.room]["caught"] += mutant.status in CAUGHT
    return {room: count for room, count in counts.items() if count["tried"]}


class Workshop:
    """The folder in which mutmut works: links to this checkout, and its own `mutants/`."""

    def __init__(self, rooms: Sequence[str], processes: int) -> None:
        self.rooms, self.processes = rooms, processes
        WORK.mkdir(parents=True, exist_ok=True)
        for name in LINKED:
            link = WORK / name
            if not link.is_symlink():
                link.symlink_to(ROOT / name)
        os.chdir(WORK)
        # Tests that read documents find them where the checkout has them.
        for page in ROOT.glob("*.md"):
            (WORK / "mutants").mkdir(exist_ok=True)
            shutil.copy2(page, WORK / "mutants" / page.name)

    def generate(self) -> None:
        """Writes the mutants of every room; those of unchanged functions keep their results."""
        from mutmut import __main__ as mutmut
        from mutmut.mutation.trampoline import set_mutant_under_test

        set_mutant_under_test("mutant_generation")
        self._refresh()
        with redirect_stdout(io.StringIO()):
            mutmut.copy_src_dir()
            mutmut.copy_also_copy_files()
            mutmut.create_mutants(self.processes)

    def _refresh(self) -> None:
        """Brings files that are not mutated up to date; mutmut copies each of them only once."""
        from mutmut.utils.file_utils import walk_all_files

        for folder, name in walk_all_files():
            source = Path(folder) / name
            copy = WORK / "mutants" / source
            if copy.exists() and copy.stat().st_mtime < source.stat().st_mtime:
                copy.unlink()

    def read_mutants(self) -> Iterator[Mutant]:
        from mutmut.mutation.data import SourceFileMutationData
        from mutmut.stats import status_by_exit_code
        from mutmut.utils.file_utils import walk_mutatable_files

        wanted = [ROOMS[room] for room in self.rooms]
        for path in walk_mutatable_files():
            if any(fnmatch.fnmatch(str(path), files) for files in wanted):
                data = SourceFileMutationData(path=path)
                data.load()
                for name, code in data.exit_code_by_key.items():
                    yield Mutant(name, str(path), status_by_exit_code[code])

    def try_mutants(self, names: Sequence[str]) -> None:
        """Runs the tests of each mutant, in processes forked from one that has imported all.

        Prints every half minute how many were tried. Raises `SystemExit` where mutmut fails,
        as it does when a test fails without any mutant.
        """
        options = [f"--processes={self.processes}", "--try", *names]
        command = [sys.executable, __file__, *options]
        with LOG.open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:  # noqa: S603
            while (code := _wait(process, seconds=30)) is None:
                left = {m.name for m in self.read_mutants() if m.status == "not checked"}
                print(f"{len(names) - len(left & set(names))} of {len(names)} tried", flush=True)
        if code:
            raise SystemExit(f"mutmut ended with {code}; see {LOG}")

    def describe(self, mutant: Mutant) -> Change:
        from mutmut.mutation.diff_apply import get_diff_for_mutant
        from mutmut.utils.format_utils import orig_function_and_class_names_from_key

        name, class_name = orig_function_and_class_names_from_key(mutant.name)
        diff = get_diff_for_mutant(mutant.name, path=mutant.path)
        source = (WORK / mutant.path).read_text(encoding="utf-8")
        return read_change(diff, source, f"{class_name}.{name}" if class_name else name)


def run_mutmut(names: Sequence[str], processes: int) -> None:
    """mutmut's own run of these mutants, with tests named by function instead of by parameters.

    In one process it collects several times, and pytest then no longer finds every parameter's
    id; a function's other parameters are cheap.
    """
    from mutmut.__main__ import _run
    from mutmut.runners.harness import PytestRunner

    regular = PytestRunner._pytest_args_regular_run

    def name_functions(self: PytestRunner, tests: Iterable[str]) -> list[str]:
        arguments: list[str] = regular(self, sorted({name.partition("[")[0] for name in tests}))
        return arguments

    PytestRunner._pytest_args_regular_run = name_functions
    os.chdir(WORK)
    _run(list(names), processes)


def _wait(process: subprocess.Popen[bytes], *, seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def print_report(workshop: Workshop, chosen: Sequence[str]) -> None:
    known = read_equivalents()
    wanted = set(chosen)
    tried = [m for m in workshop.read_mutants() if m.name in wanted and m.status != "not checked"]
    counted, survivors = [], []
    for mutant in tried:
        if mutant.status in CAUGHT:
            counted.append(mutant)
            continue
        change = workshop.describe(mutant)
        if not any(entry.holds_for(mutant, change) for entry in known):
            counted.append(mutant)
            survivors.append((mutant, change))
    for mutant, change in sorted(survivors, key=lambda pair: (pair[0].path, pair[1].line)):
        print(f"{mutant.path}:{change.line}  ({mutant.status})")
        for old, new in _short_changes(change):
            print(f"    - {old}\n    + {new}")
    print(f"\n{'room':<18}{'tried':>7}{'caught':>8}{'share':>9}")
    for room, count in summarise(counted).items():
        share = 100 * count["caught"] / count["tried"]
        print(f"{room:<18}{count['tried']:>7}{count['caught']:>8}{share:>7.1f} %")
    print(f"{len(tried) - len(counted)} equivalent mutants are left out")


def _short_changes(change: Change, width: int = 110) -> Iterator[tuple[str, str]]:
    """The differing middle of the two texts, with a little of what stands around it."""
    old, new = change.removed, change.added
    if max(len(old), len(new)) <= width:
        yield old, new
        return
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = [block for block in blocks if block[0] != "equal"]
    start = max(0, changed[0][1] - 30)
    yield (
        f"…{old[start : changed[-1][2] + 30]}…"[: 2 * width],
        f"…{new[max(0, changed[0][3] - 30) : changed[-1][4] + 30]}…"[: 2 * width],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rooms", nargs="*", choices=[*ROOMS, []], help="default: all of them")
    parser.add_argument("-n", type=int, default=300, help="mutants of the sample")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--report", action="store_true", help="try nothing, report what is there")
    parser.add_argument("--try", nargs="+", dest="names", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.names:
        run_mutmut(options.names, options.processes)
        return
    # The same examples for each mutant, and few: a verdict must not hang on a draw.
    os.environ |= {"CI": "1", "HYPOTHESIS_PROFILE": "quick"}
    workshop = Workshop(options.rooms or list(ROOMS), options.processes)
    if not options.report:
        workshop.generate()
    mutants = {mutant.name: mutant for mutant in workshop.read_mutants()}
    chosen = sample_names(mutants, options.n, options.seed)
    print(f"{len(mutants)} mutants, {len(chosen)} in the sample")
    untried = [name for name in chosen if mutants[name].status == "not checked"]
    try:
        if untried and not options.report:
            workshop.try_mutants(untried)
    except KeyboardInterrupt:
        print("stopped; the next run goes on from here", file=sys.stderr)
    print_report(workshop, chosen)


if __name__ == "__main__":
    main()

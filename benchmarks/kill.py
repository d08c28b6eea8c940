"""Kills additions, updates, builds and snapshots at random moments, and looks at what is left.

    python benchmarks/kill.py [ROUNDS] [--real ROUNDS] [--seed N]

In each round a copy of a prepared knowledge base is worked on by a child process, which is
killed (SIGKILL) at a random moment of its work. Then it must hold: every file that the child
had reported as read is there with its newest content; nothing is there twice; `verify` finds
nothing but that it is not built yet; the same command, run again, ends with exactly the
passages and vectors of a run that nobody killed. `--real` rounds encode with all-MiniLM-L6-v2.
Prints a line for each kind of work: rounds, kills that hit, and the time to resume.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder

KINDS = ("add", "update", "build", "snapshot")
_ENDING = ".jsonl"


@dataclass(frozen=True)
class Sizes:
    files: int = 60
    documents: int = 20
    """In each file."""


@dataclass
class Tally:
    rounds: int = 0
    hit: int = 0
    """Kills that came before the child had ended."""
    partly: int = 0
    """Kills that left some of the work done and some not."""
    resumes: list[float] = field(default_factory=list)

    def line(self, kind: str) -> str:
        slowest = max(self.resumes)
        median = statistics.median(self.resumes)
        return (
            f"{kind:<9} {self.rounds:>6} {self.hit:>5} {self.partly:>11}"
            f" {median:>11.2f} s {slowest:>9.2f} s"
        )


def write(folder: Path, sizes: Sizes, version: int) -> None:
    """The first version of all files, or the second: a third of them other, one gone, one new."""
    folder.mkdir(exist_ok=True)
    for number in range(sizes.files + version):
        path = folder / f"{number:04}{_ENDING}"
        if version and number == 1:
            path.unlink(missing_ok=True)
        elif not version or number % 3 == 0 or number == sizes.files:
            path.write_text("\n".join(_rows(number, sizes, version)) + "\n")


def _rows(number: int, sizes: Sizes, version: int) -> Iterator[str]:
    for n in range(sizes.documents):
        changed = version if n % 2 else 0
        text = f"Document {n} of file {number}, state {changed}: iron, zinc and gold {n * number}."
        title = f"Title {number}-{n}"
        yield json.dumps({"id": f"d{number}-{n}", "title": title, "content": text, "contents": ""})


def encoder(real: bool) -> Encoder:
    if real:
        from osler.kb.encoders.base import MiniLMEncoder

        return MiniLMEncoder(threads=1)
    return HashingEncoder()


def work(kind: str, path: Path, data: Path, *, real: bool) -> None:
    """What the child does and, after the kill, who goes on. Says what is done, line by line."""

    def report(what: str, done: int, total: int | None) -> None:
        sys.stdout.write(f"{what} {done}\n")
        sys.stdout.flush()

    made = encoder(real)
    sys.stdout.write("begin\n")
    sys.stdout.flush()
    with KnowledgeBase.open(path) as kb:
        if kind == "add":
            kb.add([data], source="book", progress=report)
        elif kind == "update":
            kb.update(prune=True, progress=report)
        elif kind == "build":
            kb.build(made, batch=8, progress=report)
        elif "copy" not in [one.name for one in kb.list_snapshots()]:
            kb.take_snapshot("copy", progress=report)


def prepare(folder: Path, sizes: Sizes, *, real: bool) -> dict[str, tuple[Path, str, float]]:
    """For each kind of work: where it begins, how it must end, and how long it takes."""
    data, prepared = folder / "data", {}
    write(data, sizes, 0)
    with KnowledgeBase.create(folder / "add"):
        pass
    shutil.copytree(folder / "add", folder / "build")
    with KnowledgeBase.open(folder / "build") as kb:
        kb.add([data], source="book")
    shutil.copytree(folder / "build", folder / "update")
    with KnowledgeBase.open(folder / "update") as kb:
        kb.build(encoder(real), batch=8)
    shutil.copytree(folder / "update", folder / "snapshot")
    for kind in ("add", "build", "snapshot", "update"):
        if kind == "update":
            write(data, sizes, 1)
        end = folder / f"{kind}-end"
        shutil.copytree(folder / kind, end)
        with _begun(kind, end, data, real=real) as child:
            began = time.perf_counter()
            child.communicate()
            took = time.perf_counter() - began
        with KnowledgeBase.open(end) as kb:
            prepared[kind] = (folder / kind, kb.build(encoder(real)).snapshot, took)
    return prepared


def _begun(kind: str, path: Path, data: Path, *, real: bool) -> subprocess.Popen[str]:
    """A child that has its imports and its model behind it."""
    command = [sys.executable, __file__, "--child", kind, str(path), str(data)]
    child = subprocess.Popen(  # noqa: S603
        [*command, *(["--with-model"] if real else [])], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    first = child.stdout.readline()
    assert first == "begin\n", first
    return child


def one_round(
    kind: str, start: Path, end: str, delay: float, data: Path, tally: Tally, *, real: bool
) -> None:
    """Raises `AssertionError` for whatever was lost, doubled or damaged."""
    path = start.parent / "round"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(start, path)
    with _begun(kind, path, data, real=real) as child:
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        said = child.communicate()[0].split("\n")[:-1]
    tally.rounds += 1
    tally.hit += child.returncode == -signal.SIGKILL
    made = encoder(real)
    with KnowledgeBase.open(path) as kb:
        tally.partly += _look(kb, kind, said, data)
        began = time.perf_counter()
        _again(kb, kind, data)
        resumed = time.perf_counter() - began
        built = kb.build(made, batch=8)
        tally.resumes.append(resumed + (built.seconds if kind == "build" else 0))
        assert built.snapshot == end, "not the passages of a run that nobody killed"
        problems = kb.verify()
        assert problems == [], problems


def _look(kb: KnowledgeBase, kind: str, said: Sequence[str], data: Path) -> bool:
    """What is left right after the kill; whether it is some of the work, and not all of it."""
    problems = [line for line in kb.verify() if not line.startswith("it is not built")]
    assert problems == [], problems
    info = kb.info()
    if kind == "add":
        files = sorted(data.glob(f"*{_ENDING}"))
        begun = [int(line.split()[1]) for line in said if line.startswith("files ")]
        # The file whose turn it is may or may not be read; those before it are.
        for file in files[: max(begun, default=0)]:
            for line in file.read_text().splitlines():
                kb.get(f"book:{json.loads(line)['id']}#0")
        return 0 < info.documents < sum(len(file.read_text().splitlines()) for file in files)
    if kind == "build":
        done = [int(line.split()[1]) for line in said if line.startswith("encode ")]
        assert info.passages - info.pending >= max(done, default=0)
        return 0 < info.pending < info.passages
    return False


def _again(kb: KnowledgeBase, kind: str, data: Path) -> None:
    if kind == "add":
        kb.add([data], source="book")
    elif kind == "update":
        kb.update(prune=True)
    elif kind == "snapshot" and "copy" not in [one.name for one in kb.list_snapshots()]:
        kb.take_snapshot("copy")


def run(
    folder: Path, rounds: int, *, seed: int, sizes: Sizes | None = None, real: bool = False
) -> dict[str, Tally]:
    """So many rounds, the kinds of work in turn."""
    chance, tallies = random.Random(seed), {kind: Tally() for kind in KINDS}
    prepared = prepare(folder, sizes or Sizes(), real=real)
    data = folder / "data"
    for number in range(rounds):
        kind = KINDS[number % len(KINDS)]
        start, end, took = prepared[kind]
        if kind in ("add", "build", "snapshot"):
            _rewind(data, sizes or Sizes())
        else:
            write(data, sizes or Sizes(), 1)
        delay = chance.uniform(0, took)
        one_round(kind, start, end, delay, data, tallies[kind], real=real)
    return tallies


def _rewind(data: Path, sizes: Sizes) -> None:
    shutil.rmtree(data)
    write(data, sizes, 0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", nargs="?", type=int, default=200)
    parser.add_argument("--real", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", nargs=3)
    parser.add_argument("--with-model", action="store_true")
    asked = parser.parse_args()
    if asked.child:
        kind, path, data = asked.child
        work(kind, Path(path), Path(data), real=asked.with_model)
        return
    print("work      rounds  hit  half-way  resume (median)  slowest")
    for real, rounds in ((False, asked.rounds), (True, asked.real)):
        with tempfile.TemporaryDirectory() as name:
            sizes = Sizes(10, 4) if real else Sizes()
            tallies = run(Path(name), rounds, seed=asked.seed, sizes=sizes, real=real)
        for kind, tally in tallies.items():
            if tally.rounds:
                print(tally.line(f"{kind}{' *' if real else ''}"), flush=True)
    print("* with all-MiniLM-L6-v2")


if __name__ == "__main__":
    main()

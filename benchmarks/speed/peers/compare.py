"""Osler beside the engines that a user would take instead: one table.

    python benchmarks/speed/peers/texts.py DATA FOLDER
    python benchmarks/speed/peers/compare.py FOLDER ENVIRONMENTS [--rounds 3] [--only NAME …]

ENVIRONMENTS holds a virtual environment for each peer, named `PREFIX-NAME` (see `PEERS`), in which
`pip install` put the packages of the row; one that is absent is left out, and said so. Each round
takes the engines one after the other, with all cores and then with one; figures are the medians of
the rounds, and all of them are kept in FOLDER/rounds.jsonl, from which `--table` prints again.
Seconds of the processor stand beside the clock, because a machine that others use stretches the
clock alone. "Add" is from texts and vectors in memory (Osler: from the file) to texts, index and
vectors on disk; "start" from the start of a process to its first result.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PEERS = {
    "Osler": "",
    "OslerEdge": "",
    "SqliteFts": "bm25s",
    "Bm25s": "bm25s",
    "Tantivy": "tantivy",
    "LanceDb": "lancedb",
    "LlamaIndex": "faiss",
    "Txtai": "txtai",
    "Chroma": "chroma",
    "QdrantLocal": "qdrant",
}
"""Engine: the environment it runs in; "" is this one."""
ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "RAYON", "NUMBA")
} | {"LANCE_CPU_THREADS": "1"}

SETTINGS = {"LANCEDB_LOG": "error", "RUST_LOG": "error", "ALLOW_RESOLVE_TRANSFORM": "True"}
"""LanceDB's warnings cost time; txtai takes vectors that are known only with the second."""

Figures = dict[str, Any]


def find_python(environments: Path, name: str) -> Path | None:
    """The interpreter of an engine, if its environment is there."""
    if not name:
        return Path(sys.executable)
    found = sorted(environments.glob(f"*-{name}/bin/python"))
    return found[0] if found else None


def run_stage(
    python: Path, engine: str, stage: str, data: Path, store: Path, cores: int
) -> Figures:
    """What `measure.py` prints. Raises `CalledProcessError`, its words on the terminal."""
    call = [python, HERE / "measure.py", engine, stage, data, store, repr(time.time())]
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_cores)[: cores or None])  # the child inherits it
    try:
        done = subprocess.run(  # noqa: S603 - this benchmark's own script
            list(map(str, call)),
            env={**os.environ, **SETTINGS, **(ONE_THREAD if cores == 1 else {})},
            stdout=subprocess.PIPE,
            check=True,
        )
    finally:
        os.sched_setaffinity(0, all_cores)
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(python: Path, engine: str, folder: Path, cores: int) -> Figures:
    """Both stages over an empty store, and the bytes that it then holds."""
    store = folder / "stores" / engine
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir(parents=True)
    added = run_stage(python, engine, "add", folder, store, cores)
    size = sum(file.stat().st_blocks * 512 for file in store.rglob("*") if file.is_file())
    found = run_stage(python, engine, "search", folder, store, cores)
    shutil.rmtree(store)
    return {"engine": engine, "cores": cores, "add": added, "disk_mb": size / 1e6, "search": found}


def read_rounds(file: Path) -> list[Figures]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def tables(rounds: Sequence[Figures]) -> Iterator[str]:
    """For all cores and for one: a row an engine."""
    for cores in sorted({one["cores"] for one in rounds}):
        yield f"\n{'one core' if cores else 'all cores'}\n"
        yield (
            "| engine | by words, s (cpu) | with vectors, s (cpu) | start, s (cpu) | words p50/p95"
            " ms (cpu) | vectors | both | nDCG@10 words/vectors/both | MB | peak MB | disk MB | n |"
        )
        yield "|---|" + "--:|" * 11
        for engine in PEERS:
            own = [one for one in rounds if one["cores"] == cores and one["engine"] == engine]
            if own:
                yield _row(engine, own)


def _row(engine: str, rounds: Sequence[Figures]) -> str:
    packages = [f"{name} {number}" for name, number in rounds[0]["add"]["packages"].items()]
    ways = ("words", "vectors", "hybrid")
    cells = [
        engine + (f" ({', '.join(packages)})" if packages else ""),
        *(_pair(rounds, "add", what) for what in ("words", "vectors")),
        _pair(rounds, "search", "start"),
        *(_times(rounds, way) for way in ways),
        " / ".join(_middle(rounds, "search", way, "ndcg", form=".3f") for way in ways),
        _middle(rounds, "search", "memory_mb", form=".0f"),
        _middle(rounds, "add", "peak_mb", form=".0f"),
        _middle(rounds, "disk_mb", form=".0f"),
        str(len(rounds)),
    ]
    return "| " + " | ".join(cells) + " |"


def _middle(rounds: Sequence[Figures], *path: str | int, form: str = ".2f") -> str:
    values = []
    for one in rounds:
        value: Any = one
        for key in path:
            known = isinstance(value, list) or (isinstance(value, dict) and key in value)
            value = value[key] if known else None
        values.append(value)
    return "–" if None in values else format(statistics.median(values), form)


def _pair(rounds: Sequence[Figures], *path: str) -> str:
    return f"{_middle(rounds, *path, 0)} ({_middle(rounds, *path, 1)})"


def _times(rounds: Sequence[Figures], way: str) -> str:
    p50, p95, cpu = (_middle(rounds, "search", way, what) for what in ("p50", "p95", "cpu"))
    return f"{p50} / {p95} ({cpu})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("environments", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--cores", nargs="*", type=int, default=[0, 1], help="0: all")
    parser.add_argument("--table", action="store_true", help="print the rounds that are kept")
    given = parser.parse_args()
    kept: Path = given.folder / "rounds.jsonl"
    for number in range(0 if given.table else given.rounds):
        for engine in given.only:
            python = find_python(given.environments, PEERS[engine])
            if python is None:
                print(f"{engine}: no environment *-{PEERS[engine]} in {given.environments}")
                continue
            for cores in given.cores:
                load = os.getloadavg()[0]
                found = {**measure(python, engine, given.folder, cores), "load": load}
                with kept.open("a") as file:
                    file.write(json.dumps(found) + "\n")
                print(f"round {number + 1}: {engine}, {cores or 'all'} cores, load {load:.1f}")
    print("\n".join(tables(read_rounds(kept))))


if __name__ == "__main__":
    main()

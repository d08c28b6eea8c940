"""Measures one engine in its own environment; prints one line of JSON. Called by `compare.py`.

    python measure.py ENGINE add|search DATA STORE BEGAN

`add` reads the texts from the file and keeps them; `search` opens what was kept in a process that
has searched nothing yet. BEGAN is the time (seconds since 1970) at which the process was started.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import time
from importlib import import_module
from importlib.metadata import version
from math import log2
from pathlib import Path
from typing import Any

from engines import Corpus, Engine, K

Figures = dict[str, Any]


def engine_for(name: str, store: Path) -> Engine:
    """The engine of this name; Osler's are imported only where they are asked for."""
    module = "osler_engine" if name.startswith("Osler") else "engines"
    made: Engine = getattr(import_module(module), name)(store)
    return made


def processor() -> float:
    """Seconds of this process and of its children, those that have ended among them."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in used) + sum(map(_ticked, _children()))


def _ticked(pid: str) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_corpus(data: Path) -> Corpus:
    """The passages' file in memory, their vectors beside."""
    file = data / "passages.jsonl"
    rows = [json.loads(line) for line in file.open(encoding="utf-8")]
    vectors = import_module("numpy").load(data / "vectors.npy")
    texts = [f"{row['title']}\n{row['content']}".strip() for row in rows]
    return Corpus(file, [row["id"] for row in rows], texts, vectors)


def add(engine: Engine, data: Path) -> Figures:
    """Seconds by the clock and of the processor until words are found, until vectors are."""
    corpus = read_corpus(data)
    found: Figures = {}
    clock, before = time.perf_counter(), processor()
    for what in engine.add(corpus):
        found[what] = [time.perf_counter() - clock, processor() - before]
    peaks = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    found["peak_mb"] = max(peak.ru_maxrss for peak in peaks) / 1e3
    found["packages"] = {name: version(name) for name in engine.packages}
    return found


def search(engine: Engine, data: Path, began: float) -> Figures:
    """Start-up, then each way of searching over all questions."""
    asked = json.loads((data / "questions.json").read_text())
    vectors = import_module("numpy").load(data / "queries.npy")
    engine.open()
    first = engine.ways[0]
    engine.search(first, asked[0]["question"], vectors[0])
    found: Figures = {"start": [time.time() - began, processor()]}
    for way in engine.ways:
        found[way] = _ask_all(engine, way, asked, vectors)
    found["memory_mb"] = sum(map(_proportional, ["self", *_children()])) / 1e3
    return found


def _ask_all(engine: Engine, way: str, asked: list[Any], vectors: Any) -> Figures:
    took, scores, before = [], [], processor()
    for one, vector in zip(asked, vectors, strict=True):
        began = time.perf_counter()
        ids = engine.search(way, one["question"], vector)
        took.append(1000 * (time.perf_counter() - began))
        scores.append(ndcg(ids, set(one["gold"])))
    took.sort()
    return {
        "p50": statistics.median(took),
        "p95": took[int(0.95 * len(took))],
        "cpu": 1000 * (processor() - before) / len(took),
        "ndcg": statistics.fmean(scores),
        "scores": [round(score, 4) for score in scores],
    }


def ndcg(ids: list[str], gold: set[str]) -> float:
    """nDCG@10 with grades of 0 and 1, as in trec_eval."""
    gain = sum(1 / log2(rank + 1) for rank, one in enumerate(ids[:K], 1) if one in gold)
    return gain / sum(1 / log2(rank + 1) for rank in range(1, min(K, len(gold)) + 1))


def _children() -> list[str]:
    tasks = Path("/proc/self/task").iterdir()
    return [pid for task in tasks for pid in (task / "children").read_text().split()]


def _proportional(pid: str) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def main() -> None:
    name, stage, data, store, began = sys.argv[1:]
    engine = engine_for(name, Path(store))
    adds = stage == "add"
    found = add(engine, Path(data)) if adds else search(engine, Path(data), float(began))
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()

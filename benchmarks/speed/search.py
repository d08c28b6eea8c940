"""Search at size: how fast, how exact, how large, on synthetic passages.

    python benchmarks/speed/search.py FOLDER [PASSAGES] [--engine edge|sqlite] [--far]

Builds a knowledge base of PASSAGES (default 1,000,000) in FOLDER through the ordinary doors, or
uses the one that is there, then measures in a fresh process: hybrid search (both rankings 64
deep, 10 passages read) without and with the encoding of the query, recall@10 of the vectors
against exact search, memory of process and workers, disk, and 8 clients at once.

Texts are 60 words of a Zipf distribution over 60,000. The 17 most frequent stand for function
words, so queries, 9 words of a passage, hold none of them: each passage then holds 0.39 of a
query's words in the mean and 0.76 in the 95th percentile, where passages of medical texts hold
0.36 and 0.80 of those of a PubMedQA question. Vectors (384) lie in 5,000 clusters of
Zipf sizes, whose centres span 64 dimensions, with 24 dimensions of noise about each; those of
queries are perturbed. Centres that are spread over all 384 dimensions (--far)
are islands such as no encoder makes: a graph then finds its way between them less often.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Kind, MiniLMEncoder
from osler.kb.search.base import BackendChoice, PassageFilter
from osler.kb.store import access
from osler.retrieve.hybrid import HybridRetriever
from osler.types import Language

DIMENSION, CLUSTERS, LATENT, NOISE = 384, 5_000, 64, 24
WORDS, VOCABULARY, FUNCTION_WORDS = 60, 60_000, 17
QUERIES = 1_000
Floats = npt.NDArray[np.float32]


class Synthetic:
    """Gives each text the vector of the row whose number stands in it; an `Encoder`."""

    identity, dimension = "synthetic-384", DIMENSION
    languages: frozenset[Language] = frozenset({"en"})

    def __init__(self, folder: Path) -> None:
        self._rows = np.load(folder / "vectors.npy", mmap_mode="r")

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Floats:
        return np.array(self._rows[[int(text.rsplit("row", 1)[1]) for text in texts]])


def _centres(rng: np.random.Generator, *, far: bool) -> Floats:
    """Of length √384, as those of independent coordinates are."""
    made = rng.standard_normal((CLUSTERS, DIMENSION if far else LATENT), np.float32)
    if not far:
        made = made @ rng.standard_normal((LATENT, DIMENSION), np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True) * DIMENSION**0.5)


def generate(folder: Path, count: int, *, far: bool) -> None:
    """Vectors, queries and the file of passages."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    vectors = np.lib.format.open_memmap(
        folder / "vectors.npy", "w+", np.float32, (count, DIMENSION)
    )
    centres = _centres(rng, far=far)
    spread = rng.standard_normal((NOISE, DIMENSION), np.float32) / np.sqrt(NOISE)
    share = 1 / np.arange(1, CLUSTERS + 1)
    share /= share.sum()
    for start in range(0, count, 50_000):
        size = min(50_000, count - start)
        noise = rng.standard_normal((size, NOISE), np.float32) @ spread
        made = centres[rng.choice(CLUSTERS, size, p=share)] + 0.9 * noise
        vectors[start : start + size] = made / np.linalg.norm(made, axis=1, keepdims=True)
    chosen = np.sort(rng.choice(count, QUERIES, replace=False))
    asked = vectors[chosen] + 0.02 * rng.standard_normal((QUERIES, DIMENSION), np.float32)
    np.save(folder / "queries.npy", asked / np.linalg.norm(asked, axis=1, keepdims=True))
    _write(folder, count, set(chosen.tolist()), rng)


def _write(folder: Path, count: int, chosen: set[int], rng: np.random.Generator) -> None:
    syllables = [a + b for a in "bcdfglmnprstv" for b in "aeiou"]
    words = np.array(["".join(rng.choice(syllables, 4)) for _ in range(VOCABULARY)])
    share = 1 / np.arange(3, VOCABULARY + 3)
    share /= share.sum()
    queries, common = [], set(words[:FUNCTION_WORDS])
    with (folder / "passages.jsonl").open("w") as file:
        for start in range(0, count, 50_000):
            size = min(50_000, count - start)
            drawn = words[rng.choice(VOCABULARY, (size, WORDS), p=share)]
            for i, text in enumerate(drawn, start):
                row = {
                    "id": f"d{i}",
                    "title": f"{text[0]} {text[1]}",
                    "content": f"{' '.join(text)} row{i}",
                }
                file.write(json.dumps(row) + "\n")
                if i in chosen:
                    telling = [word for word in text if word not in common]
                    queries.append(" ".join(rng.choice(telling, 9, replace=False)))
    (folder / "queries.json").write_text(json.dumps(queries))


def build(folder: Path, count: int, engine: str, *, far: bool) -> None:
    """Through `add` and `build`."""
    if not (folder / "vectors.npy").exists():
        _timed("generate", lambda: generate(folder, count, far=far))
    choice = BackendChoice(engine)  # type: ignore[arg-type]
    if not (folder / "kb" / "kb.sqlite").exists():
        with KnowledgeBase.create(folder / "kb", choice) as kb:
            _timed("add", lambda: kb.add([folder / "passages.jsonl"], source="research"))
        with access.open_for_writing(folder / "kb") as db:
            db.execute(
                "UPDATE document SET year = 1980 + substr(id, 2) % 46, kinds = CASE"
                " substr(id, 2) % 3 WHEN 0 THEN 'Review' WHEN 1 THEN 'Case Reports'"
                " ELSE 'Randomized Controlled Trial' END"
            )
    (folder / "passages.jsonl").unlink(missing_ok=True)
    with KnowledgeBase.open(folder / "kb", choice) as kb:
        stages: dict[str, float] = {}

        def progress(what: str, done: int, total: int | None) -> None:
            stages.setdefault(what, time.perf_counter())

        _timed("build", lambda: kb.build(Synthetic(folder), progress=progress, batch=4096))
        ends = [*list(stages.values())[1:], time.perf_counter()]
        for (what, begun), end in zip(stages.items(), ends, strict=True):
            print(f"  of it {what:9} {end - begun:8.1f} s")


def _timed(what: str, job: Callable[[], object]) -> None:
    began, before = time.perf_counter(), _cpu()
    job()
    print(f"{what:15} {time.perf_counter() - began:8.1f} s wall {_cpu() - before:8.1f} s cpu")
    sys.stdout.flush()


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in used)


class _Given:
    """The query's vector is there: searching alone is measured."""

    identity, dimension, languages = Synthetic.identity, DIMENSION, Synthetic.languages

    def __init__(
        self, texts: list[str], queries: Floats, inner: MiniLMEncoder | None = None
    ) -> None:
        self._vectors: dict[str, Floats] = dict(zip(texts, queries, strict=True))
        self._inner = inner

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Floats:
        if self._inner:
            self._inner.encode(texts, kind="query")
        return self._vectors[texts[0]].reshape(1, -1)


def measure(folder: Path, engine: str) -> None:
    queries = np.load(folder / "queries.npy")
    asked: list[str] = json.loads((folder / "queries.json").read_text())
    given = _Given(asked, queries)
    with KnowledgeBase.open(folder / "kb", BackendChoice(engine)) as kb:  # type: ignore[arg-type]
        plain = HybridRetriever(kb, given)
        began = time.perf_counter()
        asyncio.run(plain.search(asked[0], k=10))
        print(f"first search    {time.perf_counter() - began:8.2f} s")
        for text in asked:
            plain.search_index(text, 10)
        _latencies("hybrid", plain, asked)
        _latencies(
            "hybrid, query encoded",
            HybridRetriever(kb, _Given(asked, queries, MiniLMEncoder())),
            asked[:500],
        )
        for name, within in (
            ("years 2010-2025 (35 %)", PassageFilter(years=(2010, 2025))),
            ("one kind (33 %)", PassageFilter(kinds=("review",))),
            ("one year (2 %)", PassageFilter(years=(2020, 2020))),
        ):
            chosen = HybridRetriever(kb, given, within)
            _latencies(f"hybrid, {name}", chosen, asked[:300])
        _parts(kb, queries, asked)
        _recall(kb, folder, queries)
        print(f"memory          {_memory():8.2f} GB (proportional, this process and its workers)")
        _clients(plain, asked)
    for name in ("kb.sqlite", "edge"):
        print(f"disk {name:10} {_disk(folder / 'kb' / name) / 1e9:8.2f} GB")


def _latencies(name: str, retriever: HybridRetriever, asked: list[str]) -> None:
    took = []
    for text in asked:
        began = time.perf_counter()
        retriever.search_index(text, 10)
        took.append(1000 * (time.perf_counter() - began))
    took.sort()
    p50, p95 = statistics.median(took), took[int(0.95 * len(took))]
    print(f"{name:34} p50 {p50:7.2f} ms  p95 {p95:7.2f} ms  slowest {took[-1]:7.2f} ms")


def _parts(kb: KnowledgeBase, queries: Floats, texts: list[str]) -> None:
    """Where the time goes: the engine, and reading ten passages."""
    numbers: list[list[int]] = []

    def engine(i: int) -> None:
        dense, _ = kb.rank_by_both(texts[i].split(), queries[i], encoder=Synthetic.identity, k=64)
        numbers.append([number for number, _ in dense[:10]])

    def read(i: int) -> None:
        kb.get_passages(numbers[i])

    for name, part in (("both rankings", engine), ("ten passages", read)):
        took = []
        for i in range(300):
            began = time.perf_counter()
            part(i)
            took.append(1000 * (time.perf_counter() - began))
        print(f"  of it {name:26} p50 {statistics.median(took):7.2f} ms")


def _recall(kb: KnowledgeBase, folder: Path, queries: Floats) -> None:
    vectors = np.load(folder / "vectors.npy", mmap_mode="r")
    some, found = queries[:: len(queries) // 300], []
    best: list[list[tuple[float, int]]] = [[] for _ in some]
    for start in range(0, len(vectors), 100_000):
        scores = some @ vectors[start : start + 100_000].T
        for i, row in enumerate(scores):
            top = np.argpartition(-row, min(10, len(row) - 1))[:10]
            best[i] += [(float(row[j]), start + int(j)) for j in top]
    for query, exact in zip(some, best, strict=True):
        hits = kb.by_vector(query, encoder=Synthetic.identity, k=10)
        ids = {int(passage.id.split(":d")[1].split("#")[0]) for passage, _ in hits}
        found.append(len(ids & {row for _, row in sorted(exact)[-10:]}) / 10)
    print(f"recall@10       {statistics.mean(found):8.4f} of {len(some)} queries, against exact")


def _clients(retriever: HybridRetriever, asked: list[str]) -> None:
    """Searches a second by 1 and by 8 threads, after the workers have come up."""
    rates = {}
    for clients in (8, 1, 8):
        with ThreadPoolExecutor(clients) as pool:
            began = time.perf_counter()
            list(pool.map(lambda text: retriever.search_index(text, 10), asked * 2))
        rates[clients] = 2 * len(asked) / (time.perf_counter() - began)
    print(
        f"clients         1: {rates[1]:,.0f}/s  8: {rates[8]:,.0f}/s"
        f"  ({rates[8] / rates[1]:.2f} times, {os.cpu_count()} cores)"
    )


def _memory() -> float:
    return sum(_proportional(pid) for pid in (os.getpid(), *_children())) / 1e6


def _children() -> Iterator[int]:
    for task in Path("/proc/self/task").iterdir():
        yield from map(int, (task / "children").read_text().split())


def _proportional(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _disk(path: Path) -> int:
    if path.is_file():
        return path.stat().st_blocks * 512
    return sum(p.stat().st_blocks * 512 for p in path.rglob("*") if p.is_file())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("passages", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--engine", default="edge")
    parser.add_argument("--far", action="store_true")
    parser.add_argument("--measure", action="store_true")
    given = parser.parse_args()
    if given.measure:
        measure(given.folder, given.engine)
        return
    print(f"{given.passages:,} passages, engine {given.engine}, {os.cpu_count()} cores")
    build(given.folder, given.passages, given.engine, far=given.far)
    again = [sys.executable, __file__, str(given.folder), "--measure", "--engine", given.engine]
    subprocess.run(again, check=True)  # noqa: S603 - this script


if __name__ == "__main__":
    main()

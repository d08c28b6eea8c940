"""How fast a graph of the size of UMLS is built, looked up, linked and walked.

    python benchmarks/speed/graph.py [CONCEPTS] [FOLDER]
    python benchmarks/speed/graph.py --import PATH...

The graph is generated (seed 0): CONCEPTS (1,700,000) concepts with 1.76 names each of Zipf-drawn
words, and 2.06 relations each with Zipf-drawn ends. It is built in one process and asked in
another, so that the memory of each is its own. A FOLDER with a graph is asked as it is. With
`--import` the files named are read instead, and a table says what of each arrived.
"""

from __future__ import annotations

import asyncio
import random
import resource
import statistics
import string
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from osler.graph import chains, communities, files
from osler.graph.formats import read_graph_files
from osler.graph.items import Item, Name, Relation
from osler.graph.link import Dictionary
from osler.graph.lookup import Lookup
from osler.graph.store import Graph
from osler.retrieve.graph import GraphRetriever

WORDS, PREDICATES, HUB, BLOCK = 60_000, 40, 5_000, 50_000


def vocabulary() -> list[str]:
    rng = random.Random(0)
    syllables = [a + b for a in "bcdfghjklmnprstvz" for b in ("a", "e", "i", "o", "u", "ar", "en")]
    made: dict[str, None] = {}
    while len(made) < WORDS:
        made["".join(rng.choices(syllables, k=rng.randint(2, 5)))] = None
    return list(made)


def blocks(total: int) -> Iterator[tuple[int, range]]:
    for number, begin in enumerate(range(0, total, BLOCK)):
        yield number, range(begin, min(begin + BLOCK, total))


def names_of(block: int, numbers: range, words: list[str]) -> list[str]:
    """Texts of some of three million names; many share their first word, as in UMLS."""
    chance = np.random.default_rng([0, block])
    drawn = ((chance.zipf(1.25, size=len(numbers) * 4) - 1) % WORDS).tolist()
    lengths = chance.integers(1, 5, size=len(numbers)).tolist()
    return [
        f"{' '.join(words[w] for w in drawn[4 * i : 4 * i + n])} {words[(number * 7919) % WORDS]}"
        for i, (number, n) in enumerate(zip(numbers, lengths, strict=True))
    ]


def facts(count: int) -> Iterator[Item]:
    words = vocabulary()
    for block, numbers in blocks(int(count * 1.76)):
        for number, text in zip(numbers, names_of(block, numbers, words), strict=True):
            yield Name(f"C{number % count:07d}", text, "GEN", int(number >= count))
    for block, numbers in blocks(int(count * 2.06)):
        chance = np.random.default_rng([1, block])
        ends = (chance.zipf(1.6, size=len(numbers)) - 1) % count
        begins = chance.integers(0, count, size=len(numbers)).tolist()
        kinds = chance.integers(0, PREDICATES, size=len(numbers)).tolist()
        # The most linked concept has HUB relations, as in UMLS, and not a tenth of them all.
        crowded = ends < count // HUB
        ends[crowded] = chance.integers(0, count, size=int(crowded.sum()))
        for one, kind, two in zip(begins, kinds, ends.tolist(), strict=True):
            yield Relation(f"C{one:07d}", f"relation_{kind}", f"C{two:07d}", "GEN")
    for number in range(HUB):
        other = f"C{(number * 331 + 1) % count:07d}"
        yield Relation("C0000000", f"relation_{number % PREDICATES}", other, "GEN")


def timed(call: Callable[[int], object], times: int) -> tuple[float, float]:
    """Median and 95th percentile in milliseconds."""
    took = []
    for number in range(times):
        began = time.perf_counter()
        call(number)
        took.append(1000 * (time.perf_counter() - began))
    took.sort()
    return statistics.median(took), took[int(0.95 * times)]


def show(what: str, took: tuple[float, float], more: str = "") -> None:
    print(f"| {what} | {took[0]:.3f} | {took[1]:.3f} | {more} |", flush=True)


def misspelt(text: str, rng: random.Random) -> str:
    place, letter = rng.randrange(len(text)), rng.choice(string.ascii_lowercase)
    kind = rng.randrange(3)
    return text[:place] + (letter if kind else "") + text[place + (kind < 2) :]


def built(count: int, folder: Path) -> None:
    began = time.perf_counter()
    deque(facts(count), maxlen=0)
    generated = time.perf_counter() - began
    with Graph.create(folder) as graph:
        began = time.perf_counter()
        added = graph.add(facts(count))
        stored = time.perf_counter() - began
        graph.build_arrays()
        whole = time.perf_counter() - began
    print(f"{added.concepts:,} concepts, {added.names:,} names, {added.relations:,} relations")
    print(f"stored in {stored:.1f} s, with the derived file in {whole:.1f} s;", end=" ")
    print(f"making up the facts is {generated:.1f} s of it")
    sizes = {file.name: file.stat().st_size / 1e6 for file in folder.glob("graph.*")}
    print(f"MB: {sizes}; RSS at its highest {rss():.0f} MB", flush=True)


def asked(count: int, folder: Path) -> None:
    rng, words = random.Random(2), vocabulary()
    total = int(count * 1.76)
    each = 42_000 * BLOCK // total + 1
    chosen = {n: rng.sample(part, min(each, len(part))) for n, part in blocks(total)}
    sample: list[tuple[int, str]] = []
    for block, numbers in blocks(total):
        texts = names_of(block, numbers, words)
        sample += [(number, texts[number - numbers[0]]) for number in chosen[block]]
    rng.shuffle(sample)
    queries = [text for _, text in sample]
    wrong = [misspelt(text, rng) for text in queries]
    ids = [f"C{number % count:07d}" for number, _ in sample]
    text = " ".join(f"{query} und so on." for query in queries[:40_000])
    print(f"RSS with nothing but the questions {now():.0f} MB", flush=True)
    with Graph.open(folder) as graph:
        measure(graph, queries, wrong, ids, text)
        measure_communities(graph, ids)
    print(f"RSS at its highest {rss():.0f} MB")


def measure(graph: Graph, queries: list[str], wrong: list[str], ids: list[str], text: str) -> None:
    print("| | p50 ms | p95 ms | |\n|---|---|---|---|")
    show("exact name", timed(lambda n: graph.find_exact(queries[n]), 2_000))
    show("name in capitals", timed(lambda n: graph.find_exact(queries[n].upper()), 2_000))
    lookup = Lookup(graph)
    lookup.find_fuzzy(wrong[0])
    found = []
    spent = timed(lambda n: found.append(lookup.find_fuzzy(wrong[n], k=10)), 300)
    right = sum(any(m.concept == ids[n] for m in found[n]) for n in range(300))
    show("misspelt name", spent, f"recall@10 {right / 300:.3f}")
    show("one hop", timed(lambda n: graph.find_neighbours([ids[n]]), 1_000))
    retriever = GraphRetriever(graph)
    hub = f"{graph.names_of([1])[1][0]} , {queries[0]} relation_7"
    degree = len(graph.find_neighbours(["C0000000"]))
    with asyncio.Runner() as loop:
        spent = timed(lambda n: loop.run(retriever.search(hub, k=10)), 50)
    show("hub, reranked, as a search", spent, f"{degree:,} relations")
    show(
        "paths of ≤ 3", timed(lambda n: chains.find_chains_between(graph, ids[n], ids[n + 1]), 300)
    )
    show("personalised PageRank", timed(lambda n: chains.rank_nearest(graph, ids[n : n + 3]), 100))
    linker = Dictionary(graph)
    linker.find_mentions(text[:1000])
    began = time.perf_counter()
    mentions = linker.find_mentions(text)
    seconds = time.perf_counter() - began
    size = len(text.encode()) / 1e6
    print(f"linking: {size / seconds:.2f} MB/s ({size:.1f} MB, {len(mentions):,} mentions)")
    print(f"RSS now {now():.0f} MB, at its highest {rss():.0f} MB", flush=True)


def measure_communities(graph: Graph, ids: list[str]) -> None:
    """After all else: finding them is a job of its own, and its memory is too."""
    began = time.perf_counter()
    found = communities.build_communities(graph)
    print(f"{len(found):,} communities in {time.perf_counter() - began:.1f} s")
    smallest = [parts[0] for id in ids[:300] if (parts := found.communities_of(id))]
    show("what a community says", timed(lambda n: found.write_extract(smallest[n]), len(smallest)))


def rss() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def now() -> float:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(pages[1]) * resource.getpagesize() / 1e6


def imported(paths: list[Path]) -> None:
    print("| source | concepts | names | definitions | relations | mappings | drops |")
    print("|---|---|---|---|---|---|---|")
    for path in paths:
        with tempfile.TemporaryDirectory() as folder, Graph.create(Path(folder)) as graph:
            new = graph.add(read_graph_files([path]))
        drops = "; ".join(f"{count} {reason}" for reason, count in new.drops)
        counts = (new.concepts, new.names, new.definitions, new.relations, new.mappings)
        print(f"| {path.name} | {' | '.join(f'{n:,}' for n in counts)} | {drops} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--import"]:
        imported([Path(argument) for argument in sys.argv[2:]])
    elif sys.argv[1:2] in (["--build"], ["--ask"]):
        act = built if sys.argv[1] == "--build" else asked
        act(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            concepts = sys.argv[1] if len(sys.argv) > 1 else "1700000"
            place = sys.argv[2] if len(sys.argv) > 2 else temporary
            there = (Path(place) / files.FILE).exists()
            for act_ in ("--ask",) if there else ("--build", "--ask"):
                subprocess.run([sys.executable, __file__, act_, concepts, place], check=True)  # noqa: S603

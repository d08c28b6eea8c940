"""How fast given texts are scored, beside how fast the same engine reads, and how near to forced.

    python benchmarks/speed/scoring.py [--repeats N] [--threads N] [--prefix N]

Texts of 40 tokens, eight in a call, after a prefix of 800, all cut out of the sample's documents;
packaged model. In one run, on one engine:

* *read*: tokens a second of the prefix, read anew;
* *scored*: tokens a second of the eight texts in one call, the prefix being cached;
* *forced*: the same texts, one token a step in the engine's server, the prefix being cached;
* the difference of the log-probabilities, in nats a token: of both ways; of forced decoding from
  itself after the prefix was read in other batches, which is the engine's own noise; of a text
  alone and among the others.

Rates are medians of the repeats, in tokens a second and in tokens a second of the processor, which
is what counts where others use the machine too (one thread: more of them spin while they wait).
Wanted: scored / read at least 0.6, and scored / forced at least 8.3 (0.6 of a fifth of the time).
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from statistics import mean, median, quantiles
from typing import TypeVar

from osler.llm.local.batch_scoring import BatchScorer, TextScores, Tokens
from osler.llm.local.gguf_files import default_gguf
from osler.llm.local.model import ForcedScorer, LlamaCpp

TEXTS, LENGTH = 8, 40
T = TypeVar("T")


@dataclass(frozen=True)
class Case:
    """A prefix that no other case begins with, and texts that go on after it."""

    prefix: list[int]
    texts: list[Tokens]

    @property
    def tokens(self) -> int:
        return sum(map(len, self.texts))


def cut_cases(model: LlamaCpp, length: int, count: int) -> list[Case]:
    book = sorted((files("osler") / "sample" / "book").iterdir(), key=lambda file: file.name)
    # Without its Chinese chapters, whose tokens are parts of characters: forced, each costs more.
    chapters = [file for file in book if not file.name.startswith("zh_")]
    whole = "\n".join(file.read_text("utf-8") for file in chapters)
    ids = model._tokenise_text(whole)
    size = length + TEXTS * LENGTH
    if len(ids) < count * size:
        raise SystemExit(f"the sample has {len(ids)} tokens, {count * size} are wanted")
    cases = []
    for start in range(0, count * size, size):
        rest = ids[start + length : start + size]
        texts = [tuple(rest[i : i + LENGTH]) for i in range(0, TEXTS * LENGTH, LENGTH)]
        cases.append(Case(ids[start : start + length], texts))
    return cases


def force(model: LlamaCpp, case: Case, slot: int) -> TextScores:
    (plain,) = model._tokenise_text("a")
    scorer = ForcedScorer(model._engine, slot, threading.Event(), model._pieces, plain)
    return scorer.score(case.prefix, case.texts)


def differences(one: TextScores, other: TextScores) -> list[float]:
    pairs = zip(one.texts, other.texts, strict=True)
    return [abs(a - b) for ours, theirs in pairs for a, b in zip(ours, theirs, strict=True)]


@dataclass
class Rates:
    """Tokens a second of one way, case by case."""

    name: str
    walls: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def time_call(self, tokens: int, call: Callable[[], T]) -> T:
        began, used = time.perf_counter(), time.process_time()
        result = call()
        self.walls.append(tokens / (time.perf_counter() - began))
        self.processor.append(tokens / (time.process_time() - used))
        return result

    def show(self) -> None:
        for kind, rates in (("", self.walls), (" of the processor", self.processor)):
            told = f"{median(rates):7.1f} ({min(rates):.1f} to {max(rates):.1f})"
            print(f"{self.name:7} {told} tokens a second{kind}")


def show_ratio(one: Rates, other: Rates) -> None:
    wall = median(one.walls) / median(other.walls)
    used = median(one.processor) / median(other.processor)
    print(f"{one.name} / {other.name}: {wall:.2f}, of the processor {used:.2f}")


def show_differences(name: str, apart: list[float]) -> None:
    steps = quantiles(apart, n=20)
    shown = f"mean {mean(apart):.3f}, median {median(apart):.3f}, 95th percentile {steps[18]:.3f}"
    print(f"{name:44} {shown}, most {max(apart):.3f} (n {len(apart)})")


def main(repeats: int, threads: int, length: int) -> None:
    model = LlamaCpp(default_gguf(), name="packaged", context=4096, threads=threads)
    scorer = model._engine.batch_scorer
    assert isinstance(scorer, BatchScorer)
    stop = threading.Event()
    read, scored, forced = Rates("read"), Rates("scored"), Rates("forced")
    ways: list[float] = []
    noise: list[float] = []
    company: list[float] = []

    def weigh(case: Case, texts: Sequence[Tokens]) -> TextScores:
        return scorer.score(case.prefix, texts, stop, threads=threads)

    for case in cut_cases(model, length, repeats):
        one = case.texts[0][:1]
        read.time_call(length, partial(weigh, case, [one]))
        batch = scored.time_call(case.tokens, partial(weigh, case, case.texts))
        alone = [weigh(case, [text]).texts[0] for text in case.texts]
        company += differences(batch, TextScores(tuple(alone), 0))
        force(model, Case(case.prefix, [one]), 1)
        oracle = forced.time_call(case.tokens, partial(force, model, case, 1))
        ways += differences(batch, oracle)
        force(model, Case(case.prefix[: length // 2], [one]), 0)
        noise += differences(oracle, force(model, case, 0))
    for rates in (read, scored, forced):
        rates.show()
    show_ratio(scored, read)
    show_ratio(scored, forced)
    show_differences("batch and forced", ways)
    show_differences("forced and forced, prefix in other batches", noise)
    show_differences("batch and alone", company)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--prefix", type=int, default=800)
    given = parser.parse_args()
    main(given.repeats, given.threads, given.prefix)

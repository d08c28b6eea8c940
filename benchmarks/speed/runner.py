"""How fast the evaluation's runner is by itself: a scripted model that takes no time.

    python benchmarks/speed/runner.py [SAMPLES]

Everything else is real: the strategy, the log with its traces, the claims, the progress.
Memory is read between thousands of samples: it must not grow with them.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from osler.answer.written import WrittenComposer
from osler.llm.core.base import Completion, Message, Sampling
from osler.methods.single_pass import ChainOfThought
from osler.types import Question, Usage
from osler_lab.evaluate.log import read_records
from osler_lab.evaluate.record import Gold, Sample
from osler_lab.evaluate.runner import EvaluationRunner, ReadyStrategy, RunnerCell


class Instant:
    """Says the same at once."""

    name = "instant"

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        text = "The findings point to the second option. <answer>B</answer>"
        return Completion(text, (), "stop", Usage(calls=1, prompt_tokens=80, completion_tokens=14))


def samples(n: int) -> list[Sample]:
    options = tuple(f"the option that is named number {i}" for i in range(4))
    return [
        Sample("made", "choice", Question(f"q{i}", f"Case {i}. Which one?", options), Gold(("B",)))
        for i in range(n)
    ]


def resident() -> float:
    """MiB of this process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def measure(n: int, folder: Path) -> None:
    began, seen = time.perf_counter(), dict[int, float]()

    def progress(stage: str, done: int, total: int | None) -> None:
        if done % max(1, n // 10) == 0:
            seen[done] = resident()

    async def prepare(label: str) -> ReadyStrategy:
        return ReadyStrategy(
            ChainOfThought(Instant(), WrittenComposer()), {"reader": "instant"}, kind="cot"
        )

    runner = EvaluationRunner(folder, prepare, jobs=4, progress=progress)
    await runner.run([RunnerCell("cot", "made", samples(n))])
    seconds = time.perf_counter() - began
    print(f"{n:,} samples in {seconds:.1f} s: {n / seconds:,.0f} a second")
    print("MiB after " + ", ".join(f"{done:,}: {mib:.0f}" for done, mib in seen.items()))
    began = time.perf_counter()
    await EvaluationRunner(folder, prepare).run([RunnerCell("cot", "made", samples(n))])
    print(f"nothing left to do, known after {time.perf_counter() - began:.1f} s")
    began = time.perf_counter()
    assert sum(record.status == "done" for record in read_records(folder)) == n
    print(f"read again in {time.perf_counter() - began:.1f} s")


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(n, Path(folder)))


if __name__ == "__main__":
    main()

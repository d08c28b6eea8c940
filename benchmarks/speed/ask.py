"""How long the cheap path takes on the sample: a fresh process, a question after loading, and of it
what the experts say.

    python benchmarks/speed/ask.py [--home FOLDER]

Wanted on two idle cores: a fresh process at most 3 s, a question after loading at most 1 s, of
which the experts take at most 60 ms. The home must hold the sample (`osler kb build --sample`). A
question after loading is also what one of `osler eval run` with `rag` costs: at most .1 s is wanted
there. Seconds of the wall clock and of processor time; the machine's load is printed, since under
load the former say nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from osler.build.composers import evidence_gate
from osler.build.resource_cache import ResourceCache
from osler.runs.answering import ask
from osler.settings import Settings
from osler_lab.studies.calibrate import packaged_questions

FRESH = 5


def fresh_process(home: Path) -> tuple[float, float]:
    """Wall and processor seconds of one `osler ask`."""
    command = [sys.executable, "-m", "osler", "--quiet", "ask", "How is anaphylaxis treated?"]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(  # noqa: S603  our own words
        command, env={**os.environ, "OSLER__HOME": str(home)}, stdout=subprocess.DEVNULL, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, spent


async def loaded_questions(home: Path) -> list[tuple[float, float]]:
    """Wall and processor seconds of each English calibration question, the first left out."""
    settings = Settings.model_validate(
        {"home": home, "strategy": {"kind": "rag"}, "runs": {"keep": False}}
    )
    cache, times = ResourceCache(settings), []
    try:
        parts = await cache.parts_for(settings)
        for question in packaged_questions():
            if question.language == "en":
                began, spent = time.perf_counter(), time.process_time()
                await ask(settings, question, parts=parts)
                times.append((time.perf_counter() - began, time.process_time() - spent))
    finally:
        cache.close()
    return times[1:]


async def judge_calls(home: Path) -> list[tuple[float, float]]:
    """Wall and processor seconds of what the judge and the checks do for each English calibration
    question: all that the gate does beyond the cosine."""
    settings = Settings.model_validate({"home": home, "strategy": {"kind": "rag"}})
    cache, times = ResourceCache(settings), []
    try:
        parts = await cache.parts_for(settings)
        gate, search = evidence_gate(settings, parts), parts.retriever("rag", parts.sources)
        if gate.judge is None:
            raise SystemExit("the judge is not in use")
        plain = replace(gate, judge=None, checks=())
        for question in packaged_questions():
            if question.language != "en":
                continue
            hits = await search.search(question.text, k=10)
            await plain.weigh_evidence(question, hits)
            began, spent = time.perf_counter(), time.process_time()
            await gate.weigh_evidence(question, hits)
            times.append((time.perf_counter() - began, time.process_time() - spent))
    finally:
        cache.close()
    return times[1:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    given = parser.parse_args()
    fresh = [fresh_process(given.home) for _ in range(FRESH)]
    loaded = asyncio.run(loaded_questions(given.home))
    judge = asyncio.run(judge_calls(given.home))
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, times in (
        ("fresh process", fresh),
        ("after loading", loaded),
        ("judge and checks", judge),
    ):
        wall, spent = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"{name:<16} n {len(times)}: median {wall:.2f} s, of processor {spent:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())

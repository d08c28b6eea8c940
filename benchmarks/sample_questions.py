"""The 40 sample questions: what retrieval finds, what each solver answers, how fast a search is.

    python benchmarks/sample_questions.py [--strategies direct,cot,rag,tc-rag] [--limit N]

Prints tables with n, seed and 95 % intervals (Wilson). Choice and yes/no questions count as
right when the letter is; an open question counts as right when a gold passage is among the
cited ones. The texts and questions are samples of ours: the figures prove that the parts work
together, not how good a model is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from importlib.resources import files
from math import sqrt
from pathlib import Path

import osler
from osler.build.knowledge import (
    build_sample,
    make_retriever,
    open_knowledge_base,
    searched_sources,
)
from osler.build.models import load_encoder, load_model
from osler.settings import Settings
from osler.types import Question, Solution

SEED = 0


@dataclass(frozen=True)
class Sample:
    question: Question
    kind: str
    answer: str
    gold: frozenset[str]


def samples(name: str) -> list[Sample]:
    text = files("osler.sample").joinpath(name).read_text(encoding="utf-8")
    return [_sample(json.loads(line)) for line in text.splitlines()]


def _sample(row: dict[str, object]) -> Sample:
    options, gold = row["options"], row["gold"]
    assert isinstance(options, dict)
    assert isinstance(gold, list)
    return Sample(
        Question(
            str(row["id"]),
            str(row["question"]),
            tuple(options.values()),
            "zh" if row["language"] == "zh" else "en",
        ),
        str(row["kind"]),
        str(row["answer"]),
        frozenset(entry["passage"] for entry in gold),
    )


def wilson(right: int, n: int) -> tuple[float, float]:
    """95 % interval of a proportion."""
    z, p = 1.96, right / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return middle - half, middle + half


async def retrieval(settings: Settings, every: list[Sample]) -> None:
    print("\nretrieval, question as asked, sources: all but emr")
    print("language   n   recall@5   some gold@5   MRR@10   median ms   p95 ms")
    kb, encoder = open_knowledge_base(settings), load_encoder(settings)
    retriever = make_retriever(settings, kb, encoder, searched_sources(settings, kb))
    for language in ("en", "zh"):
        chosen = [s for s in every if s.question.language == language]
        recalls, hits, ranks, times = [], [], [], []
        for sample in chosen:
            await retriever.search(sample.question.text, k=10)
            began = time.perf_counter()
            found = [h.passage.id for h in await retriever.search(sample.question.text, k=10)]
            times.append(1000 * (time.perf_counter() - began))
            recalls.append(len(sample.gold & set(found[:5])) / min(5, len(sample.gold)))
            hits.append(bool(sample.gold & set(found[:5])))
            ranks.append(next((1 / r for r, i in enumerate(found, 1) if i in sample.gold), 0.0))
        times.sort()
        print(
            f"{language:8} {len(chosen):3} {statistics.mean(recalls):10.3f}"
            f" {statistics.mean(hits):13.3f} {statistics.mean(ranks):8.3f}"
            f" {statistics.median(times):11.1f} {times[int(0.95 * (len(times) - 1))]:8.1f}"
        )


def right(sample: Sample, solution: Solution) -> bool:
    if sample.question.options:
        return solution.answer.option == sample.answer
    return any(evidence.passage.id in sample.gold for evidence in solution.answer.evidence)


async def solvers(settings: Settings, every: list[Sample], names: list[str]) -> None:
    model = (await load_model(settings.model)).model
    print(f"\nsolvers, model {model.name}, seed {SEED}")
    print("strategy   kind     n   right   95 % interval   converged   calls   seconds")
    for name in names:
        chosen = settings.model_copy(update={"strategy": STRATEGIES[name]})
        outcomes = []
        for sample in every:
            began = time.perf_counter()
            finished = await osler.ask(chosen, sample.question)
            assert finished.solution is not None
            outcomes.append((sample, finished.solution, time.perf_counter() - began))
        for kind in ("choice", "yesno", "open"):
            rows = [o for o in outcomes if o[0].kind == kind]
            if not rows:
                continue
            good = sum(right(sample, solution) for sample, solution, _ in rows)
            low, high = wilson(good, len(rows))
            converged = sum(solution.halt == "converged" for _, solution, _ in rows)
            calls = statistics.mean(solution.usage.calls for _, solution, _ in rows)
            seconds = statistics.mean(took for _, _, took in rows)
            print(
                f"{name:10} {kind:7} {len(rows):2} {good:4}/{len(rows):<2}"
                f"   {low:.2f} to {high:.2f}    {converged:3}/{len(rows):<2}"
                f"   {calls:7.1f} {seconds:9.1f}"
            )


STRATEGIES = {
    kind: Settings.model_validate({"strategy": {"kind": kind}}).strategy
    for kind in ("direct", "cot", "rag", "tc-rag")
}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strategies", default="direct,cot,rag,tc-rag")
    parser.add_argument("--limit", type=int, default=None)
    given = parser.parse_args()
    every = (samples("questions_en.jsonl") + samples("questions_zh.jsonl"))[: given.limit]
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate({"home": Path(folder), "sampling": {"seed": SEED}})
        build_sample(settings)
        await retrieval(settings, every)
        if given.strategies:
            await solvers(settings, every, given.strategies.split(","))


if __name__ == "__main__":
    asyncio.run(main())

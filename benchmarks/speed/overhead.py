"""What Osler itself takes around a model call, with a model that takes no time.

    python benchmarks/speed/overhead.py [--runs N]

*Own time per call* = from the end of one model call to the start of the next, and from the last
call to the run's end: parsing, the stack, the events, the next prompt, the next grammar. The
model is a script and the retriever a table, so nothing else is in it. Rows: TC-RAG alone; with
the tape and each event written as a line, as `osler ask` does it; and 200 runs at once, where
the figure is the wall-clock time of all over all calls. Wanted: a median of at most 1 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from osler.answer.written import WrittenComposer
from osler.llm.core.base import Completion, LanguageModel, Likelihood, Message, Sampling, Scored
from osler.llm.recording import WrappedRetriever, wrap_model
from osler.llm.recording.tape import Tape
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.monitor import Cppl
from osler.methods.tcrag.moves import AnyMove
from osler.methods.tcrag.tools import DOC_RAG, KG_RAG, SearchTool
from osler.trace import Event, Run, to_line
from osler.types import Passage, Question, Retriever
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

REPLIES = [
    "Tool_Use: DOC_RAG\nTool_Input: warfarin and amiodarone",
    "Thought: Amiodarone slows the breakdown of warfarin.",
    "Tool_Use: KG_RAG\nTool_Input: warfarin",
    "Backtrack: that says nothing new",
    "Tool_Use: DOC_RAG\nTool_Input: INR after amiodarone",
    "Summary: The INR rises over weeks. [1]",
    "Thought: So the dose of warfarin is lowered.",
    "Conclusion: The INR rises; lower the dose of warfarin. [1]",
]
QUESTION = Question("q", "What happens to the INR when amiodarone is added to warfarin?")
TEXT = "Amiodarone slows the breakdown of warfarin. The INR rises over weeks. " * 12
PASSAGES = [Passage(f"book:interactions#{n}", TEXT, "book", "Interactions") for n in range(5)]


@dataclass
class Timed:
    """Notes when each call of a model begins and ends."""

    model: ScriptedModel
    spans: list[tuple[float, float]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.model.name

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        began = time.perf_counter()
        reply = await self.model.complete(messages, sampling)
        self.spans.append((began, time.perf_counter()))
        return reply

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        began = time.perf_counter()
        scored = await self.model.score(context, text)
        self.spans.append((began, time.perf_counter()))
        return scored


def machine(model: LanguageModel, retriever: Retriever) -> TuringMachine:
    assert isinstance(model, Likelihood)
    tools = tuple(SearchTool(name, retriever, ("book",)) for name in (DOC_RAG, KG_RAG))
    moves = AnyMove(frozenset(tool.name for tool in tools))
    return TuringMachine(
        model, tools, Cppl(model), WrittenComposer(), moves, sigma=10, max_loop=8, constrained=True
    )


async def one(*, kept: bool) -> tuple[list[float], int]:
    """Own milliseconds around each call of one run, and how many calls there were."""
    timed, retriever = Timed(ScriptedModel(list(REPLIES))), ScriptedRetriever({"": PASSAGES})
    lines: list[str] = []

    def sink(event: Event) -> None:
        lines.append(to_line(event))

    tape = Tape()
    solver = machine(timed, retriever)
    if kept:
        solver = machine(wrap_model(timed, tape), WrappedRetriever("tc", retriever, tape))
    began = time.perf_counter()
    await solver.solve(QUESTION, Run(sink=sink if kept else None))
    marks = [began, *(mark for span in timed.spans for mark in span), time.perf_counter()]
    own = [1000 * (b - a) for a, b in zip(marks[::2], marks[1::2], strict=True)]
    return own, len(timed.spans)


async def main(runs: int) -> None:
    print("                     runs  calls   median     p95    max   ms of Osler's own a call")
    for name, kept in (("one by one", False), ("kept and shown", True)):
        await one(kept=kept)
        own: list[float] = []
        calls, began = 0, time.process_time()
        for _ in range(runs):
            times, made = await one(kept=kept)
            own += times
            calls += made
        cpu = 1000 * (time.process_time() - began) / (runs * len(REPLIES))
        own.sort()
        print(
            f"{name:20} {runs:>4} {calls:>6} {statistics.median(own):>8.3f}"
            f" {own[int(0.95 * len(own))]:>7.3f} {own[-1]:>6.1f}"
        )
        steps = sum(own) / (runs * len(REPLIES))
        print(f"{'':20} a TC-RAG step {steps:.3f} ms; of the processor, script included, {cpu:.3f}")
    began = time.perf_counter()
    made = sum(count for _, count in await asyncio.gather(*(one(kept=True) for _ in range(200))))
    wall = time.perf_counter() - began
    print(f"{'at once':20} {200:>4} {made:>6} {1000 * wall / made:>8.3f} mean; {wall:.2f} s in all")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    asyncio.run(main(parser.parse_args().runs))

"""How near a plan with independent steps comes to its critical path.

Three chains of two Retrievals and a Deduce over them, every model call 100 ms. The
critical path is decompose, two Retrievals one after the other, Deduce, answer: each
Retrieval is a focus and a reading. In sequence the same calls would add up.

    python benchmarks/speed/plan.py
"""

from __future__ import annotations

import asyncio
import time

from osler.answer.written import WrittenComposer
from osler.llm.core.ask import Speaker
from osler.methods.kag.boundary import NoBoundary
from osler.methods.kag.depth import DepthSolver
from osler.methods.kag.executors import Calculator, Deducer
from osler.methods.kag.focus import Focuser
from osler.methods.kag.output import AnswerFinisher
from osler.methods.kag.planner import Decomposer
from osler.methods.kag.solver import Thinker
from osler.trace import Run
from osler.types import Passage, Question
from osler_lab.testing.scripted import KeyedModel, ScriptedRetriever

CALL_S = 0.1
CRITICAL = 1 + 2 * 2 + 1 + 1
"""Calls in a row: decompose; focus and read, twice; deduce; answer."""


def chains(count: int) -> str:
    lines = []
    for chain in range(count):
        a, b = 2 * chain + 1, 2 * chain + 2
        lines += [
            f"Step{a}: Who made film {chain}?",
            f"Action{a}: Retrieval(s=s{a}:film['Film {chain}'], p=p{a}:director, o=o{a}:person)",
            f"Step{b}: When did #{a} die?",
            f"Action{b}: Retrieval(s=o{a}, p=p{b}:death, o=o{b}:date)",
        ]
    last = 2 * count + 1
    content = ", ".join(f"'o{2 * chain + 2}'" for chain in range(count))
    lines += [
        f"Step{last}: Which was first?",
        f"Action{last}: Deduce(op=choice, content=[{content}], target='the first')->o{last}",
    ]
    return f"<answer>{chr(10).join(lines)}</answer>"


async def measure(count: int) -> tuple[float, int]:
    """Seconds and calls of one run with `count` independent chains."""
    box = r"<answer>\boxed{1988}</answer>"
    model = KeyedModel(
        {
            "decompose the user question": [chains(count)],
            "Answer the last question": [f"It was 1988. {box}"],
            "analyze the relationship": ["<answer>Yes</answer><reason>it says so</reason>"],
            "": [box],
        },
        delay_s=CALL_S,
    )
    speaker = Speaker(model, "reader")
    found = ScriptedRetriever({"": [Passage("wiki:a#0", "It was 1988.", "wiki", "Film")]})
    solver = Thinker(
        Decomposer(speaker),
        DepthSolver(speaker, found, NoBoundary(), Focuser(speaker)),
        Calculator(speaker),
        Deducer(speaker),
        AnswerFinisher(speaker),
        WrittenComposer(),
    )
    begun = time.perf_counter()
    await solver.solve(Question("q", "Which film was first?"), Run())
    return time.perf_counter() - begun, len(model.asked)


async def main() -> None:
    print(f"every call {CALL_S:g} s; critical path {CRITICAL} calls")
    print("chains  calls  seconds  of critical path  of a sequence")
    for count in (1, 3, 6):
        seconds, calls = await measure(count)
        path, sequence = seconds / (CRITICAL * CALL_S), seconds / (calls * CALL_S)
        print(f"{count:6}  {calls:5}  {seconds:7.2f}  {path:16.2f}  {sequence:13.2f}")


if __name__ == "__main__":
    asyncio.run(main())

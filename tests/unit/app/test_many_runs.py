"""Runs at once in one process: each keeps its own events, whole and in order."""

import asyncio
import time
from collections.abc import Sequence

from osler.answer.written import Written
from osler.llm.core.base import Completion, Message, Sampling
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.monitor import Cppl
from osler.methods.tcrag.moves import AnyMove
from osler.methods.tcrag.tools import DOC_RAG, Search
from osler.testing.scripted import ScriptedModel, ScriptedRetriever
from osler.trace import Event, Run, to_line
from osler.types import Halt, Hit, Passage, Question

RUNS = 200


class Yielding(ScriptedModel):
    """Lets every other run go first before each reply."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        await asyncio.sleep(0)
        return await super().complete(messages, sampling)


class Slow(ScriptedRetriever):
    async def search(self, query: str, *, k: int) -> list[Hit]:
        await asyncio.sleep(0.001)
        return await super().search(query, k=k)


def question(number: int) -> Question:
    return Question(f"q{number}", f"What is case {number}?")


def script(number: int) -> list[str]:
    return [
        f"Tool_Use: DOC_RAG\nTool_Input: case {number}",
        f"Thought: case {number} is clear",
        f"Backtrack: not case {number}",
        f"Thought: it is case {number} after all",
        f"Conclusion: It is case {number}. [1]",
    ]


async def solved(number: int) -> tuple[Run, list[Event]]:
    passage = Passage(f"book:{number}#0", f"It is case {number}.", "book", "Cases")
    model = Yielding(script(number))
    tools = (Search(DOC_RAG, Slow({"": [passage]}), ("book",)),)
    moves = AnyMove(frozenset({DOC_RAG}))
    seen: list[Event] = []
    run = Run(id=f"r{number}", seed=number, sink=seen.append)
    machine = TuringMachine(model, tools, Cppl(model), Written(), moves, sigma=10)
    solution = await machine.solve(question(number), run)
    assert solution.halt is Halt.CONVERGED
    model.finish()
    return run, seen


async def test_two_hundred_runs_at_once_lose_no_event_and_mix_none_up() -> None:
    alone = [to_line(event) for event in (await solved(0))[1]]
    began = time.monotonic()
    every = await asyncio.gather(*(solved(number) for number in range(RUNS)))
    assert time.monotonic() - began < 10
    for number, (run, seen) in enumerate(every):
        assert seen == run.events
        lines = [to_line(event) for event in seen]
        assert [line.replace(f"case {number}", "case 0") for line in lines] == [
            line.replace("book:0#0", f"book:{number}#0") for line in alone
        ]

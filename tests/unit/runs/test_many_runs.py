"""Runs at once in one process: each keeps its own events, whole and in order."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from osler.answer.written import WrittenComposer
from osler.llm.core.base import Completion, Message, Sampling
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.moves import AnyMove
from osler.methods.tcrag.stack import Cppl
from osler.methods.tcrag.tools import DOC_RAG, SearchTool
from osler.trace import Event, Run, to_line
from osler.types import Halt, Hit, Passage, Question
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

RUNS = 200


class Abreast(ScriptedModel):
    """No run has a reply before every run has asked for it."""

    abreast: asyncio.Barrier

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        await self.abreast.wait()
        return await super().complete(messages, sampling)


@dataclass
class FoundAbreast(ScriptedRetriever):
    abreast: asyncio.Barrier = field(default_factory=lambda: asyncio.Barrier(1))

    async def search(self, query: str, *, k: int) -> list[Hit]:
        await self.abreast.wait()
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


async def solved(number: int, abreast: asyncio.Barrier) -> tuple[Run, list[Event]]:
    passage = Passage(f"book:{number}#0", f"It is case {number}.", "book", "Cases")
    model = Abreast(script(number))
    model.abreast = abreast
    tools = (SearchTool(DOC_RAG, FoundAbreast({"": [passage]}, abreast=abreast), ("book",)),)
    moves = AnyMove(frozenset({DOC_RAG}))
    seen: list[Event] = []
    run = Run(id=f"r{number}", seed=number, sink=seen.append)
    machine = TuringMachine(model, tools, Cppl(model), WrittenComposer(), moves, sigma=10)
    solution = await machine.solve(question(number), run)
    assert solution.halt is Halt.CONVERGED
    model.finish()
    return run, seen


async def test_two_hundred_runs_at_once_lose_no_event_and_mix_none_up() -> None:
    alone = [to_line(event) for event in (await solved(0, asyncio.Barrier(1)))[1]]
    abreast = asyncio.Barrier(RUNS)
    async with asyncio.timeout(30):
        every = await asyncio.gather(*(solved(number, abreast) for number in range(RUNS)))
    for number, (run, seen) in enumerate(every):
        assert seen == run.events
        lines = [to_line(event) for event in seen]
        assert [line.replace(f"case {number}", "case 0") for line in lines] == [
            line.replace("book:0#0", f"book:{number}#0") for line in alone
        ]

"""A bound stops a run in its middle, at the same place each time, and the answer says which."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from osler.answer.extractive import ExtractiveComposer
from osler.answer.gate import EvidenceGate
from osler.answer.written import WrittenComposer
from osler.llm.core.ask import complete
from osler.llm.core.base import Completion, Message, Sampling, Scored
from osler.llm.recording import TapePlayer, replay_model, wrap_model
from osler.llm.recording.tape import ModelAbilities, Tape
from osler.methods.episode import MethodDeps
from osler.methods.single_pass import ChainOfThought, Direct, RetrieveAndRead
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.moves import AnyMove
from osler.methods.tcrag.stack import Cppl
from osler.methods.tcrag.tools import DOC_RAG, SearchTool
from osler.retrieve.relevance import OverlapRelevance
from osler.trace import Asked, Budget, BudgetExceeded, Noted, Run, Searched, Solver, to_line
from osler.types import Grounding, Halt, Passage, Question, Usage
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

QUESTION = Question("q", "What does iron treat?", ("anaemia", "asthma"))
PASSAGE = Passage(
    "book:a#0",
    "Oral iron treats iron deficiency anaemia within weeks. Tea lowers how much iron is taken up.",
    "book",
    "Iron",
)
THINKING = ["Thought: on"] * 9
SEARCHING = ["Tool_Use: DOC_RAG\nTool_Input: iron"] * 9


def found() -> ScriptedRetriever:
    return ScriptedRetriever({"": [PASSAGE]})


def machine(script: ScriptedModel, *, quotes: bool = False) -> TuringMachine:
    tools = (SearchTool(DOC_RAG, found(), ("book",)),)
    gate = EvidenceGate(OverlapRelevance(), answers=0.0)
    composer = ExtractiveComposer(gate, script, statements=1) if quotes else WrittenComposer()
    moves = AnyMove(frozenset({DOC_RAG}))
    return TuringMachine(script, tools, Cppl(script), composer, moves, sigma=1.5)


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        (Budget(calls=1), "calls 1 of 1"),
        (Budget(calls=4), "calls 4 of 4"),
        (Budget(tokens=10), "tokens 11 of 10"),
    ],
)
async def test_a_bound_ends_the_run_where_it_is_reached_not_a_step_later(
    budget: Budget, why: str
) -> None:
    run = Run(budget=budget)
    solution = await machine(ScriptedModel(list(THINKING))).solve(QUESTION, run)
    assert solution.halt is Halt.BUDGET
    assert solution.why == f"not converged: spent: {why}"
    asked = [event for event in run.events if isinstance(event, Asked)]
    assert len(asked) == run.usage.calls <= (budget.calls or 99)


async def test_a_spent_search_leaves_the_model_calls_that_are_left() -> None:
    """Searches were once counted at the top of the loop: one search ended the run."""
    script = ScriptedModel([SEARCHING[0], "Thought: on", *SEARCHING])
    run = Run(budget=Budget(searches=1))
    solution = await machine(script).solve(QUESTION, run)
    assert solution.why == "not converged: spent: searches 1 of 1"
    assert sum(isinstance(event, Searched) for event in run.events) == 1
    assert len(script.seen) == 3


async def test_the_same_budget_stops_the_same_run_at_the_same_event() -> None:
    lines = []
    for _ in range(2):
        run = Run(seed=3, budget=Budget(calls=5))
        await machine(ScriptedModel([SEARCHING[0], *THINKING])).solve(QUESTION, run)
        lines.append([to_line(event) for event in run.events])
    assert lines[0] == lines[1]


async def test_an_answer_that_could_not_be_weighed_says_so() -> None:
    script = ScriptedModel([SEARCHING[0], *THINKING])
    run = Run(budget=Budget(calls=2))
    solution = await machine(script, quotes=True).solve(QUESTION, run)
    assert solution.halt is Halt.BUDGET
    assert solution.answer.grounding is Grounding.GROUNDED
    assert solution.answer.option is None
    assert "budget was spent" in solution.answer.note
    assert run.usage.calls == 2


def baseline(kind: str, model: ScriptedModel) -> Solver:
    match kind:
        case "direct":
            return Direct(model, WrittenComposer())
        case "cot":
            return ChainOfThought(model, WrittenComposer())
        case _:
            return RetrieveAndRead(MethodDeps(model, found(), WrittenComposer(), ("book",), k=10))


@pytest.mark.parametrize("kind", ["direct", "cot", "rag"])
async def test_a_baseline_without_room_for_its_call_ends_with_the_budget(kind: str) -> None:
    run = Run(budget=Budget(calls=1))
    run.spend(Usage(calls=1))
    solution = await baseline(kind, ScriptedModel([])).solve(QUESTION, run)
    assert (solution.halt, solution.why) == (Halt.BUDGET, "spent: calls 1 of 1")
    assert solution.answer.grounding is Grounding.ABSTAINED


@dataclass
class Hanging:
    """Answers once, then never."""

    left: int = 1
    name: str = "hanging"
    hangs: asyncio.Event = field(default_factory=asyncio.Event)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        if not self.left:
            self.hangs.set()
            await asyncio.Event().wait()
        self.left -= 1
        return Completion("Thought: on", usage=Usage(calls=1, seconds=0.01))

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        return await ScriptedModel([]).score(context, text)


def hanging_run(model: object, budget: Budget) -> tuple[TuringMachine, Run]:
    solver = machine(model)  # type: ignore[arg-type]
    return solver, Run(budget=budget)


async def test_a_model_call_that_hangs_is_stopped_when_the_run_s_seconds_end() -> None:
    solver, run = hanging_run(Hanging(), Budget(seconds=0.1))
    solution = await asyncio.wait_for(solver.solve(QUESTION, run), timeout=10)
    assert solution.halt is Halt.BUDGET
    assert solution.why == "not converged: spent: seconds 0.1 of 0.1"
    assert Noted("a model call was stopped: seconds 0.1 of 0.1") in run.events


async def test_a_run_that_was_cut_short_is_replayed_byte_for_byte() -> None:
    tape = Tape({"hanging": ModelAbilities()})
    solver, run = hanging_run(wrap_model(Hanging(), tape), Budget(seconds=0.1))
    await solver.solve(QUESTION, run)
    solver, again = hanging_run(replay_model(TapePlayer(tape), "hanging"), Budget(seconds=0.1))
    await asyncio.wait_for(solver.solve(QUESTION, again), timeout=10)
    assert [to_line(event) for event in again.events] == [to_line(event) for event in run.events]


async def test_a_model_s_own_time_limit_is_not_the_run_s() -> None:
    class Impatient(ScriptedModel):
        async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
            raise TimeoutError("its own")

    run = Run(budget=Budget(seconds=60))
    with pytest.raises(TimeoutError, match="its own"):
        await complete(Impatient([]), [], Sampling(), run, role="reader", prompt="p")
    assert run.spent == ""


async def test_a_cancelled_run_is_cancelled_not_spent() -> None:
    run = Run(budget=Budget(seconds=60))
    model = Hanging()
    task = asyncio.create_task(machine(model).solve(QUESTION, run))  # type: ignore[arg-type]
    await model.hangs.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert run.spent == ""


def test_a_refusal_says_which_bound_and_is_remembered() -> None:
    run = Run(budget=Budget(seconds=0.3))
    for _ in range(3):
        run.require_budget("call")
        run.spend(Usage(seconds=0.1))
    with pytest.raises(BudgetExceeded, match=r"seconds 0\.3 of 0\.3"):
        run.require_budget("call")
    run.require_budget("search")
    assert run.spent == "seconds 0.3 of 0.3"

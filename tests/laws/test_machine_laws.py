"""Laws of Algorithm 1: the machine against a plain reading of the box, on any replies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.errors import MalformedOutput
from osler.llm.core.base import Completion, Message, Sampling, Scored
from osler.methods.tcrag.actions import (
    Backtrack,
    Conclusion,
    Summary,
    Thought,
    ToolUse,
    parse_action,
    render_action,
)
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.moves import AnyMove
from osler.methods.tcrag.stack import Cppl, MemoryStack
from osler.methods.tcrag.tools import DOC_RAG, SearchTool
from osler.trace import Asked, Noted, Popped, Pushed, Run, StateValued
from osler.types import Answer, Halt, Hit, Passage, Question, Solution, Statement, Usage
from osler_lab.testing.scripted import ScriptedRetriever, tokens_of

SIGMA = 10.0
QUESTION = Question("q", "Why does the ankle swell?")
FOUND = Passage("book:ankle#0", "A sprained ankle swells.", "book", "Ankle")
NAMES = frozenset({DOC_RAG})


@dataclass
class Babbler:
    """Says its replies in turn, and begins again; how sure of a text goes by its length."""

    replies: Sequence[str]
    name: str = "babbler"
    seen: list[tuple[Message, ...]] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        self.seen.append(tuple(messages))
        return Completion(self.replies[(len(self.seen) - 1) % len(self.replies)])

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        assert isinstance(context, str), "Eq. 4 conditions on a text, the bottom of the stack"
        return Scored(tokens_of(text, 1 / value_of(context, text)), Usage(calls=1))


BOTTOM = f"User_Query: {QUESTION.text}\n"
"""M_bottom of Eq. 4: what the state value is conditioned on, whatever else is in memory."""


def value_of(context: str, text: str) -> int:
    """Its conditional perplexity: two of four values lie below sigma. Another after any other
    context of another length."""
    return (2, 9, 11, 50)[(len(context) + len(text)) % 4]


@dataclass(frozen=True)
class Says:
    """What is concluded is the answer."""

    uses_draft: bool = True
    writes_answer: bool = False

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: object = None,
    ) -> Answer:
        return Answer((Statement(draft),)) if draft else Answer()


@dataclass
class Box:
    """Algorithm 1 read word by word: a list, and s beside it.

    Of line 24 it keeps the value that s had before each Thought; of line 26 the box says that it
    pops, and nothing of s.
    """

    limit: int
    stack: list[str] = field(default_factory=lambda: ["User_Query"])
    s: float = float("inf")
    before: dict[int, float] = field(default_factory=dict)
    """The previous state of the Thought at each height."""
    told: list[tuple[str, str, int, float]] = field(default_factory=list)
    """"+" or "-", the kind, the height after it, and s."""
    halted: bool = False
    lost: int = 0

    def push(self, kind: str) -> None:
        self.stack.append(kind)
        self.told.append(("+", kind, len(self.stack), self.s))

    def pop(self) -> str:
        return self.stack.pop() if len(self.stack) > 1 else ""

    def run(self, replies: Sequence[str]) -> None:
        taken = 0
        for _ in range(self.limit):  # 4, 29
            action = None
            for _ in range(3):  # a reply that cannot be read is asked for twice more
                reply = replies[taken % len(replies)]
                taken += 1
                try:
                    action = parse_action(reply, tools=NAMES).action  # 5
                    break
                except MalformedOutput:
                    continue
            self.lost += action is None
            self.act(action)
            if self.halted:
                return

    def act(self, action: object) -> None:
        match action:
            case Conclusion(text):  # 6
                f = float(value_of(BOTTOM, text))  # 7
                self.halted = f < SIGMA  # 8
                if not self.halted:
                    self.before[len(self.stack)] = self.s
                self.s = f  # 12; of a Conclusion that ends the loop s is never read again
                self.push("Conclusion" if self.halted else "Thought")  # 9, 12-13
            case Thought(text):  # 15
                self.before[len(self.stack)] = self.s
                self.s = float(value_of(BOTTOM, text))  # 16
                if self.s < SIGMA:  # 17
                    self.s = SIGMA
                self.push("Thought")  # 18
            case ToolUse():  # 19
                self.push("Tool_Observation")  # 21
            case Backtrack():  # 22
                old_action = self.pop()  # 23
                if old_action == "Thought":  # 24
                    self.s = self.before[len(self.stack)]
                self.told.append(("-", old_action, len(self.stack), self.s))
            case Summary():  # 25
                old_action = self.pop()  # 26
                self.told.append(("-", old_action, len(self.stack), self.s))
                self.push("Summary")  # 27


@dataclass(frozen=True)
class Ran:
    solution: Solution
    run: Run
    model: Babbler
    memory: MemoryStack


def play(replies: Sequence[str], limit: int) -> Ran:
    model, run, memory = Babbler(replies), Run(), MemoryStack(QUESTION)
    machine = TuringMachine(
        model,
        (SearchTool(DOC_RAG, ScriptedRetriever({"": [FOUND]})),),
        Cppl(model),
        Says(),
        AnyMove(NAMES),
        sigma=SIGMA,
        max_loop=limit,
    )
    return Ran(asyncio.run(machine.solve_over(memory, run)), run, model, memory)


TEXTS = st.sampled_from(["a", "ab", "abc", "abcd", "肿", "肿胀", "肿胀了", "踝关节"])
ACTIONS = st.one_of(
    st.builds(Thought, TEXTS),
    st.builds(ToolUse, st.just(DOC_RAG), TEXTS),
    st.builds(Backtrack, TEXTS),
    st.builds(Summary, TEXTS),
    st.builds(Conclusion, TEXTS),
).map(render_action)
TAGS = ("Thought", "Tool_Use", "Backtrack", "Summary", "Conclusion", "Tool_Observation", "Action")
GARBAGE = st.one_of(
    st.text(),
    st.tuples(st.sampled_from(TAGS), st.text()).map(lambda pair: f"{pair[0]}:{pair[1]}"),
)
REPLIES = st.lists(st.one_of(ACTIONS, ACTIONS, GARBAGE), min_size=1, max_size=12)
LIMITS = st.integers(1, 10)


@given(REPLIES, LIMITS)
def test_the_machine_does_what_a_plain_reading_of_the_box_does(
    replies: list[str], limit: int
) -> None:
    box, ran = Box(limit), play(replies, limit)
    box.run(replies)
    told = [
        ("+" if isinstance(e, Pushed) else "-", e.kind, e.depth)
        for e in ran.run.events
        if isinstance(e, Pushed | Popped)
    ]
    assert told[1:] == [each[:3] for each in box.told]
    restored = [e.restored for e in ran.run.events if isinstance(e, Popped)]
    expected = [s for sign, _, _, s in box.told if sign == "-"]
    assert [float("inf") if s is None else s for s in restored] == pytest.approx(expected)
    assert ran.memory.state == pytest.approx(box.s)
    assert (ran.solution.halt is Halt.CONVERGED) is box.halted


@given(REPLIES, LIMITS)
def test_only_a_conclusion_below_sigma_halts(replies: list[str], limit: int) -> None:
    ran = play(replies, limit)
    converged = ran.solution.halt is Halt.CONVERGED
    halting = [e for e in ran.run.events if isinstance(e, StateValued) and e.halted]
    kinds = [e.kind for e in ran.run.events if isinstance(e, Pushed)]
    assert len(halting) == kinds.count("Conclusion") == int(converged)
    assert all(e.value < SIGMA for e in halting)
    assert not converged or kinds[-1] == "Conclusion"


@given(REPLIES, LIMITS)
def test_a_thought_never_leaves_the_state_below_sigma(replies: list[str], limit: int) -> None:
    """Whatever is popped, what it brings back is no state in which the loop would have ended."""
    restored = [e.restored for e in play(replies, limit).run.events if isinstance(e, Popped)]
    assert all(value is None or value >= SIGMA for value in restored)


@given(REPLIES, LIMITS)
def test_steps_never_exceed_the_limit(replies: list[str], limit: int) -> None:
    ran = play(replies, limit)
    moved = [e.i for e in ran.run.events if isinstance(e, Pushed | Popped | StateValued)]
    assert max(moved) <= limit
    assert len(ran.model.seen) <= 3 * limit


@given(REPLIES, LIMITS)
def test_prompts_share_their_prefix_unless_a_pop_lies_between(
    replies: list[str], limit: int
) -> None:
    """Of the first question of each step; a reply asked for again is no part of the memory."""
    ran = play(replies, limit)
    calls = [e for e in ran.run.events if isinstance(e, Asked | Popped) and not scored(e)]
    prompts = iter("".join(f"<{m.role}>{m.content}" for m in seen) for seen in ran.model.seen)
    steps = [None if isinstance(e, Popped) else (next(prompts), e.repaired) for e in calls]
    fresh = [step if step is None else step[0] for step in steps if step is None or not step[1]]
    for before, after in pairwise(fresh):
        if before is not None and after is not None:
            assert after.startswith(before.rstrip("\n"))


def scored(event: Asked | Popped) -> bool:
    return isinstance(event, Asked) and event.kind == "score"


@given(st.lists(GARBAGE, min_size=1, max_size=6), LIMITS)
def test_any_garbage_ends_in_a_defined_event(replies: list[str], limit: int) -> None:
    """Each step pushes, pops, or says that no reply could be read; the run ends in an answer."""
    ran = play(replies, limit)
    noted = [e for e in ran.run.events if isinstance(e, Noted) and e.text.startswith("step ")]
    moved = {e.i for e in ran.run.events if isinstance(e, Pushed | Popped)} - {0}
    steps = len(noted) + len(moved)
    assert steps == limit or ran.solution.halt is Halt.CONVERGED
    assert isinstance(ran.solution.answer, Answer)

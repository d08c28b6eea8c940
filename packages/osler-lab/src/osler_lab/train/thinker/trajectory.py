"""A teacher's run, written down and taken step by step: the material of training samples.

The runs are made by the solver itself (`osler.methods.kag`), whose speakers and focuser are
listened to: every prompt with its reply, and what was decided. So what a model is trained on is
what the solver really asks, reads and writes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from osler.errors import MalformedOutput
from osler.llm.core.ask import REPAIRS, Speaker
from osler.llm.core.base import Completion, Message
from osler.llm.core.grammar import Grammar
from osler.methods.kag.focus import Focus, Focuser
from osler.methods.kag.logical_forms import render_step
from osler.methods.kag.parse import read_search
from osler.methods.kag.variables import fill_references
from osler.prompts import RenderedPrompt
from osler.trace import (
    BoundaryChecked,
    Calculated,
    Event,
    Focused,
    FormNode,
    FormSolved,
    FormsPlanned,
    Run,
)
from osler.types import Hit, Language

_ANSWER = re.compile(r"<answer>.*", re.DOTALL)
_PLANNERS = ("decompose", "outline")


@dataclass(frozen=True, slots=True)
class SearchTurn:
    """Search for a sub-problem, with the focuser's verdict on it."""

    search: str
    """The step that was looked up, in wire form: "Step1: …", "Action1: …" on two lines."""
    references: tuple[str, ...]
    passages: tuple[str, ...]
    enough: bool
    reason: str
    """The focuser's (Table 4)."""
    thought: str = ""
    """The reason restructured (§3.3); empty = the reason as it is."""


@dataclass(frozen=True, slots=True)
class SolvedStep:
    """A step and how it was solved."""

    n: int
    fn: str
    """Retrieval, Math, Deduce or Output."""
    words: str
    """The step in wire form, with the answers it refers to filled in."""
    answer: str
    """Empty when it was not solved."""
    assessed: bool = False
    """Whether the boundary was determined."""
    attempt: str = ""
    """The answer out of the model's own head; empty where it had none."""
    reasoning: str = ""
    """Reasoning of the self-check about the attempt."""
    known: bool = False
    turns: tuple[SearchTurn, ...] = ()
    prompt: str = ""
    """Prompt of a Deduce or a Math, as it was asked."""
    thought: str = ""
    """Thought before a Deduce's answer or a Math's program."""
    code: str = ""
    """The program that gave the result of a Math."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Question decomposed, solved and answered."""

    prompt: str
    """Prompt that asked for the plan."""
    thought: str
    plan: str
    """Plan in wire form."""
    origin: str
    warnings: tuple[str, ...]
    """Faults of the plan."""
    steps: tuple[SolvedStep, ...] = ()
    """Steps in the order in which they were solved."""
    final_prompt: str = ""
    final_thought: str = ""
    final: str = ""
    """The last reply: statements with citations, and the boxed answer."""

    @property
    def retrievals(self) -> tuple[SolvedStep, ...]:
        return tuple(step for step in self.steps if step.fn == "Retrieval")


def trajectory_of(script: Script) -> Trajectory:
    """Raises `MalformedOutput` for a script without a plan."""
    plan = next((line for line in script.lines if isinstance(line, FormsPlanned)), None)
    if plan is None:
        raise MalformedOutput("", expected="a plan")
    exchanges = tuple(line for line in script.lines if isinstance(line, Exchange) and line.read)
    asked = _last_exchange(exchanges, *_PLANNERS)
    final = _last_exchange(exchanges, "answer")
    return Trajectory(
        asked.asked if asked else "",
        _thought_of(asked) if asked else "",
        "\n".join(_step_words(node, node.step) for node in plan.nodes),
        plan.origin,
        plan.warnings,
        _solve_steps(script.lines, {node.n: node for node in plan.nodes}),
        final.asked if final else "",
        final.thinking if final else "",
        final.reply if final else "",
    )


def _solve_steps(lines: Sequence[Line], nodes: Mapping[int, FormNode]) -> tuple[SolvedStep, ...]:
    """Builds each step from the lines that led to it."""
    steps: list[SolvedStep] = []
    answers: dict[int, str] = {}
    buffer: list[Line] = []
    for line in lines:
        if isinstance(line, FormsPlanned):
            buffer = []
        elif isinstance(line, FormSolved):
            node = nodes[line.n]
            steps.append(
                _make_step(
                    node, _step_words(node, fill_references(node.step, answers)), line, buffer
                )
            )
            # Later steps refer to earlier answers as #n; an unsolved step fills nothing in.
            answers |= {line.n: line.answer} if line.answer else {}
            buffer = []
        else:
            buffer.append(line)
    return tuple(steps)


def _make_step(node: FormNode, words: str, solved: FormSolved, lines: Sequence[Line]) -> SolvedStep:
    step = SolvedStep(node.n, node.fn, words, solved.answer)
    exchanges = [line for line in lines if isinstance(line, Exchange) and line.read]
    if checked := next((line for line in lines if isinstance(line, BoundaryChecked)), None):
        # With "twice" both confirmations reason about the attempt (§5.1).
        doubts = [e for e in exchanges if e.kind in ("self_check", "complete")]
        step = replace(
            step,
            assessed=True,
            attempt=checked.answer,
            reasoning="\n".join(filter(None, map(_thought_of, doubts))),
            known=checked.known,
        )
    if node.fn == "Retrieval":
        return replace(step, turns=_make_turns(words, lines))
    programs = [e for e in lines if isinstance(e, Calculated) and e.value]
    asked = _last_exchange(exchanges, "calculate" if node.fn == "Math" else "deduce")
    if asked is None:
        return step
    code = programs[-1].code if programs and programs[-1].engine == "python" else ""
    thought = asked.thinking if node.fn == "Math" else _thought_of(asked)
    return replace(step, prompt=asked.asked, thought=thought, code=code)


def _make_turns(words: str, lines: Sequence[Line]) -> tuple[SearchTurn, ...]:
    turns: list[SearchTurn] = []
    # The first search is the step itself; each later one was written by the solver.
    search, shown = words, None
    for line in lines:
        if isinstance(line, FocusedReferences):
            shown = line
        elif isinstance(line, Focused) and shown is not None:
            turns.append(
                SearchTurn(search, shown.references, shown.passages, line.enough, line.reason)
            )
        elif isinstance(line, Exchange) and line.kind == "search" and line.read:
            search = render_step(read_search(line.reply))
    return tuple(turns)


def _step_words(node: FormNode, question: str) -> str:
    return f"Step{node.n}: {question}\nAction{node.n}: {node.action}"


def _thought_of(exchange: Exchange) -> str:
    """Thought before the answer: apart from the reply, or at its beginning."""
    before = _ANSWER.sub("", exchange.reply) if "<answer>" in exchange.reply else ""
    return "\n".join(part.strip() for part in (exchange.thinking, before) if part.strip())


def _last_exchange(exchanges: Sequence[Exchange], *kinds: str) -> Exchange | None:
    return next((e for e in reversed(exchanges) if e.kind in kinds), None)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Exchange:
    """Prompt with the reply that counted: the last one, where it was repaired."""

    prompt: str
    """Its identity, as "kag/attempt@1f3a9c2e"."""
    asked: str
    reply: str
    """Without its thinking."""
    thinking: str
    read: bool
    """Whether the reply could be read."""

    @property
    def kind(self) -> str:
        """The prompt's own name: "attempt", "focus", "deduce"."""
        return self.prompt.partition("@")[0].removesuffix(".zh").rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class FocusedReferences:
    """References of a search, before the focuser reads them."""

    question: str
    references: tuple[str, ...]
    passages: tuple[str, ...]
    """Ids of the passages."""


Told = BoundaryChecked | Focused | Calculated | FormSolved | FormsPlanned
Line = Exchange | FocusedReferences | Told


@dataclass(frozen=True)
class Script:
    """Record of exchanges and decisions, in order. One run writes into it, one step at a time."""

    lines: list[Line] = field(default_factory=list)

    def note_event(self, event: Event) -> None:
        """The sink of the run: keeps the events that decide something."""
        if isinstance(event, BoundaryChecked | Focused | Calculated | FormSolved | FormsPlanned):
            self.lines.append(event)


@dataclass(frozen=True)
class RecordedSpeaker(Speaker):
    """A speaker whose exchanges are written down."""

    script: Script = field(default_factory=Script)

    async def ask(
        self,
        prompt: RenderedPrompt,
        parse: Callable[[Completion], T],
        run: Run,
        *,
        grammar: Grammar | None = None,
        top: int = 0,
        shown: Sequence[Message] = (),
        repairs: int = REPAIRS,
    ) -> T:
        """Asks like `Speaker.ask`, and writes the exchange down."""
        replies: list[Completion] = []
        read = False

        def record_reply(reply: Completion) -> T:
            replies.append(reply)
            return parse(reply)

        try:
            value = await Speaker.ask(
                self,
                prompt,
                record_reply,
                run,
                grammar=grammar,
                top=top,
                shown=shown,
                repairs=repairs,
            )
            read = True
            return value
        # Also after an error: a reply that could not be read belongs to the record.
        finally:
            if replies:
                last = replies[-1]
                exchange = Exchange(prompt.identity, prompt.text, last.text, last.thinking, read)
                self.script.lines.append(exchange)


@dataclass(frozen=True)
class RecordedFocuser(Focuser):
    """A focuser whose references are written down, each before the verdict on them."""

    script: Script = field(default_factory=Script)

    async def focus(
        self, question: str, hits: Sequence[Hit], language: Language, run: Run
    ) -> Focus:
        """Focuses like `Focuser.focus`, after writing the references down."""
        references = tuple(self.list_references(question, hits))
        ids = tuple(hit.passage.id for hit in hits)
        # Before the call, so that the verdict (`Focused`) follows its references.
        self.script.lines.append(FocusedReferences(question, references, ids))
        return await Focuser.focus(self, question, hits, language, run)


def record_speaker(speaker: Speaker, script: Script) -> RecordedSpeaker:
    """Copies a speaker so that its exchanges are written into the script."""
    return RecordedSpeaker(**vars(speaker), script=script)

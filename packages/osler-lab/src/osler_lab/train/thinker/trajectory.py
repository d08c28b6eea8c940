"""Trajectory of a teacher's run, step by step: the material of training samples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from osler.errors import MalformedOutput
from osler.methods.kag.dependencies import fill_references
from osler.methods.kag.notation import render_step
from osler.methods.kag.parse import read_search
from osler.trace import BoundaryChecked, Calculated, Focused, FormNode, FormSolved, FormsPlanned
from osler_lab.train.thinker.script import Exchange, FocusedReferences, Line, Script

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
    exchanges: tuple[Exchange, ...] = ()
    """Exchanges whose replies could be read, in order: the solver's calls one by one."""

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
        exchanges,
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

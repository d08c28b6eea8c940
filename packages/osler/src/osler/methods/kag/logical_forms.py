"""Logical forms: the four functions of a plan, and their notation (KAG-Thinker §3.1.1, §3.4).

Every sub-problem is stored twice: as a `PlanStep` in natural language for text retrievers and
as an action for structured ones. Texts are single lines: a run of white space becomes one
space, so that a rendered plan parses back unchanged (`kag.parse` is the inverse).

In the notation of the paper's Table 1 names are in single quotes; a quote or a backslash inside is
escaped. Types and properties, which have no quotes in the paper, get them only where they would not
parse back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from operator import ge, gt, le, lt
from typing import Literal, Self, assert_never

from osler.types import Hit

Place = Literal["s", "p", "o"]
Comparison = Literal["=", "!=", "<", "<=", ">", ">=", "in"]
COMPARISONS: tuple[Comparison, ...] = ("!=", "<=", ">=", "=", "<", ">", "in")
"""Longer signs first: the order in which a reader must try them."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_IN_ORDER: Mapping[str, Callable[[float, float], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


class Operation(StrEnum):
    """Operations of a Deduce (Table 1; `rule` occurs only in its description line)."""

    JUDGEMENT = "judgement"
    ENTAILMENT = "entailment"
    EXTRACT = "extract"
    CHOICE = "choice"
    MULTI_CHOICE = "multiChoice"
    RULE = "rule"


class _OneLineFields:
    """Base class that brings every text of a form onto one line."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            # Not isinstance: an `Operation` is a str too, and must stay an enum member.
            if type(value) is str:
                object.__setattr__(self, field.name, " ".join(value.split()))
            elif isinstance(value, tuple) and all(type(part) is str for part in value):
                lines = tuple(" ".join(part.split()) for part in value)
                object.__setattr__(self, field.name, lines)


@dataclass(frozen=True, slots=True)
class SpoNode(_OneLineFields):
    """A subject, predicate or object: an alias, and what it stands for.

    An alias alone refers to what an earlier step declared, or declares an unknown.
    """

    alias: str
    type: str = ""
    """Entity type, or the edge of a predicate."""
    name: str = ""
    """The entity itself; empty = unknown, to be retrieved."""
    id: str = ""
    """Its identifier in a knowledge base, where the plan gives one."""


@dataclass(frozen=True, slots=True)
class Constraint(_OneLineFields):
    """A condition on a property of `s`, `p` or `o`."""

    on: Place
    property: str
    comparison: Comparison
    value: str | tuple[str, ...]
    """A tuple for "in", a string for all other comparisons."""

    def values(self) -> tuple[str, ...]:
        """What it compares with, each value by itself."""
        return self.value if isinstance(self.value, tuple) else (self.value,)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Knowledge about `o`, given `s` and `p` (Table 11)."""

    s: SpoNode
    p: SpoNode
    o: SpoNode
    constraints: tuple[Constraint, ...] = ()

    @classmethod
    def of_words(cls, n: int, words: str) -> Self:
        """A lookup of a step's words, whose result has the usual name."""
        subject = SpoNode(f"s{n}", "question", words)
        return cls(subject, SpoNode(f"p{n}", "answer"), SpoNode(f"o{n}"))

    @property
    def nodes(self) -> tuple[SpoNode, SpoNode, SpoNode]:
        return self.s, self.p, self.o


@dataclass(frozen=True, slots=True)
class Math(_OneLineFields):
    """A calculation from `content`: aliases, and literals such as "weight=16kg"."""

    content: tuple[str, ...]
    target: str
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Deduce(_OneLineFields):
    """A conclusion from `content`: aliases and free text."""

    op: Operation
    content: tuple[str, ...]
    target: str
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Output(_OneLineFields):
    """The variables that answer the question."""

    variables: tuple[str, ...]


Form = Retrieval | Math | Deduce | Output


@dataclass(frozen=True, slots=True)
class PlanStep(_OneLineFields):
    """One sub-problem in both representations (§3.1.1)."""

    n: int
    """From 1; other steps refer to its result as "#n"."""
    question: str
    action: Form
    others: tuple[Retrieval, ...] = ()
    """While a plan runs: the same form for the other entities that its references stand for."""
    awaited: bool = False
    """While a plan runs: whether another step is asked with its answer."""


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """The breadth decomposition of a question, in order."""

    steps: tuple[PlanStep, ...]

    @classmethod
    def single_retrieval(cls, question: str) -> Self:
        """The fallback plan: one retrieval of the question itself."""
        return cls((PlanStep(1, question, Retrieval.of_words(1, question)),))

    def step_numbered(self, n: int) -> PlanStep:
        """The step numbered `n`. Raises `KeyError`."""
        for step in self.steps:
            if step.n == n:
                return step
        raise KeyError(n)


@dataclass(frozen=True, slots=True)
class SubAnswer:
    """The result of a step."""

    n: int
    question: str
    """With the answers it refers to filled in."""
    text: str
    """Empty when it was not answered."""
    hits: tuple[Hit, ...] = ()
    """The passages it rests on; empty for the model's own knowledge and for reasoning."""
    own: bool = False
    """Answered from the model's own knowledge."""
    confidence: float | None = None
    unsure: str = ""
    """Reason why the answer is only the best available; empty when it is certain."""
    lacking: tuple[str, ...] = ()
    """The steps, as "#1", whose answers it would have needed."""

    @property
    def prompt_line(self) -> str:
        """The line by which later prompts quote this result."""
        return f"#{self.n} {self.question} {self.text or 'unknown'}"


def constraint_holds(constraint: Constraint, value: str) -> bool:
    """Whether a value meets a constraint; numbers are compared as numbers, words without case."""
    alike = any(same_text(value, each) for each in constraint.values())
    match constraint.comparison:
        case "=" | "in":
            return alike
        case "!=":
            return not alike
    left, right = _read_number(value), _read_number(constraint.values()[0])
    if left is None or right is None:
        return False
    return _IN_ORDER[constraint.comparison](left, right)


def same_text(one: str, other: str) -> bool:
    if one.casefold().strip() == other.casefold().strip():
        return True
    left, right = _read_number(one), _read_number(other)
    return left is not None and left == right and _NUMBER.sub("", one) == _NUMBER.sub("", other)


def _read_number(text: str) -> float | None:
    match = _NUMBER.search(text)
    return float(match[0]) if match else None


PLAIN = re.compile(r"[^\W_](?:[\w \-/%]*\w)?")
"""A type, property or variable that needs no quotes."""


def render_plan(plan: LogicalPlan) -> str:
    """`Step1: …`, `Action1: …`, one line each."""
    return "\n".join(render_step(step) for step in plan.steps)


def render_step(step: PlanStep) -> str:
    return f"Step{step.n}: {step.question}\nAction{step.n}: {render_form(step.action)}"


def render_form(form: Form) -> str:
    match form:
        case Retrieval():
            nodes = zip("spo", form.nodes, strict=True)
            parts = [f"{place}={_render_node(node)}" for place, node in nodes]
            return f"Retrieval({', '.join([*parts, *map(_render_constraint, form.constraints)])})"
        case Math():
            return f"Math({_render_arguments(form)}){_render_arrow(form.alias)}"
        case Deduce():
            return f"Deduce(op={form.op}, {_render_arguments(form)}){_render_arrow(form.alias)}"
        case Output():
            return f"Output({','.join(_plain_text(name) for name in form.variables)})"
        case _ as never:
            assert_never(never)


def quote_text(text: str) -> str:
    """The text in single quotes, with `\\` before a quote or a backslash."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _plain_text(text: str) -> str:
    return text if PLAIN.fullmatch(text) else quote_text(text)


def _render_node(node: SpoNode) -> str:
    kind = f":{_plain_text(node.type)}" if node.type else ""
    name = f"[{quote_text(node.name)}]" if node.name or node.id else ""
    id = f"[{quote_text(node.id)}]" if node.id else ""
    return f"{node.alias}{kind}{name}{id}"


def _render_constraint(constraint: Constraint) -> str:
    value = constraint.value
    said = quote_text(value) if isinstance(value, str) else _render_list(value)
    comparison = " in " if constraint.comparison == "in" else constraint.comparison
    return f"{constraint.on}.{_plain_text(constraint.property)}{comparison}{said}"


def _render_arguments(form: Math | Deduce) -> str:
    return f"content={_render_list(form.content)}, target={quote_text(form.target)}"


def _render_list(items: tuple[str, ...]) -> str:
    return f"[{', '.join(map(quote_text, items))}]"


def _render_arrow(alias: str) -> str:
    return f"->{_plain_text(alias)}" if alias else ""

"""Logical forms: the four functions of a plan (KAG-Thinker §3.1.1, §3.4, App. 8).

Every sub-problem is stored twice: as a `PlanStep` in natural language for text retrievers and
as an action for structured ones. Texts are single lines: a run of white space becomes one
space, so that a rendered plan parses back unchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Literal, Self

from osler.types import Hit

Place = Literal["s", "p", "o"]
Comparison = Literal["=", "!=", "<", "<=", ">", ">=", "in"]
COMPARISONS: tuple[Comparison, ...] = ("!=", "<=", ">=", "=", "<", ">", "in")
"""Longer signs first: the order in which a reader must try them."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


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


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Knowledge about `o`, given `s` and `p` (Table 11)."""

    s: SpoNode
    p: SpoNode
    o: SpoNode
    constraints: tuple[Constraint, ...] = ()

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
        name = SpoNode("s1", "question", question)
        return cls(
            (PlanStep(1, question, Retrieval(name, SpoNode("p1", "answer"), SpoNode("o1"))),)
        )

    def without_last_deduce(self) -> Self:
        """A plan of several steps without the Deduce that ends it, if one does."""
        ends = len(self.steps) > 1 and isinstance(self.steps[-1].action, Deduce)
        return replace(self, steps=self.steps[:-1]) if ends else self

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
    wanted = constraint.value if isinstance(constraint.value, tuple) else (constraint.value,)
    alike = any(same_text(value, each) for each in wanted)
    match constraint.comparison:
        case "=" | "in":
            return alike
        case "!=":
            return not alike
    left, right = _read_number(value), _read_number(wanted[0])
    if left is None or right is None:
        return False
    match constraint.comparison:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case _:
            return left >= right


def same_text(one: str, other: str) -> bool:
    if one.casefold().strip() == other.casefold().strip():
        return True
    left, right = _read_number(one), _read_number(other)
    return left is not None and left == right and _NUMBER.sub("", one) == _NUMBER.sub("", other)


def _read_number(text: str) -> float | None:
    match = _NUMBER.search(text)
    return float(match[0]) if match else None

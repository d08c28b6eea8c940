"""Logical forms: the four functions of a plan (KAG-Thinker §3.1.1, §3.4, App. 8).

Every sub-problem is held twice, as a `PlanStep` in natural language for text retrievers
and as an action for structured ones. Texts are single lines: a run of white space is
one space, so that what is written on a line reads back as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Literal, Self

Place = Literal["s", "p", "o"]
Comparison = Literal["=", "!=", "<", "<=", ">", ">=", "in"]
COMPARISONS: tuple[Comparison, ...] = ("!=", "<=", ">=", "=", "<", ">", "in")
"""The longer first, as a reader must try them."""


class Operation(StrEnum):
    """How a Deduce reasons (Table 1; `rule` stands only in its description line)."""

    JUDGEMENT = "judgement"
    ENTAILMENT = "entailment"
    EXTRACT = "extract"
    CHOICE = "choice"
    MULTI_CHOICE = "multiChoice"
    RULE = "rule"


class _OneLineFields:
    """Brings every text of a form onto one line."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
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
    """The entity itself; empty = unknown, to be found."""
    id: str = ""
    """Its identifier in a knowledge base, where the plan gives one."""


@dataclass(frozen=True, slots=True)
class Constraint(_OneLineFields):
    """A condition on a property of `s`, `p` or `o`."""

    on: Place
    property: str
    comparison: Comparison
    value: str | tuple[str, ...]
    """Several with "in", one with all others."""


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
    """One sub-problem in both representations (F-KT-01)."""

    n: int
    """From 1; other steps refer to its result as "#n"."""
    question: str
    action: Form


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """The breadth decomposition of a question, in order."""

    steps: tuple[PlanStep, ...]

    @classmethod
    def single_retrieval(cls, question: str) -> Self:
        """One retrieval of the question itself: what is left when no plan can be read."""
        name = SpoNode("s1", "question", question)
        return cls(
            (PlanStep(1, question, Retrieval(name, SpoNode("p1", "answer"), SpoNode("o1"))),)
        )

    def step_numbered(self, n: int) -> PlanStep:
        """Raises `KeyError`."""
        for step in self.steps:
            if step.n == n:
                return step
        raise KeyError(n)

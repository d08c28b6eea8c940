"""Chooses the cheapest method for each question by its kind.

Routes are asked in order, and the first that takes the question answers it; the reason stands in
the run and in the solution. None of the papers has this: which route stands where was read off the
cost-quality front of `docs/scoreboard.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from osler.trace import Noted, Run
from osler.types import Question, Solution

REASONS: Mapping[str, str] = {
    "formula": "a verified formula",
    "steps": "several steps over the concept graph",
    "verdict": "one search, answered by yes, no or maybe",
    "options": "one search, then a choice among the options",
    "fact": "one search",
}
"""How each kind of question is answered, as the run says it."""
_VERDICTS = frozenset({"yes", "no", "maybe", "是", "否", "不确定"})


class PartialSolver(Protocol):
    """A method that may leave a question to others."""

    async def solve(self, question: Question, run: Run) -> Solution | None:
        """`None` where the question is not one of its kind."""


@dataclass(frozen=True)
class AutoRoute:
    """A method, and the kind of question that it is for."""

    kind: str
    """A key of `REASONS`."""
    method: str
    solver: PartialSolver

    def takes(self, question: Question) -> bool:
        """Whether a question looks like one of its kind, as far as its options say."""
        match self.kind:
            case "verdict":
                return is_verdict(question)
            case "options":
                return bool(question.options) and not is_verdict(question)
            case "fact":
                return not question.options
            case _:
                return True


def is_verdict(question: Question) -> bool:
    """Whether the options are yes and no, or these and maybe."""
    said = {option.strip().casefold() for option in question.options}
    return bool(said) and said <= _VERDICTS


@dataclass(frozen=True)
class AutoSolver:
    """Asks each route in order. The last one that takes a question must answer it."""

    routes: tuple[AutoRoute, ...]

    async def solve(self, question: Question, run: Run) -> Solution:
        """Raises `LookupError` where no route answers, which no build leaves open."""
        for route in self.routes:
            if not route.takes(question):
                continue
            solution = await route.solver.solve(question, run)
            if solution is not None:
                # In the run and in the solution: the answer itself says nothing of methods.
                run.emit(Noted(f"Method: {REASONS[route.kind]} ({route.method})."))
                return replace(solution, why=f"{route.method} ({route.kind}); {solution.why}")
        raise LookupError("no route answers this question")

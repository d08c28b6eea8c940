"""Stability of solutions over two seeds (KAG-Thinker §4.4, Fig. 5).

A question is solved with two seeds at one temperature, and a judge says whether the two solution
processes are consistent. The score is the share of stable questions. Beside it stands a score
without a judge: whether the two plans have the same functions waiting for the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from osler.evaluate.intervals import Estimate, proportion
from osler.evaluate.judges import REASONING, Judge
from osler.llm.core.verdict import parse_verdict, verdict_grammar
from osler.prompts import render_prompt
from osler.trace import Event, FormSolved, FormsPlanned, Run, Solver
from osler.types import Question, Solution

TEMPERATURES = (0.6, 0.8)
"""The two that §4.4 names."""
SEEDS = (0, 1)

Shape = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class SolutionProcess:
    """Solution process as the judge sees it, with its shape."""

    text: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class StabilityPair:
    question: Question
    first: SolutionProcess
    second: SolutionProcess
    stable: bool | None
    """The judge's verdict; `None` where it could not be read."""

    @property
    def alike(self) -> bool:
        """Whether the plans have the same functions waiting for the same steps."""
        return self.first.shape == self.second.shape


@dataclass(frozen=True, slots=True)
class Stability:
    pairs: tuple[StabilityPair, ...]

    @property
    def judged(self) -> Estimate | None:
        """Share of stable questions; `None` where no verdict could be read.

        A verdict that cannot be read is in no figure, as in the report's `JudgedCell`: it says
        something about the judge, and nothing about the questions.
        """
        read = [pair.stable for pair in self.pairs if pair.stable is not None]
        return proportion(sum(read), len(read)) if read else None

    @property
    def alike(self) -> Estimate:
        return proportion(sum(pair.alike for pair in self.pairs), len(self.pairs))

    @property
    def unread(self) -> int:
        return sum(pair.stable is None for pair in self.pairs)


class StabilityJudge(Judge):
    """Model that decides, greedily, whether two processes are consistent."""

    async def is_consistent(
        self,
        question: Question,
        first: SolutionProcess,
        second: SolutionProcess,
        run: Run | None = None,
    ) -> bool | None:
        """Returns `None` for a verdict that cannot be read; `run` pays for it."""
        prompt = render_prompt(
            "evaluate/consistent",
            question.language,
            question=question.text,
            first=first.text,
            second=second.text,
        )
        run = run or Run(id=question.id)
        grammar = verdict_grammar(reason=REASONING)
        return await self._ask_model(prompt, lambda reply: parse_verdict(reply.text), grammar, run)


async def measure_stability(
    solver: Callable[[int], Solver],
    judge: StabilityJudge,
    questions: Sequence[Question],
    *,
    seeds: tuple[int, int] = SEEDS,
) -> Stability:
    """`solver(seed)` solves at the temperature that is measured. Raises `ValueError` for one seed
    twice: that would be the same run."""
    if seeds[0] == seeds[1]:
        raise ValueError(f"two seeds are needed, got {seeds[0]} twice")
    pairs = []
    for question in questions:
        first, second = [await _solve_once(solver(seed), question, seed) for seed in seeds]
        stable = await judge.is_consistent(question, first, second)
        pairs.append(StabilityPair(question, first, second, stable))
    return Stability(tuple(pairs))


def process_of_run(run: Run, solution: Solution) -> SolutionProcess:
    """The plan, what each step came to, and the answer."""
    return process_of_events(run.events, solution.answer.option or "", solution.answer.text)


def process_of_events(events: Sequence[Event], option: str, text: str) -> SolutionProcess:
    """Extracts the solution process from the events of a stored run."""
    lines: list[str] = []
    shape: Shape = ()
    for event in events:
        if isinstance(event, FormsPlanned):
            # A plan made anew replaces the earlier one: the last shape is that of the answer.
            shape = tuple((node.fn, node.needs) for node in event.nodes)
            lines += [f"Step{n.n}: {n.step}\nAction{n.n}: {n.action}" for n in event.nodes]
        elif isinstance(event, FormSolved):
            lines.append(f"#{event.n} {event.answer or 'unknown'}")
    lines.append(" ".join(filter(None, (option, text))))
    return SolutionProcess("\n".join(line for line in lines if line), shape)


async def _solve_once(solver: Solver, question: Question, seed: int) -> SolutionProcess:
    run = Run(id=f"{question.id}-{seed}", seed=seed)
    return process_of_run(run, await solver.solve(question, run))

"""KAG-Thinker's stability score (§4.4) with the model that is configured here.

    python benchmarks/stability.py [--n 20] [--config FILE]

The sample questions are solved with seeds 0 and 1 at temperatures 0.6 and 0.8. "judged": the role
judge calls both solutions consistent; "alike": both plans have the same functions waiting for the
same steps, which needs no judge. Without a file the packaged model plays every role.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sample_questions import samples

from osler.build.knowledge import build_sample
from osler.build.live import live_parts
from osler.build.models import load_roles
from osler.build.strategies import build_solver
from osler.settings import Settings, load
from osler.trace import Run, Solver
from osler.types import Question, Solution
from osler_lab.evaluate.intervals import Estimate, proportion
from osler_lab.evaluate.judges import Judge, SolutionProcess, process_of_events

TEMPERATURES = (0.6, 0.8)
"""The two that §4.4 names."""
SEEDS = (0, 1)

STRATEGY = {"kind": "kag-thinker", "turns": 1}


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


async def measure_stability(
    solver: Callable[[int], Solver],
    judge: Judge,
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
        stable = await judge.is_consistent(question, first.text, second.text, Run(question.id))
        pairs.append(StabilityPair(question, first, second, stable))
    return Stability(tuple(pairs))


def process_of_run(run: Run, solution: Solution) -> SolutionProcess:
    """The plan, what each step came to, and the answer."""
    return process_of_events(run.events, solution.answer.option or "", solution.answer.text)


async def _solve_once(solver: Solver, question: Question, seed: int) -> SolutionProcess:
    run = Run(id=f"{question.id}-{seed}", seed=seed)
    return process_of_run(run, await solver.solve(question, run))


def at(settings: Settings, temperature: float) -> Settings:
    data = settings.model_dump()
    data["sampling"] |= {"temperature": temperature, "max_tokens": 300}
    return Settings.model_validate(data | {"strategy": STRATEGY})


async def measured(settings: Settings, questions: list[Question]) -> Stability:
    parts = await live_parts(settings)
    ready = (await load_roles(settings, ["judge"]))["judge"]

    def solver(seed: int) -> Solver:
        sampling = settings.sampling.model_copy(update={"seed": seed})
        return build_solver(settings.model_copy(update={"sampling": sampling}), parts)

    return await measure_stability(solver, Judge(ready.model, ready.constrains), questions)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--config", type=Path)
    given = parser.parse_args()
    questions = [each.question for each in samples("questions_en.jsonl")][: given.n]
    with tempfile.TemporaryDirectory() as home:
        cwd = Path.cwd()
        settings = (
            load({}, cwd=cwd, env={}, file=given.config).settings
            if given.config
            else Settings.model_validate({"home": Path(home), "model": {"threads": 1}})
        )
        if not given.config:
            build_sample(settings)
        print("| temperature | n | judged | alike | unread verdicts | seconds a question |")
        print("|--:|--:|---|---|--:|--:|")
        for temperature in TEMPERATURES:
            began = time.perf_counter()
            found = await measured(at(settings, temperature), questions)
            seconds = (time.perf_counter() - began) / len(questions)
            print(
                f"| {temperature} | {len(found.pairs)} | {found.judged} | {found.alike}"
                f" | {found.unread} | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    asyncio.run(main())

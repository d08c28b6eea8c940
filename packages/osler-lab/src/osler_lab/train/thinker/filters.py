"""Filters of trajectories: the reasons against one, in words under which they are counted.

Correctness comes first (App. 9: data "is then filtered for correctness"): what the gold answer
decides needs no judge; long answers do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from osler.llm.core.base import Message
from osler.llm.core.spans import answer_span, tagged_span
from osler.trace import Run
from osler_lab.evaluate.judges import Judge
from osler_lab.evaluate.metrics.choice import chosen_letters, is_exact_choice
from osler_lab.evaluate.metrics.words import exact_match, f1
from osler_lab.evaluate.record import Sample
from osler_lab.train.thinker.dialogue import Stage
from osler_lab.train.thinker.trajectory import SolvedStep, Trajectory

LONGEST = 48_000
"""Characters of a chat: about the 16,384 tokens of the paper's training (Table 14) in English."""

_RETRIEVAL = re.compile(r"^Action\d+: Retrieval\(", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FilterBounds:
    """Bounds of correctness and length."""

    f1: float = 0.8
    """Token F1 from which a short answer counts as right without a judge, in (0, 1]."""
    longest: int = LONGEST


def find_fault(trajectory: Trajectory, stage: Stage) -> str:
    """The first thing for which the trajectory cannot be a sample of the stage; else ""."""
    return next(_trajectory_faults(trajectory, stage), "")


def find_plan_fault(trajectory: Trajectory, stage: Stage) -> str:
    """Finds the first fault of the plan alone: nothing need be solved to know it."""
    return next(_plan_faults(trajectory, stage), "")


def _plan_faults(trajectory: Trajectory, stage: Stage) -> Iterator[str]:
    if trajectory.origin != "planner":
        yield "no plan could be read"
    if trajectory.warnings:
        yield "the plan's references do not resolve"
    if not trajectory.thought and stage != "deep-search":
        yield "no thought before the plan"
    if stage == "deep-search" and len(_RETRIEVAL.findall(trajectory.plan)) != 1:
        yield "not a single-hop question"


def _trajectory_faults(trajectory: Trajectory, stage: Stage) -> Iterator[str]:
    yield from _plan_faults(trajectory, stage)
    if stage == "logical-form":
        return
    # Each step of the wire form has one action line; fewer steps mean that the run was cut.
    if len(trajectory.steps) < trajectory.plan.count("\nAction"):
        yield "the budget was spent"
    for step in trajectory.steps:
        yield from _step_faults(step)
    if stage == "thinker" and final_answer(trajectory) == "":
        yield "no answer"


def _step_faults(step: SolvedStep) -> Iterator[str]:
    if not step.answer and step.fn != "Output":
        yield f"a {step.fn} was not solved"
    if step.fn == "Retrieval" and not step.known and not (step.turns and step.turns[-1].enough):
        yield "an answer without sufficient references"
    if step.fn == "Math" and not step.code:
        yield "a Math without a program"
    if step.fn == "Deduce" and not step.prompt:
        yield "a Deduce was not solved"


def final_answer(trajectory: Trajectory) -> str:
    r"""The last reply's answer: inside `\boxed{}`, else inside `<answer>`; empty for none."""
    span = answer_span(trajectory.final) or tagged_span(trajectory.final, "answer")
    return trajectory.final[slice(*span)].strip() if span else ""


def stage_answer(trajectory: Trajectory, stage: Stage) -> str:
    """Answer of a stage's samples: the sub-answer of a deep search, else the final answer."""
    if stage == "deep-search":
        return trajectory.retrievals[0].answer if trajectory.retrievals else ""
    return final_answer(trajectory)


async def wrong_reason(
    trajectory: Trajectory,
    sample: Sample,
    stage: Stage,
    bounds: FilterBounds,
    judge: Judge | None,
    run: Run,
) -> str:
    """Reason for which the answer is not right; "" where it is. A plan alone has no answer."""
    if stage == "logical-form":
        return ""
    answer, gold = stage_answer(trajectory, stage), sample.gold
    if gold.letters:
        # Tagged, so that the reader of options takes the text as an answer, not as prose.
        letters = chosen_letters(sample.question, None, f"<answer>{answer}</answer>")
        return "" if is_exact_choice(letters, gold.letters) else "wrong answer"
    if not gold.texts:
        return "no gold answer to check against"
    if sample.kind == "short" and (
        exact_match(answer, gold.texts) or f1(answer, gold.texts) >= bounds.f1
    ):
        return ""
    # Without a judge the doubtful are left out: training data may miss samples, not hold wrong
    # ones.
    if judge is None:
        return "wrong answer" if sample.kind == "short" else "a long answer without a judge"
    said = trajectory.final if sample.kind == "long" and stage == "thinker" else answer
    verdict = await judge.is_right(sample.question, gold.texts, said, run)
    if verdict is None:
        return "the judge's verdict could not be read"
    return "" if verdict else "wrong answer"


def too_long(chat: list[Message], bounds: FilterBounds) -> str:
    return "too long" if sum(len(m.content) for m in chat) > bounds.longest else ""

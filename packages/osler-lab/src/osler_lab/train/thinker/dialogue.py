"""Trajectories as multi-turn samples, in the paper's format (App. 12).

    system     a thought process is to be given
    user       the decomposition prompt (Table 1)
    assistant  <think>…</think>, <answer>Step1: … Action1: …</answer>
    user       can you answer Step1 by yourself? (Table 2)
    assistant  <think>…</think>, then <answer>\boxed{…}</answer> where it is known,
               else <search>Step1: … Action1: …</search>
    user       <references>…</references>
    assistant  <think>…</think>, then a new <search> or the answer
    …          a Deduce or a Math: its prompt, its answer or <Python>…</Python>
    user       the question, the sub-questions and their answers
    assistant  <think>…</think>, the answer

Prompts, plans and searches are the solver's own strings, and the turns are those that a trained
model is served with (`osler.methods.kag.dialogue`).

Before, trajectories are filtered: the reasons against one, in words under which they are counted.

Correctness comes first (App. 9: data "is then filtered for correctness"): what the gold answer
decides needs no judge; long answers do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from osler.llm.core.base import Message
from osler.llm.core.spans import answer_span, tagged_span
from osler.methods.kag.boundary import REFUSAL, attempt_prompt
from osler.methods.kag.dialogue import references_turn, result_turn, system_turn
from osler.prompts import render_prompt
from osler.trace import Run
from osler.types import Language
from osler_lab.evaluate.judges import Judge
from osler_lab.evaluate.metrics.choice import chosen_letters, is_exact_choice
from osler_lab.evaluate.metrics.overlap import exact_match, f1
from osler_lab.evaluate.record import Sample
from osler_lab.train.thinker.trajectory import SolvedStep, Trajectory

Stage = Literal["logical-form", "deep-search", "thinker"]
"""KAG-LogicalForm, KAG-DeepSearch and the whole of KAG-Thinker (App. 9)."""
STAGES: tuple[Stage, ...] = get_args(Stage)

_CAN: dict[Language, str] = {
    "en": "I can answer this question now.",
    "zh": "现在可以回答这个问题了。",
}
_GIVES: dict[Language, str] = {"en": "The program gives {value}.", "zh": "程序的结果是 {value}。"}
_WRITES: dict[Language, str] = {
    "en": "This is to be calculated, so I write a program.",
    "zh": "这一步需要计算，因此编写程序。",
}


def stage_messages(trajectory: Trajectory, stage: Stage, language: Language) -> list[Message]:
    """The whole chat of a stage."""
    system = system_turn(language)
    match stage:
        case "logical-form":
            return [system, *_plan_turns(trajectory)]
        case "deep-search":
            return [
                system,
                *(m for step in trajectory.retrievals for m in _search_turns(step, language)),
            ]
        case "thinker":
            inner = (m for step in trajectory.steps for m in _step_turns(step, language))
            return [system, *_plan_turns(trajectory), *inner, *_final_turns(trajectory, language)]


def wrap_thought(text: str) -> str:
    return f"<think>{text.strip()}</think>"


def box_answer(answer: str) -> str:
    return rf"<answer>\boxed{{{answer}}}</answer>"


def _plan_turns(trajectory: Trajectory) -> Iterator[Message]:
    yield Message("user", trajectory.prompt)
    yield Message(
        "assistant", f"{wrap_thought(trajectory.thought)}\n\n<answer>{trajectory.plan}</answer>"
    )


def _step_turns(step: SolvedStep, language: Language) -> Iterator[Message]:
    match step.fn:
        case "Retrieval":
            yield from _search_turns(step, language)
        case "Deduce":
            yield Message("user", step.prompt)
            known = wrap_thought(step.thought or _CAN[language])
            yield Message("assistant", f"{known}\n\n{box_answer(step.answer)}")
        case "Math":
            yield Message("user", step.prompt)
            program = f"<Python>\n{step.code}\n</Python>"
            yield Message(
                "assistant", f"{wrap_thought(step.thought or _WRITES[language])}\n{program}"
            )
            yield Message("user", result_turn(step.answer))
            gives = wrap_thought(_GIVES[language].format(value=step.answer))
            yield Message("assistant", f"{gives}\n\n{box_answer(step.answer)}")
        case _:  # an Output is answered by the last turn, as in the paper's sample
            return


def _search_turns(step: SolvedStep, language: Language) -> Iterator[Message]:
    """Yields the boundary, then search after search until the answer (§3.1.2, §3.2)."""
    yield Message("user", attempt_prompt(f"\n{step.words}", language).text)
    doubt = wrap_thought(_boundary_thought(step, language))
    for turn in () if step.known else step.turns:
        yield Message("assistant", f"{doubt}\n<search>{turn.search}</search>")
        yield Message("user", references_turn(turn.references))
        # The focuser's reason is the thought before the next search, or before the answer (§3.3).
        doubt = wrap_thought(turn.thought or turn.reason)
    yield Message("assistant", f"{doubt}\n\n{box_answer(step.answer)}")


def _boundary_thought(step: SolvedStep, language: Language) -> str:
    """Thought that precedes any search."""
    # A model that gave no answer has nothing to assess: it refuses in the solver's words.
    if not step.attempt:
        return REFUSAL[language]
    thought = render_prompt(
        "train/assess", language, answer=step.attempt, reasoning=step.reasoning, known=step.known
    )
    return thought.text


def _final_turns(trajectory: Trajectory, language: Language) -> Iterator[Message]:
    yield Message("user", trajectory.final_prompt)
    known = wrap_thought(trajectory.final_thought or _CAN[language])
    yield Message("assistant", f"{known}\n\n{trajectory.final.strip()}")


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

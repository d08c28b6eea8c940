r"""The turns of KAG-Thinker's one dialogue, for training and for inference alike (App. 12).

    system     a thought process is to be given
    user       the decomposition prompt (Table 1)
    assistant  <think>…</think>, <answer>Step1: … Action1: …</answer>
    user       can you answer Step1 by yourself? (Table 2)
    assistant  <think>…</think>, then <answer>\boxed{…}</answer>, or <search>Step1: …</search>
    user       <references>…</references>
    …
    user       the question, the sub-questions and their answers
    assistant  <think>…</think>, <answer>\boxed{…}</answer>

`ReleasedTurns` are those of the authors' checkpoint, `TrainedTurns` those of Osler's training data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from osler.llm.core.base import Completion, Message
from osler.methods.kag.boundary import attempt_prompt
from osler.methods.kag.dependencies import fill_references
from osler.methods.kag.logical_forms import LogicalPlan, PlanStep, SubAnswer
from osler.methods.kag.notation import render_step
from osler.methods.kag.output import answer_prompt
from osler.methods.kag.planner import DECOMPOSE, plan_prompt
from osler.prompts import RenderedPrompt, render_prompt
from osler.types import Hit, Language, Question


def system_turn(language: Language) -> Message:
    return Message("system", render_prompt("train/system", language).text)


def references_turn(references: Sequence[str]) -> str:
    """The user's turn with what a search found; the blank line before the end is the paper's."""
    listed = "".join(f"{text}\n\n" for text in references)
    return f"<references>{listed}</references>"


def result_turn(value: str) -> str:
    """The user's turn with the value of a program."""
    return f"<result>{value}</result>"


def step_words(step: PlanStep, answers: Mapping[int, str]) -> str:
    """A step in wire form, with the answers that its words refer to filled in."""
    question, _, action = render_step(step).partition("\n")
    return f"{fill_references(question, answers)}\n{action}"


def assistant_turn(reply: Completion) -> Message:
    """The model's turn as it wrote it, its thought included: later turns build on both."""
    thought = f"<think>{reply.thinking}</think>\n\n" if reply.thinking else ""
    return Message("assistant", f"{thought}{reply.text.strip()}")


class DialogueTurns(Protocol):
    """The user's turns of one layout."""

    @property
    def solves_every_step(self) -> bool:
        """Whether Math and Deduce are sub-questions like any other (§4.3, plain text)."""

    def plan_turn(self, question: Question) -> RenderedPrompt: ...

    def step_turn(
        self, step: PlanStep, answers: Mapping[int, str], language: Language
    ) -> RenderedPrompt: ...

    def final_turn(
        self,
        question: Question,
        plan: LogicalPlan,
        answers: Sequence[SubAnswer],
        hits: Sequence[Hit],
    ) -> RenderedPrompt: ...


class ReleasedTurns:
    """The turns of the authors' checkpoint: its executors are the model itself."""

    solves_every_step = True

    def plan_turn(self, question: Question) -> RenderedPrompt:
        text = question.with_options
        return render_prompt("kag/released_plan", question.language, question=text)

    def step_turn(
        self, step: PlanStep, answers: Mapping[int, str], language: Language
    ) -> RenderedPrompt:
        # The checkpoint's actions have their references filled in too.
        words = fill_references(render_step(step), answers)
        return render_prompt("kag/released_step", language, step=words)

    def final_turn(
        self,
        question: Question,
        plan: LogicalPlan,
        answers: Sequence[SubAnswer],
        hits: Sequence[Hit],
    ) -> RenderedPrompt:
        said = {each.n: each.text for each in answers if each.text}
        last = fill_references(render_step(plan.steps[-1]), said)
        return render_prompt(
            "kag/released_answer",
            question.language,
            question=question.with_options,
            steps=[f"{each.question}\n#{each.n}: {each.text or 'unknown'}" for each in answers],
            last=last,
        )


class TrainedTurns:
    """The turns of Osler's own training data: the prompts of the solver's calls."""

    solves_every_step = False

    def plan_turn(self, question: Question) -> RenderedPrompt:
        return plan_prompt(DECOMPOSE, question)

    def step_turn(
        self, step: PlanStep, answers: Mapping[int, str], language: Language
    ) -> RenderedPrompt:
        return attempt_prompt(f"\n{step_words(step, answers)}", language)

    def final_turn(
        self,
        question: Question,
        plan: LogicalPlan,
        answers: Sequence[SubAnswer],
        hits: Sequence[Hit],
    ) -> RenderedPrompt:
        return answer_prompt(question, answers, hits)

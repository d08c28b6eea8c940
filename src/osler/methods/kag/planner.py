"""Breadth decomposition: a question → a plan of logical forms (KAG-Thinker §3.1.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from osler.errors import MalformedOutput
from osler.llm.core.grammar import Grammar
from osler.llm.core.speaker import Speaker
from osler.methods.kag.dependencies import find_dependencies
from osler.methods.kag.grammar import plan_grammar
from osler.methods.kag.logical_forms import LogicalPlan
from osler.methods.kag.notation import render_form
from osler.methods.kag.parse import read_plan
from osler.prompts import RenderedPrompt, render_prompt
from osler.trace import FormNode, FormsPlanned, Run
from osler.types import Question

DECOMPOSE = "kag/decompose"
"""The prompt of Table 1."""
Origin = Literal["planner", "user", "fallback", "formula"]


class FormPlanner(Protocol):
    async def decompose(self, question: Question, run: Run) -> LogicalPlan:
        """Plans the question and emits the plan. Never raises for an unreadable reply."""


@dataclass(frozen=True)
class Decomposer:
    """Asks for a plan; falls back to a single retrieval when none can be read."""

    speaker: Speaker
    steps: int = 6
    """Most steps under a grammar."""
    longest: int = 60
    """Characters of a name under a grammar."""

    async def decompose(self, question: Question, run: Run) -> LogicalPlan:
        grammar = plan_grammar(steps=self.steps, longest=self.longest)
        return await ask_plan(DECOMPOSE, question, self.speaker, grammar, run)


def plan_prompt(template: str, question: Question) -> RenderedPrompt:
    return render_prompt(
        template,
        question.language,
        question=question.text,
        options=question.lettered,
    )


async def ask_plan(
    template: str,
    question: Question,
    speaker: Speaker,
    grammar: Grammar,
    run: Run,
    *,
    mend: Callable[[LogicalPlan], LogicalPlan] = lambda plan: plan,
) -> LogicalPlan:
    """Asks for a plan with the prompt `template` and emits it, as `mend` changes it; when none can
    be read, the plan is a single retrieval of the question."""
    prompt = plan_prompt(template, question)
    try:
        plan = await speaker.ask(prompt, lambda reply: read_plan(reply.text), run, grammar=grammar)
    except MalformedOutput as error:
        plan = LogicalPlan.single_retrieval(question.text)
        run.emit(plan_event(plan, "fallback", (f"no plan could be read: {error.message}",)))
        return plan
    plan = mend(plan)
    run.emit(plan_event(plan, "planner"))
    return plan


@dataclass(frozen=True)
class GivenForms:
    """A plan given by the user, or a single retrieval: the ablation without decomposition."""

    plan: LogicalPlan | None = None

    async def decompose(self, question: Question, run: Run) -> LogicalPlan:
        plan = self.plan or LogicalPlan.single_retrieval(question.text)
        run.emit(plan_event(plan, "user"))
        return plan


def plan_event(plan: LogicalPlan, origin: Origin, warnings: tuple[str, ...] = ()) -> FormsPlanned:
    """The plan as an event, with its defects as warnings."""
    graph = find_dependencies(plan)
    nodes = tuple(
        FormNode(
            step.n,
            type(step.action).__name__,
            step.question,
            render_form(step.action),
            tuple(sorted(graph.waits[step.n])),
        )
        for step in plan.steps
    )
    return FormsPlanned(nodes, (*warnings, *graph.problems), origin)

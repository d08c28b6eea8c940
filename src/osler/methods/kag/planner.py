"""Breadth decomposition: a question → a plan of logical forms (KAG-Thinker §3.1.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from osler.errors import MalformedOutput
from osler.llm.core.grammar import Grammar
from osler.methods.kag.dependencies import find_dependencies
from osler.methods.kag.grammar import plan_grammar
from osler.methods.kag.logical_forms import LogicalPlan
from osler.methods.kag.notation import render_form
from osler.methods.kag.parse import read_plan
from osler.methods.kag.speaker import Speaker
from osler.prompts import render_prompt
from osler.trace import FormNode, FormsPlanned, Run
from osler.types import Question

Origin = Literal["planner", "user", "fallback"]


class FormPlanner(Protocol):
    async def decompose(self, question: Question, run: Run) -> LogicalPlan:
        """The plan, told in the run. Never raises for a reply that is none."""
        ...


@dataclass(frozen=True)
class Decomposer:
    """Asks for a plan; without one that can be read, a single retrieval is the plan."""

    speaker: Speaker
    steps: int = 6
    """Most steps under a grammar."""
    longest: int = 60
    """Characters of a name under a grammar."""

    async def decompose(self, question: Question, run: Run) -> LogicalPlan:
        grammar = plan_grammar(steps=self.steps, longest=self.longest)
        return await ask_plan("kag/decompose", question, self.speaker, grammar, run)


async def ask_plan(
    template: str, question: Question, speaker: Speaker, grammar: Grammar, run: Run
) -> LogicalPlan:
    """The plan that the model writes to a prompt, told in the run; where none can be read, a
    single retrieval of the question."""
    prompt = render_prompt(
        template,
        question.language,
        question=question.text,
        options=list(zip(question.letters, question.options, strict=True)),
    )
    try:
        plan = await speaker.ask(prompt, lambda reply: read_plan(reply.text), run, grammar=grammar)
    except MalformedOutput as error:
        plan = LogicalPlan.single_retrieval(question.text)
        run.emit(plan_event(plan, "fallback", (f"no plan could be read: {error.message}",)))
        return plan
    run.emit(plan_event(plan, "planner"))
    return plan


@dataclass(frozen=True)
class GivenForms:
    """A plan that somebody wrote, or a single retrieval: the ablation without decomposition."""

    plan: LogicalPlan | None = None

    async def decompose(self, question: Question, run: Run) -> LogicalPlan:
        plan = self.plan or LogicalPlan.single_retrieval(question.text)
        run.emit(plan_event(plan, "user"))
        return plan


def plan_event(plan: LogicalPlan, origin: Origin, warnings: tuple[str, ...] = ()) -> FormsPlanned:
    """The plan as an event, with what is wrong with it."""
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

"""Breadth decomposition: a question → a plan of logical forms (KAG-Thinker §3.1.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from osler.errors import MalformedOutput
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Message
from osler.methods.kag.logical_forms import LogicalPlan, SubAnswer, render_form
from osler.methods.kag.parse import plan_grammar, read_plan_tolerantly
from osler.methods.kag.variables import find_dependencies
from osler.prompts import RenderedPrompt, render_prompt
from osler.trace import FormNode, FormSolved, FormsPlanned, Run
from osler.types import Language, Question

Origin = Literal["planner", "user", "fallback", "formula"]


class FormPlanner(Protocol):
    async def decompose(self, question: Question, run: Run) -> LogicalPlan:
        """Plans the question and emits the plan. Never raises for an unreadable reply."""


@dataclass(frozen=True)
class Decomposer:
    """Asks for a plan; falls back to a single retrieval when none can be read."""

    speaker: Speaker
    example: bool = False
    """Whether the paper's worked example stands before the question: for untrained models."""

    async def decompose(self, question: Question, run: Run) -> LogicalPlan:
        shown = example_turns(question.language) if self.example else ()
        try:
            reading = await self.speaker.ask(
                plan_prompt(question),
                lambda reply: read_plan_tolerantly(reply.text),
                run,
                grammar=plan_grammar(),
                shown=shown,
            )
        except MalformedOutput as error:
            plan = LogicalPlan.single_retrieval(question.text)
            run.emit(plan_event(plan, "fallback", (f"no plan could be read: {error.message}",)))
            return plan
        run.emit(plan_event(reading.plan, "planner", reading.mended))
        return reading.plan


EXAMPLES: Mapping[Language, tuple[str, str]] = {
    "en": (
        "Which film has the director who died first, Hit Parade Of 1947 or Khiladi 420?",
        "<answer>Step1: Who is the director of Hit Parade Of 1947?\n"
        "Action1: Retrieval(s=s1:film['Hit Parade Of 1947'], p=p1:director, o=o1:director)\n"
        "Step2: When did #1 die?\n"
        "Action2: Retrieval(s=o1, p=p2:deathtime, o=o2:deathtime)\n"
        "Step3: Who is the director of Khiladi 420?\n"
        "Action3: Retrieval(s=s2:film['Khiladi 420'], p=p3:director, o=o3:director)\n"
        "Step4: When did #3 die?\n"
        "Action4: Retrieval(s=o3, p=p4:deathtime, o=o4:deathtime)\n"
        "Step5: Which film was directed by the director who died first according to #2 and #4?\n"
        "Action5: Deduce(op=choice, content=['o2','o4'], target='which film was directed by the"
        " director who died first according to o2 and o4')->o5</answer>",
    ),
    "zh": (
        "《Hit Parade Of 1947》和《Khiladi 420》，哪部电影的导演先去世？",
        "<answer>Step1: 《Hit Parade Of 1947》的导演是谁？\n"
        "Action1: Retrieval(s=s1:电影['Hit Parade Of 1947'], p=p1:导演, o=o1:导演)\n"
        "Step2: #1 何时去世？\n"
        "Action2: Retrieval(s=o1, p=p2:去世时间, o=o2:去世时间)\n"
        "Step3: 《Khiladi 420》的导演是谁？\n"
        "Action3: Retrieval(s=s2:电影['Khiladi 420'], p=p3:导演, o=o3:导演)\n"
        "Step4: #3 何时去世？\n"
        "Action4: Retrieval(s=o3, p=p4:去世时间, o=o4:去世时间)\n"
        "Step5: 根据 #2 和 #4，哪部电影的导演先去世？\n"
        "Action5: Deduce(op=choice, content=['o2','o4'], target='根据o2和o4，哪部电影的导演先去世')"
        "->o5</answer>",
    ),
}
"""The worked example of the paper (§3.1.1), question and plan."""


def example_turns(language: Language) -> list[Message]:
    """The worked example as conversation turns."""
    asked, plan = EXAMPLES[language]
    prompt = plan_prompt(Question("example", asked, language=language))
    return [Message("user", prompt.text), Message("assistant", plan)]


def plan_prompt(question: Question) -> RenderedPrompt:
    """The prompt of Table 1."""
    return render_prompt(
        "kag/decompose", question.language, question=question.text, options=question.lettered
    )


@dataclass(frozen=True)
class GivenForms:
    """A plan given by the user, or a single retrieval: the ablation without decomposition."""

    plan: LogicalPlan | None = None

    async def decompose(self, question: Question, run: Run) -> LogicalPlan:
        plan = self.plan or LogicalPlan.single_retrieval(question.text)
        run.emit(plan_event(plan, "user"))
        return plan


def answer_event(answer: SubAnswer) -> FormSolved:
    """What came of a step, as an event."""
    return FormSolved(
        answer.n,
        "done" if answer.text else "failed",
        answer.text,
        answer.own,
        answer.confidence,
        tuple(hit.passage.id for hit in answer.hits),
    )


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

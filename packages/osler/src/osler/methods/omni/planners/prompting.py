"""Prompting: a model is asked for the plan (Omni-RAG App. D.3, E.7); better ones by E.8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from osler.errors import MalformedOutput
from osler.llm.core.ask import Speaker
from osler.llm.core.base import LanguageModel, Message, Sampling
from osler.methods.omni.plan import (
    MOST,
    PlanReading,
    SourcePlan,
    expect_source_plan,
    render_source_plan,
    source_plan_grammar,
)
from osler.methods.omni.planners import Proposal, SourceDescription, plan_fallback, source_variables
from osler.prompts import RenderedPrompt, render_question_prompt
from osler.trace import Run
from osler.types import Question


@dataclass(frozen=True, slots=True)
class PlanAttempt:
    """A plan that was tried, with its feedback."""

    plan: SourcePlan
    score: int
    """0 to 5."""
    suggestion: str


def plan_prompt(
    question: Question,
    offers: tuple[SourceDescription, ...],
    at_most: int = MOST,
) -> RenderedPrompt:
    """Prompt E.7, in planning as in training records."""
    sources = source_variables(offers, question.language)
    return render_question_prompt("omni/plan", question, sources=sources, at_most=at_most)


@dataclass(frozen=True)
class Proposer:
    """Asks for a plan, or for a better one given feedback on earlier ones."""

    speaker: Speaker
    offers: tuple[SourceDescription, ...]
    at_most: int = MOST

    @property
    def source_names(self) -> tuple[str, ...]:
        return tuple(offer.name for offer in self.offers)

    def for_source(self, source: str) -> Proposer:
        """A copy that plans for one of its sources alone."""
        return replace(self, offers=tuple(o for o in self.offers if o.name == source))

    async def propose(
        self, question: Question, run: Run, tried: Sequence[PlanAttempt] = ()
    ) -> PlanReading:
        """Proposes a plan in view of the attempts `tried`.

        Raises `MalformedOutput` for replies without any source's tag, and `BudgetExceeded`.


        Without sources the model is not asked.
        """
        if not self.offers:
            return PlanReading(SourcePlan())
        return await self.speaker.ask(
            self._render_prompt(question, tried),
            lambda reply: expect_source_plan(
                reply.text, sources=self.source_names, at_most=self.at_most
            ),
            run,
            grammar=source_plan_grammar(self.source_names, at_most=self.at_most),
        )

    def _render_prompt(self, question: Question, tried: Sequence[PlanAttempt]) -> RenderedPrompt:
        if not tried:
            return plan_prompt(question, self.offers, self.at_most)
        return render_question_prompt(
            "omni/improve",
            question,
            sources=source_variables(self.offers, question.language),
            at_most=self.at_most,
            feedback=[
                {
                    "plan": render_source_plan(attempt.plan, self.source_names),
                    "score": attempt.score,
                    "suggestion": attempt.suggestion,
                }
                for attempt in tried
            ],
        )


@dataclass(frozen=True)
class Prompting:
    proposer: Proposer

    async def plan(self, question: Question, run: Run) -> Proposal:
        try:
            reading = await self.proposer.propose(question, run)
        except MalformedOutput as error:
            return plan_fallback(question, self.proposer.offers, error.message, run)
        return Proposal(reading.plan, dropped=reading.dropped)


SYSTEM = "You are a helpful assistant."
"""The system line of the released training records."""
# Not configurable: another temperature would be another method.
SAMPLING = Sampling(temperature=0.0, max_tokens=1000, top=0)
"""App. D.4 and the released code: greedy, 1,000 tokens."""


def trained_planner(
    model: LanguageModel,
    offers: tuple[SourceDescription, ...],
    *,
    at_most: int = MOST,
    seed: int = 0,
) -> Prompting:
    """A model trained to plan (§4.2), or another in its place: full weights, an adapter, a server.

    It is prompted as it was trained: the paper's record is a system line, the prompt E.7 and the
    plan, decoded greedily (App. D.4), and not constrained by a grammar.
    """
    speaker = Speaker(model, "planner", replace(SAMPLING, seed=seed), system=SYSTEM)
    return Prompting(Proposer(speaker, offers, at_most))


def planner_messages(
    question: Question,
    offers: tuple[SourceDescription, ...],
    at_most: int = MOST,
) -> list[Message]:
    """The messages before the plan, in training records and in `trained_planner` alike."""
    prompt = plan_prompt(question, offers, at_most)
    return [Message("system", SYSTEM), Message("user", prompt.text)]

"""Prompting: a model is asked for the plan (Omni-RAG App. D.3, E.7); better ones by E.8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from osler.errors import MalformedOutput
from osler.llm.core.speaker import Speaker
from osler.methods.omni.describe import Offer, told
from osler.methods.omni.plan import MOST, Reading, SourcePlan, expect, grammar, render
from osler.methods.omni.planners.base import Proposal, fallback, lettered
from osler.prompts import Rendered
from osler.prompts import render as rendered
from osler.trace import Run
from osler.types import Question

Form = Literal["full", "brief"]
"""full: E.7, with what each source is for and the format; brief: the question and the names of the
sources, which is all that a trained planner needs, a quarter of the tokens."""
FORMS: tuple[Form, ...] = get_args(Form)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A plan that was tried, and what was said of it."""

    plan: SourcePlan
    score: int
    """0 to 5."""
    suggestion: str


def plan_prompt(
    question: Question, offers: tuple[Offer, ...], at_most: int = MOST, form: Form = "full"
) -> Rendered:
    """E.7, or its brief form: what a planner is asked, and what it was trained on."""
    language, sources = question.language, told(offers, question.language)
    given = {"question": question.text, "options": lettered(question), "sources": sources}
    if form == "brief":
        return rendered("omni/brief", language, **given)
    return rendered("omni/plan", language, **given, at_most=at_most)


@dataclass(frozen=True)
class Proposer:
    """Asks for a plan; with what was said of earlier ones, for a better one."""

    speaker: Speaker
    offers: tuple[Offer, ...]
    at_most: int = MOST
    form: Form = "full"
    asking: bool = False
    """Whether a plan under a grammar must have a query; the paper's may have none."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(offer.name for offer in self.offers)

    def only(self, source: str) -> Proposer:
        """The same for one of its sources alone."""
        return replace(self, offers=tuple(o for o in self.offers if o.name == source))

    async def propose(self, question: Question, run: Run, tried: Sequence[Attempt] = ()) -> Reading:
        """Raises `MalformedOutput` for replies without any source's tag, and `Spent`.

        Where nothing is on offer, nobody is asked.
        """
        if not self.offers:
            return Reading(SourcePlan())
        return await self.speaker.ask(
            self._prompt(question, tried),
            lambda reply: expect(reply.text, sources=self.names, at_most=self.at_most),
            run,
            grammar=grammar(self.names, at_most=self.at_most, asking=self.asking),
        )

    def _prompt(self, question: Question, tried: Sequence[Attempt]) -> Rendered:
        if not tried:
            return plan_prompt(question, self.offers, self.at_most, self.form)
        language, sources = question.language, told(self.offers, question.language)
        asked, options = question.text, lettered(question)
        return rendered(
            "omni/improve",
            language,
            question=asked,
            options=options,
            sources=sources,
            at_most=self.at_most,
            feedback=[
                {
                    "plan": render(attempt.plan, self.names),
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
            return fallback(question, self.proposer.offers, error.message, run)
        return Proposal(reading.plan, dropped=reading.dropped)

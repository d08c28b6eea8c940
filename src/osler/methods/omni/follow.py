"""Further plans, where the first did not find the answer: ours, the paper's planner asks once.

A question of several steps cannot be planned whole: what its second step asks for is named by the
documents of the first. So the reader, shown what was found, either answers or plans what is still
missing, in one reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.llm.core.base import Completion
from osler.llm.core.speaker import Speaker
from osler.methods.omni.describe import SourceDescription, source_variables
from osler.methods.omni.plan import MOST, PlanReading, Query, SourcePlan, expect_source_plan
from osler.methods.omni.planners import Proposal
from osler.prompts import render_question_prompt
from osler.retrieve import LookupResult
from osler.trace import BudgetExceeded, Noted, Run
from osler.types import Hit, Question, numbered

Found = Mapping[Query, LookupResult]


@dataclass(frozen=True)
class FollowUp:
    """Asks the reader for its answer, or for another plan."""

    speaker: Speaker
    offers: tuple[SourceDescription, ...]
    rounds: int
    """Further plans, at most."""
    at_most: int = MOST
    """Queries for a source in one plan."""

    async def read_or_plan(
        self, question: Question, hits: Sequence[Hit], found: Found, run: Run
    ) -> str | Proposal:
        """The draft of an answer, or a plan that asks what was not asked; "" where neither can be
        had. Never raises `BudgetExceeded`."""
        prompt = render_question_prompt(
            "omni/follow",
            question,
            sources=source_variables(self.offers, question.language),
            at_most=self.at_most,
            documents=numbered(hits),
            asked=[query.wire for query in found],
        )
        try:
            said = await self.speaker.ask(prompt, self._read_reply, run)
        except MalformedOutput as error:  # an empty reply
            run.emit(Noted(f"neither an answer nor a plan could be read: {error.message}"))
            return ""
        except BudgetExceeded:
            return ""
        if isinstance(said, str):
            return said
        fresh = [query for query in said.plan.queries if query not in found]
        return Proposal(SourcePlan.of(fresh), dropped=said.dropped) if fresh else ""

    def _read_reply(self, reply: Completion) -> str | PlanReading:
        """A reply with a query is a plan, any other an answer."""
        names = tuple(offer.name for offer in self.offers)
        try:
            reading = expect_source_plan(reply.text, sources=names, at_most=self.at_most)
        except MalformedOutput:
            return reply.text
        return reading if reading.plan.queries else reply.text

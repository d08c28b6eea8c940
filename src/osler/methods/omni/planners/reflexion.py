"""Reflexion: plan, search, be judged, plan better (Omni-RAG App. D.3, E.8, E.9)."""

from __future__ import annotations

from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.methods.omni.feedback import BEST, Evaluator
from osler.methods.omni.plan import Dropped, Query, SourcePlan
from osler.methods.omni.planners.base import Proposal, fallback
from osler.methods.omni.planners.prompting import Attempt, Proposer
from osler.methods.omni.retriever import PlannedRetriever
from osler.retrieve.lookup import Found
from osler.trace import Noted, PlanScored, Run, Spent
from osler.types import Question

ROUNDS = 8
"""App. D.3."""


@dataclass(frozen=True)
class Reflexion:
    """One path of plans for all sources. The best one is given; of equals the later."""

    proposer: Proposer
    retriever: PlannedRetriever
    evaluator: Evaluator
    rounds: int = ROUNDS

    async def plan(self, question: Question, run: Run) -> Proposal:
        tried: list[Attempt] = []
        found: dict[Query, Found] = {}
        dropped: dict[SourcePlan, tuple[Dropped, ...]] = {}
        try:
            for number in range(1, self.rounds + 1):
                reading = await self.proposer.propose(
                    question, run, tried
                )  # 1: all feedback so far
                dropped[reading.plan] = reading.dropped
                results = await self.retriever.gather(reading.plan, run, known=found)
                found |= results
                said = await self.evaluator.evaluate(  # 2
                    question, results, self.proposer.offers, run
                )
                tried.append(Attempt(reading.plan, said.score, said.suggestion))
                run.emit(
                    PlanScored(
                        "", number, number - 1, reading.plan.planned, said.score, said.suggestion
                    )
                )
                if said.score == BEST:
                    break
        except MalformedOutput as error:
            if not tried:
                return fallback(question, self.proposer.offers, error.message, run)
            run.emit(Noted(f"no better plan could be read: {error.message}"))
        except Spent as spent:
            if not tried:
                raise
            run.emit(Noted(f"planning was cut short: {spent}"))
        best = max(reversed(tried), key=lambda attempt: attempt.score)
        return Proposal(best.plan, dropped=dropped[best.plan], found=found)

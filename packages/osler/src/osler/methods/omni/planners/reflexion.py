"""Reflexion: plan, search, be judged, plan better (Omni-RAG App. D.3, E.8, E.9)."""

from __future__ import annotations

from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.methods.omni.feedback import BEST, Evaluator
from osler.methods.omni.plan import DroppedQuery, Query, SourcePlan
from osler.methods.omni.planners import Proposal, plan_fallback
from osler.methods.omni.planners.prompting import PlanAttempt, Proposer
from osler.methods.omni.retriever import PlannedRetriever
from osler.retrieve import LookupResult
from osler.trace import BudgetExceeded, Noted, PlanScored, Run
from osler.types import Question

ROUNDS = 8
"""App. D.3."""


@dataclass(frozen=True)
class Reflexion:
    """One path of plans for all sources; the best one wins, of equals the later."""

    proposer: Proposer
    retriever: PlannedRetriever
    evaluator: Evaluator
    rounds: int = ROUNDS

    async def plan(self, question: Question, run: Run) -> Proposal:
        tried: list[PlanAttempt] = []
        found: dict[Query, LookupResult] = {}
        dropped: dict[SourcePlan, tuple[DroppedQuery, ...]] = {}
        try:
            for number in range(1, self.rounds + 1):
                reading = await self.proposer.propose(
                    question, run, tried
                )  # 1: all feedback so far
                dropped[reading.plan] = reading.dropped
                results = await self.retriever.gather_results(reading.plan, run, known=found)
                found |= results
                said = await self.evaluator.evaluate_documents(  # 2
                    question, results, self.proposer.offers, run
                )
                tried.append(PlanAttempt(reading.plan, said.score, said.suggestion))
                run.emit(
                    PlanScored(
                        "",
                        number,
                        number - 1,
                        reading.plan.planned_queries,
                        said.score,
                        said.suggestion,
                    )
                )
                if said.score == BEST or said.unread:
                    break
        except MalformedOutput as error:
            if not tried:
                return plan_fallback(question, self.proposer.offers, error.message, run)
            run.emit(Noted(f"no better plan could be read: {error.message}"))
        except BudgetExceeded as spent:
            if not tried:
                raise
            run.emit(Noted(f"planning was cut short: {spent}"))
        # Of equal scores the later plan: it has seen more feedback.
        best = max(reversed(tried), key=lambda attempt: attempt.score)
        return Proposal(best.plan, dropped=dropped[best.plan], found=found)

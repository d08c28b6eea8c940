"""Plans without planning: the question itself to every source, or a plan given by the user.

Original Question is a baseline of Omni-RAG (App. D.3, after MedRAG).
"""

from __future__ import annotations

from dataclasses import dataclass

from osler.methods.omni.describe import SourceDescription
from osler.methods.omni.dossier import SavedPlan
from osler.methods.omni.plan import SourcePlan
from osler.methods.omni.planners import Proposal, as_it_stands
from osler.methods.omni.planners.terms import TermExtractor
from osler.trace import BudgetExceeded, Noted, Run
from osler.types import Question


@dataclass(frozen=True)
class OriginalQuestion:
    """Sends the question itself to every source; costs one model call, only with a graph."""

    terms: TermExtractor
    offers: tuple[SourceDescription, ...]

    async def plan(self, question: Question, run: Run) -> Proposal:
        queries = as_it_stands(question, self.offers)
        if any(offer.is_graph for offer in self.offers):
            try:
                queries += await self.terms.extract_queries(question, run)
            except BudgetExceeded as spent:
                run.emit(Noted(f"the graph is not asked: {spent}"))
        return Proposal(SourcePlan.of(queries), "fixed")


@dataclass(frozen=True)
class GivenPlan:
    """Runs a plan as it is, with any number of queries per source; stored results are reused."""

    saved: SavedPlan

    async def plan(self, question: Question, run: Run) -> Proposal:
        reading = self.saved.plan_reading
        return Proposal(reading.plan, "user", reading.dropped, self.saved.results_by_query)

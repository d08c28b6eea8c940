"""A plan that somebody wrote, or that was stored: it is run as it stands."""

from __future__ import annotations

from dataclasses import dataclass

from osler.methods.omni.dossier import SavedPlan
from osler.methods.omni.planners.base import Proposal
from osler.trace import Run
from osler.types import Question


@dataclass(frozen=True)
class GivenPlan:
    """Any number of queries a source; what the dossier holds of them is not searched again."""

    dossier: SavedPlan

    async def plan(self, question: Question, run: Run) -> Proposal:
        reading = self.dossier.plan_reading
        return Proposal(reading.plan, "user", reading.dropped, self.dossier.results_by_query)

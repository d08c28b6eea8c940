"""The planners of Omni-RAG: one method, one module (§5.2, App. D.3).

| Module | Planner | Model calls |
|---|---|---|
| `fixed` | Original Question; a plan given by the user | one with a graph, else none; none |
| `query2doc` | Query2Doc: a generated passage as the query | one per source |
| `prompting` | Prompting: a model is asked for the plan | one |
| `reflexion` | Reflexion: plan, search, feedback, plan again | two per round |
| `serts` | SeRTS: a tree of plans per source | two per node |
| `trained` | a model trained to plan (§4.2) | one |

`terms` extracts the terms of graph queries. Here are the interface of planners and what they share;
their names in settings are `osler.methods.omni.plan.PlannerName`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from osler.methods.omni.describe import SourceDescription
from osler.methods.omni.plan import DroppedQuery, Query, SourcePlan
from osler.retrieve import LookupResult
from osler.trace import Noted, Run
from osler.types import Question

Origin = Literal["planner", "user", "fixed"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan with the results known already."""

    plan: SourcePlan
    origin: Origin = "planner"
    dropped: tuple[DroppedQuery, ...] = ()
    """Text of the replies that is not in the plan."""
    found: Mapping[Query, LookupResult] = field(default_factory=dict)
    """Results of searches made while planning; they are not repeated."""


class SourcePlanner(Protocol):
    async def plan(self, question: Question, run: Run) -> Proposal:
        """Plans for the available sources. Never raises for an unreadable reply.

        Raises `BudgetExceeded` when the budget ends before there is any plan.
        """


def queries_of(source: str, texts: Iterable[str], term: str = "") -> list[Query]:
    """Queries from those texts that the wire form can express."""
    made = []
    for text in texts:
        try:
            made.append(Query.of(source, text, term))
        except ValueError:  # nothing is left to ask
            continue
    return made


def as_it_stands(question: Question, offers: Iterable[SourceDescription]) -> list[Query]:
    """The question itself as a query to every text source."""
    asked = [offer for offer in offers if not offer.is_graph]
    return [query for offer in asked for query in queries_of(offer.name, [question.with_options])]


def plan_fallback(
    question: Question, offers: Iterable[SourceDescription], why: str, run: Run
) -> Proposal:
    """The fallback without a readable plan: the question itself to every text source."""
    run.emit(Noted(f"no plan could be read, the question itself is searched: {why}"))
    return Proposal(SourcePlan.of(as_it_stands(question, offers)), "fixed")

"""The planners of Omni-RAG (§5.2, App. D.3), and the sources that they may query (App. E.1).

| Module | Planner | Model calls |
|---|---|---|
| `single` | Original Question; a plan given by the user | one with a graph, else none; none |
| `single` | Query2Doc: a generated passage as the query | one per source |
| `prompting` | Prompting: a model is asked for the plan; one trained to plan (§4.2) | one |
| `feedback` | Reflexion: plan, search, feedback, plan again | two per round |
| `feedback` | SeRTS: a tree of plans per source | two per node |

Here are the interface of planners and what they share; their names in settings are
`osler.methods.omni.plan.PlannerName`. Only available sources are described. The paper's five have
its own wording, which planners trained on its records know; a user's own source is described by the
titles it contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from osler.methods.omni.plan import DroppedQuery, Query, SourcePlan
from osler.retrieve import LookupResult
from osler.sources.catalogue import GRAPH, find_source
from osler.trace import Noted, Run
from osler.types import Language, Question

# Characters of a title in a description.
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class SourceDescription:
    """A source that may be queried."""

    name: str
    titles: tuple[str, ...] = ()
    """Titles of some of its documents, which describe a source unknown to the paper."""

    @property
    def is_graph(self) -> bool:
        """Whether its queries have the form `term , query`."""
        return self.name == GRAPH

    def describe_in(self, language: Language) -> str:
        if known := find_source(self.name):
            return known.description[language]
        titles = [title[:_LONGEST] for title in self.titles]
        if language == "zh":
            named = f"，其中有：{'、'.join(titles)}" if titles else ""
            return f"该接口提供用户自建资料集“{self.name}”{named}。"
        quoted = ", ".join(f'"{title}"' for title in titles)
        named = f", with documents such as {quoted}" if titles else ""
        return f'The API provides access to the collection "{self.name}" of the user{named}.'


def source_variables(
    offers: tuple[SourceDescription, ...], language: Language
) -> list[dict[str, object]]:
    """The descriptions as prompt variables."""
    return [
        {"name": offer.name, "description": offer.describe_in(language), "graph": offer.is_graph}
        for offer in offers
    ]


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

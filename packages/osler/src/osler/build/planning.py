"""Omni-RAG, as the settings ask for it, with every planner by its name in settings and requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from osler.build import Parts
from osler.build.composers import may_write
from osler.build.strategy_build import StrategyBuild
from osler.methods.omni import solver as omni
from osler.methods.omni.dossier import SavedPlan
from osler.methods.omni.plan import PlannerName
from osler.methods.omni.planners import SourcePlanner
from osler.methods.omni.planners.feedback import DocumentJudge, Reflexion, SeRTS
from osler.methods.omni.planners.single import (
    GivenPlan,
    OriginalQuestion,
    Prompting,
    Proposer,
    Query2Doc,
    TermExtractor,
    trained_planner,
)
from osler.methods.omni.retriever import PlannedRetriever
from osler.methods.omni.solver import FollowUp, Reader
from osler.retrieve.naming import names_in
from osler.settings import OmniRagSettings, Settings


def planner_and_reader(
    build: StrategyBuild, chosen: OmniRagSettings, plan: SavedPlan | None = None
) -> omni.OmniRag:
    """The planner plans, unless there is a plan; the judge judges plans; the reader answers."""
    parts = build.parts
    names = (*parts.sources, *(plan.sources if plan else ()))
    found = source_retriever(parts, names, chosen.k)
    planner = GivenPlan(plan) if plan else source_planner(build, chosen, found)
    reader = Reader(build.reader, build.composer, build.sampling)
    order = parts.order if chosen.order == "fused" else None
    return omni.OmniRag(planner, found, reader, chosen.per_source, order, _follow_up(build, chosen))


def _follow_up(build: StrategyBuild, chosen: OmniRagSettings) -> FollowUp | None:
    """`None` where none is asked for, and where the reader's model words no answers."""
    if not chosen.follow or not build.may_write("reader"):
        return None
    speaker = build.make_speaker("reader")
    return FollowUp(speaker, build.parts.offers, chosen.follow, chosen.queries)


def source_retriever(parts: Parts, names: Iterable[str], k: int) -> PlannedRetriever:
    """Builds the retriever that sends each planned query to its source."""
    return PlannedRetriever(
        {
            name: parts.retriever(f"omni:{name}", (name,))
            for name in dict.fromkeys(names)
            if name in parts.sources
        },
        k,
    )


def planner_name(settings: Settings, parts: Parts) -> str:
    """The method and the model that plans, as a stored plan says it; empty without a planner."""
    chosen = settings.strategy
    if not isinstance(chosen, OmniRagSettings):
        return ""
    return f"{planning_method(settings, chosen)}, {parts.model_for('planner').name}"


def planning_method(settings: Settings, chosen: OmniRagSettings) -> PlannerName:
    """The planning method, with `auto` resolved."""
    if chosen.planner != "auto":
        return chosen.planner
    return "prompting" if may_write(settings, "planner") else "original"


def source_planner(
    build: StrategyBuild, chosen: OmniRagSettings, found: PlannedRetriever
) -> SourcePlanner:
    """Makes the planner that the settings name, over the sources that `found` searches."""
    speaker, offers = build.make_speaker("planner"), build.parts.offers
    # The packaged model, free to write any terms, wrote some that the question does not hold.
    terms = TermExtractor(speaker, among=None if build.may_write("planner") else names_in)
    proposer = Proposer(speaker, offers, chosen.queries)
    match planning_method(build.settings, chosen):
        case "original":
            return OriginalQuestion(terms, offers)
        case "query2doc":
            return Query2Doc(speaker, terms, offers)
        case "prompting":
            return Prompting(proposer)
        case "reflexion":
            judge = DocumentJudge(build.make_speaker("judge"))
            return Reflexion(proposer, found, judge, chosen.rounds)
        case "serts":
            judge = DocumentJudge(build.make_speaker("judge"))
            return SeRTS(proposer, found, judge, chosen.rounds)
        case "trained":
            seed = speaker.sampling.seed
            return trained_planner(speaker.model, offers, at_most=chosen.queries, seed=seed)
        case _ as never:
            assert_never(never)

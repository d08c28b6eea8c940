"""Omni-RAG, as the settings ask for it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from osler.answer import Composer
from osler.app.config import OmniRagSettings, Role, Settings
from osler.app.wiring import Parts
from osler.app.wiring.composers import may_write
from osler.llm.core.base import Sampling
from osler.llm.core.speaker import Speaker
from osler.methods.omni import solver as omni
from osler.methods.omni.dossier import SavedPlan
from osler.methods.omni.planners import SourcePlanner
from osler.methods.omni.planners.fixed import GivenPlan
from osler.methods.omni.planners.make import PlannerName, PlannerParts, make_planner
from osler.methods.omni.planners.terms import TermExtractor
from osler.methods.omni.reader import Reader
from osler.methods.omni.retriever import PlannedRetriever
from osler.retrieve.names import names_in


def planner_and_reader(
    settings: Settings,
    chosen: OmniRagSettings,
    parts: Parts,
    compose: Composer,
    sampling: Sampling,
    plan: SavedPlan | None = None,
) -> omni.OmniRag:
    """The planner plans, unless there is a plan; the judge judges plans; the reader answers."""
    names = (*parts.sources, *(plan.sources if plan else ()))
    found = source_retriever(parts, names, chosen.k)
    planner = GivenPlan(plan) if plan else source_planner(settings, chosen, parts, found, sampling)
    reader = Reader(parts.model_for("reader"), compose, sampling)
    order = parts.order if chosen.order == "fused" else None
    return omni.OmniRag(planner, found, reader, chosen.per_source, order)


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
    settings: Settings,
    chosen: OmniRagSettings,
    parts: Parts,
    found: PlannedRetriever,
    sampling: Sampling,
) -> SourcePlanner:
    """Makes the planner that the settings name, over the sources that `found` searches."""
    speaker = _make_speaker(parts, "planner", sampling)
    # The packaged model, free to write any terms, wrote some that the question does not hold.
    terms = TermExtractor(speaker, among=None if may_write(settings, "planner") else names_in)
    judge = partial(_make_speaker, parts, "judge", sampling)
    made_of = PlannerParts(speaker, judge, terms, parts.offers, found)
    return make_planner(planning_method(settings, chosen), chosen, made_of)


def _make_speaker(parts: Parts, role: Role, sampling: Sampling) -> Speaker:
    ready = parts.models[role]
    return Speaker(ready.model, role, sampling, ready.constrains)

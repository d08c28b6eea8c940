"""Omni-RAG, as the settings ask for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from osler.answer.base import Composer
from osler.app.config import OmniRag, Role, Settings
from osler.app.wiring.composers import writes
from osler.app.wiring.parts import Parts
from osler.llm.core.base import Sampling
from osler.llm.core.speaker import Speaker
from osler.methods.omni import solver as omni
from osler.methods.omni.dossier import Dossier
from osler.methods.omni.feedback import Judge
from osler.methods.omni.planners.base import Planner
from osler.methods.omni.planners.given import GivenPlan
from osler.methods.omni.planners.original import OriginalQuestion
from osler.methods.omni.planners.prompting import Prompting, Proposer
from osler.methods.omni.planners.query2doc import Query2Doc
from osler.methods.omni.planners.reflexion import Reflexion
from osler.methods.omni.planners.serts import SeRTS
from osler.methods.omni.planners.terms import TermExtractor
from osler.methods.omni.planners.trained import trained
from osler.methods.omni.reader import Reader
from osler.methods.omni.retriever import PlannedRetriever
from osler.retrieve.names import names_in


def planner_and_reader(
    settings: Settings,
    chosen: OmniRag,
    parts: Parts,
    compose: Composer,
    sampling: Sampling,
    plan: Dossier | None = None,
) -> omni.OmniRag:
    """The planner plans, unless there is a plan; the judge judges plans; the reader answers."""
    names = (*parts.sources, *(plan.sources if plan else ()))
    found = planned_retriever(parts, names, chosen.k)
    planner = GivenPlan(plan) if plan else source_planner(settings, chosen, parts, found, sampling)
    reader = Reader(parts.model("reader"), compose, sampling)
    return omni.OmniRag(planner, found, reader, chosen.per_source)


def planned_retriever(parts: Parts, names: Iterable[str], k: int) -> PlannedRetriever:
    """What asks each of these sources, so far as they are there."""
    return PlannedRetriever(
        {
            name: parts.retriever(f"omni:{name}", (name,))
            for name in dict.fromkeys(names)
            if name in parts.sources
        },
        k,
    )


def planned_by(settings: Settings, parts: Parts) -> str:
    """The method and the model that plans, as a stored plan says it; empty without a planner."""
    chosen = settings.strategy
    if not isinstance(chosen, OmniRag):
        return ""
    return f"{method(settings, chosen)}, {parts.model('planner').name}"


def method(settings: Settings, chosen: OmniRag) -> str:
    """How plans are made: `auto` decided."""
    if chosen.planner != "auto":
        return chosen.planner
    return "prompting" if writes(settings, "planner") else "original"


def source_planner(
    settings: Settings,
    chosen: OmniRag,
    parts: Parts,
    found: PlannedRetriever,
    sampling: Sampling,
) -> Planner:
    """Who plans, over sources that `found` asks."""
    speaker = _speaker(parts, "planner", sampling)
    # The packaged model, free to write any terms, wrote some that the question does not hold.
    terms = TermExtractor(speaker, among=None if writes(settings, "planner") else names_in)
    proposer = Proposer(speaker, parts.offers, chosen.queries)
    match chosen.planner:
        case "auto":
            asks = method(settings, chosen) == "prompting"
            return Prompting(proposer) if asks else OriginalQuestion(terms, parts.offers)
        case "original":
            return OriginalQuestion(terms, parts.offers)
        case "query2doc":
            return Query2Doc(speaker, terms, parts.offers)
        case "prompting":
            return Prompting(proposer)
        case "reflexion" | "serts":
            judge = Judge(_speaker(parts, "judge", sampling), chosen.judged)
            if chosen.planner == "reflexion":
                return Reflexion(proposer, found, judge, chosen.rounds)
            return SeRTS(proposer, found, judge, chosen.rounds, chosen.width)
        case "trained":
            able = parts.models["planner"].constrains
            return trained(
                parts.model("planner"),
                parts.offers,
                at_most=chosen.queries,
                seed=sampling.seed,
                form=chosen.prompt,
                hold=chosen.hold if able else "nothing",
            )
        case _ as never:
            assert_never(never)


def _speaker(parts: Parts, role: Role, sampling: Sampling) -> Speaker:
    ready = parts.models[role]
    return Speaker(ready.model, role, sampling, ready.constrains)

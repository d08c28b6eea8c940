"""Every planner by its name in settings and requests.

To add a planner, write its module and add its name and its arm here: settings, command line, API
and build take both from this module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from osler.llm.core.speaker import Speaker
from osler.methods.omni.describe import SourceDescription
from osler.methods.omni.feedback import DocumentJudge
from osler.methods.omni.plan import MOST, PlannerName
from osler.methods.omni.planners import SourcePlanner
from osler.methods.omni.planners.fixed import OriginalQuestion
from osler.methods.omni.planners.prompting import Form, Prompting, Proposer, trained_planner
from osler.methods.omni.planners.query2doc import Query2Doc
from osler.methods.omni.planners.reflexion import ROUNDS, Reflexion
from osler.methods.omni.planners.serts import SeRTS
from osler.methods.omni.planners.terms import TermExtractor
from osler.methods.omni.retriever import PlannedRetriever


@dataclass(frozen=True)
class PlannerParts:
    """What planners are built from."""

    speaker: Speaker
    """The planner's model."""
    judge: Callable[[], Speaker]
    """The judge's model, made for the planners that have one."""
    terms: TermExtractor
    offers: tuple[SourceDescription, ...]
    found: PlannedRetriever
    """Searches the sources, for planners that look at results."""
    queries: int = MOST
    """At most so many a source."""
    rounds: int = ROUNDS
    """Plans that reflexion and serts try."""
    form: Form = "full"
    """What a trained planner is asked."""


def make_planner(name: PlannerName, parts: PlannerParts) -> SourcePlanner:
    """The planner of this name."""
    proposer = Proposer(parts.speaker, parts.offers, parts.queries)
    match name:
        case "original":
            return OriginalQuestion(parts.terms, parts.offers)
        case "query2doc":
            return Query2Doc(parts.speaker, parts.terms, parts.offers)
        case "prompting":
            return Prompting(proposer)
        case "reflexion":
            return Reflexion(proposer, parts.found, DocumentJudge(parts.judge()), parts.rounds)
        case "serts":
            return SeRTS(proposer, parts.found, DocumentJudge(parts.judge()), parts.rounds)
        case "trained":
            speaker = parts.speaker
            return trained_planner(
                speaker.model,
                parts.offers,
                at_most=parts.queries,
                seed=speaker.sampling.seed,
                form=parts.form,
            )
        case _ as never:
            assert_never(never)

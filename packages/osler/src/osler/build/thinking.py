"""KAG-Thinker, as the settings ask for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from osler.build import Parts
from osler.build.graphs import FORMS
from osler.build.strategy_build import StrategyBuild, graph_route, question_routes
from osler.errors import BadConfig, MalformedOutput
from osler.llm.core.ask import Speaker
from osler.methods.kag.boundary import TAU, GenerateThenAssess, NoBoundary
from osler.methods.kag.depth import Depth, DepthSolver, FormRetriever, RelationSelector
from osler.methods.kag.dialogue import DialogueThinker, ReleasedTurns, TrainedTurns
from osler.methods.kag.executors import Calculator, Deducer
from osler.methods.kag.focus import Focuser
from osler.methods.kag.graph_route.answering import GraphRoute
from osler.methods.kag.hybrid import QueriesAsForms
from osler.methods.kag.logical_forms import LogicalPlan, render_plan
from osler.methods.kag.output import AnswerFinisher, QuestionQuotes, QuestionSearch
from osler.methods.kag.parse import read_plan_tolerantly
from osler.methods.kag.planner import Decomposer, FormPlanner, GivenForms
from osler.methods.kag.solver import DECODING, Thinker
from osler.methods.kag.variables import find_dependencies
from osler.settings import KagThinkerSettings, Role, Settings
from osler.sources.catalogue import GRAPH

# Characters of reasoning by a small model.
_BRIEF = 80


def build_thinker(build: StrategyBuild, chosen: KagThinkerSettings) -> Thinker | DialogueThinker:
    """The planner decomposes; the reader does all else. In a dialogue the reader does both."""
    if chosen.dialogue != "calls":
        return _build_dialogue(replace(build, sampling=DECODING), chosen)
    depth = replace(
        build_depth_solver(build, chosen),
        boundary=knowledge_boundary(build, chosen),
        graph=form_lookup(chosen.retriever, build.parts),
    )
    none = chosen.boundary == "none"
    named = "" if none else boundary_tau(build.settings, chosen, build.reader.name)[1]
    thinker = thinker_around(build, chosen, depth, named)
    if not chosen.forms:
        search = _question_search(chosen, build.parts)
        if search is None or not _quotes_unplanned(build, chosen):
            return thinker
        return replace(thinker, routes=(*thinker.routes, QuestionQuotes(search, build.composer)))
    # A plan that was given is run as it is, over the graph's sets where the graph has them all.
    plan = _read_forms(chosen.forms)
    sets = [GraphRoute(route.sets, render_plan(plan)) for route in graph_route(build, chosen)]
    return replace(thinker, planner=GivenForms(plan), routes=tuple(sets))


def _read_forms(text: str) -> LogicalPlan:
    """Raises `BadConfig` for a text that is no plan, and for one whose steps refer to none."""
    try:
        reading = read_plan_tolerantly(text)
    except MalformedOutput as error:
        fix = "write it as \"Step1: …\\nAction1: Retrieval(s=s1:film['X'], p=p1:director, o=o1)\""
        raise BadConfig(f"strategy.forms is not a plan: {error.message}", fix=fix) from error
    # What is mended for a model is a mistake of a user, who can say what was meant.
    if problems := (*reading.mended, *find_dependencies(reading.plan).problems):
        raise BadConfig(f"strategy.forms: {'; '.join(problems)}", fix="correct the plan")
    return reading.plan


def _build_dialogue(build: StrategyBuild, chosen: KagThinkerSettings) -> DialogueThinker:
    reader, parts = make_speaker(build, "reader"), build.parts
    return DialogueThinker(
        reader.model,
        ReleasedTurns() if chosen.dialogue == "checkpoint" else TrainedTurns(),
        parts.retriever("kag-thinker", parts.sources),
        build.composer,
        Focuser(reader),
        replace(build.sampling, top=0),
        parts.sources,
        chosen.k,
        chosen.turns,
    )


def build_depth_solver(build: StrategyBuild, chosen: KagThinkerSettings) -> DepthSolver:
    """The paper's, without a boundary and without the graph."""
    reader, parts = make_speaker(build, "reader"), build.parts
    return DepthSolver(
        reader,
        parts.retriever("kag-thinker", parts.sources),
        NoBoundary(),
        Focuser(reader),
        sources=parts.sources,
        k=chosen.k,
        turns=chosen.turns,
        fresh=chosen.fresh and build.may_write("reader"),
        # Where no model may choose among relations, the nearest vectors are read.
        selector=RelationSelector(reader) if build.may_write("reader") else None,
    )


def thinker_around(
    build: StrategyBuild, chosen: KagThinkerSettings, depth: Depth, note: str
) -> Thinker:
    """The solver around what answers its lookups.

    A model that may not word medicine is taken for too small for Table 1 and for long reasoning:
    its plans find less than the question itself, unless they are asked for.
    """
    reader, parts = make_speaker(build, "reader"), build.parts
    planner: FormPlanner = GivenForms()
    if chosen.decompose and (build.may_write("planner") or chosen.plans == "model"):
        planner = Decomposer(make_speaker(build, "planner"), example=True)
    return Thinker(
        planner,
        depth,
        Calculator(reader, None if chosen.formulas else {}),
        Deducer(reader),
        AnswerFinisher(reader),
        build.composer,
        note,
        _question_search(chosen, parts),
        tuple(question_routes(build, chosen)),
    )


def _quotes_unplanned(build: StrategyBuild, chosen: KagThinkerSettings) -> bool:
    """Whether what no rule reads is searched as it stands, in place of a plan by the model."""
    is_asked = chosen.decompose and chosen.plans == "auto" and chosen.own_search > 0
    return is_asked and not build.may_write("planner")


def _question_search(chosen: KagThinkerSettings, parts: Parts) -> QuestionSearch | None:
    if not chosen.own_search:
        return None
    found = parts.retriever("kag-thinker", parts.sources)
    return QuestionSearch(found, parts.sources, chosen.own_search)


def form_lookup(how: Literal["hybrid", "text"], parts: Parts) -> FormRetriever | None:
    """`None` where nothing is looked up by form: no graph source, or plain text is asked for."""
    if how == "text" or GRAPH not in parts.sources:
        return None
    return QueriesAsForms(parts.retriever(FORMS, (GRAPH,)))


def boundary_tau(settings: Settings, chosen: KagThinkerSettings, reader: str) -> tuple[float, str]:
    """The threshold as set, else as calibrated to this model, else the default; with a note.

    With it what a reader of the trace should know of it: where it comes from, or why another
    value was passed over.
    """
    if chosen.tau is not None:
        return chosen.tau, ""
    fitted = settings.calibration
    if fitted.tau is None:
        return TAU, ""
    if fitted.tau_model == reader:
        return fitted.tau, f"tau {fitted.tau:g}: {fitted.tau_basis}"
    return TAU, (
        f"the calibrated tau {fitted.tau:g} is for {fitted.tau_model}, not for {reader}:"
        " it is not used"
    )


def make_speaker(build: StrategyBuild, role: Role) -> Speaker:
    """The role's model, asked as KAG-Thinker asks."""
    speaker = build.make_speaker(role)
    return speaker if build.may_write(role) else replace(speaker, reasoning=_BRIEF)


def knowledge_boundary(
    build: StrategyBuild, chosen: KagThinkerSettings
) -> GenerateThenAssess | NoBoundary:
    """Builds the knowledge boundary of the reader (KAG-Thinker §3.2)."""
    if chosen.boundary == "none":
        return NoBoundary()
    return GenerateThenAssess(
        make_speaker(build, "reader"),
        boundary_tau(build.settings, chosen, build.reader.name)[0],
        self_check=chosen.boundary in ("both", "self-check"),
        likelihood=chosen.boundary in ("both", "likelihood"),
        examples=not build.may_write("reader"),
    )


def own_knowledge(build: StrategyBuild, chosen: KagThinkerSettings) -> GenerateThenAssess:
    """The boundary as a run has it, to be asked alone. Raises `BadConfig` if absent."""
    found = knowledge_boundary(build, chosen)
    if isinstance(found, NoBoundary):
        raise BadConfig("there is no boundary", fix='set strategy.boundary = "both"')
    return found

"""The unified system: KAG-Thinker's solver around TC-RAG's machine and Omni-RAG's planner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from osler.answer.extractive import ExtractiveComposer
from osler.build import Parts, composers, tc_rag, thinking
from osler.build.planning import source_planner, source_retriever
from osler.build.strategy_build import StrategyBuild
from osler.build.tools import graph_tools, make_tools
from osler.llm.core.base import Likelihood
from osler.methods.kag.boundary import Boundary, GenerateThenAssess, NoBoundary
from osler.methods.kag.depth import Depth
from osler.methods.kag.solver import Thinker
from osler.methods.tcrag.stack import Metric, make_monitor
from osler.methods.tcrag.tools import Tool
from osler.methods.unified import FormTool, MachineDepth, PlannedSearch, PlannedTool, StateSignal
from osler.settings import KagThinkerSettings, OmniRagSettings, TcRagSettings, UnifiedSettings
from osler.settings.strategies import MachineFields, PlannerFields, StrategySection, ThinkerFields


def build_unified(build: StrategyBuild, chosen: UnifiedSettings) -> Thinker:
    """KAG-Thinker's solver around what `chosen` puts in its places."""
    players = (build.parts.models[role] for role in ("planner", "reader"))
    composed = not build.may_write("reader")
    metric = tc_rag.choose_metric(chosen.metric, players, composed=composed)
    chosen = chosen.model_copy(update={"metric": metric})
    as_thinker = thinking_settings(chosen)
    boundary, notes = _build_boundary(build, chosen)
    search = _build_search(build, chosen)
    depth: Depth
    if chosen.machine:
        depth = _build_machine(build, chosen, boundary, search)
        # Where no reader may word medicine, a machine's note stands before the steps.
        notes += [
            tc_rag.halting_threshold(
                build.settings, machine_settings(chosen), build.parts.model_for("planner").name
            ).note
        ]
    else:
        depth = replace(
            thinking.build_depth_solver(build, as_thinker),
            boundary=boundary,
            graph=thinking.form_lookup(chosen.retriever, build.parts),
            finder=search,
        )
    note = "; ".join(dict.fromkeys(filter(None, notes)))
    thinker = thinking.thinker_around(build, as_thinker, depth, note)
    return replace(thinker, last_deduce=chosen.last_deduce or not build.may_write("reader"))


def thinking_settings(chosen: UnifiedSettings) -> KagThinkerSettings:
    """Settings of KAG-Thinker's parts; the state value is no signal of theirs."""
    boundary = "both" if chosen.boundary in ("all", "state") else chosen.boundary
    own = {"boundary": boundary, "k": chosen.k}
    return KagThinkerSettings(**_shared(chosen, ThinkerFields) | own)


def machine_settings(chosen: UnifiedSettings) -> TcRagSettings:
    """Settings of TC-RAG's machine."""
    return TcRagSettings(k=chosen.k, **_shared(chosen, MachineFields))


def planning_settings(chosen: UnifiedSettings) -> OmniRagSettings:
    """Settings of Omni-RAG's planner; `planner = "off"` asks none."""
    planner = "auto" if chosen.planner == "off" else chosen.planner
    return OmniRagSettings(planner=planner, **_shared(chosen, PlannerFields))


# Fields that the unified system shares with a strategy bear the same names there.
def _shared(chosen: UnifiedSettings, fields: type[StrategySection]) -> dict[str, Any]:
    return chosen.model_dump(include=set(fields.model_fields) - {"kind"})


def _build_search(build: StrategyBuild, chosen: UnifiedSettings) -> PlannedSearch | None:
    if chosen.planner == "off":
        return None
    parts = build.parts
    found = source_retriever(parts, parts.sources, planning_settings(chosen).k)
    planner = source_planner(build, _search_planning(parts, chosen), found)
    return PlannedSearch(planner, found, parts.order, chosen.per_source)


def _search_planning(parts: Parts, chosen: UnifiedSettings) -> OmniRagSettings:
    """Of one source of texts there is nothing to choose, and a step's query is worded already."""
    planning = planning_settings(chosen)
    alone = len(parts.offers) == 1 and not parts.offers[0].is_graph
    if chosen.planner != "auto" or not alone:
        return planning
    return planning.model_copy(update={"planner": "original"})


def _build_machine(
    build: StrategyBuild,
    chosen: UnifiedSettings,
    boundary: Boundary,
    search: PlannedSearch | None,
) -> MachineDepth:
    settings, parts = build.settings, build.parts
    as_machine = machine_settings(chosen)
    offered: list[Tool] = []
    if search is None:
        gate = composers.evidence_gate(settings, parts)
        offered += make_tools(as_machine, parts, gate, build.sampling, longest=0)
    else:
        offered += [PlannedTool(search, chosen.k), *graph_tools(as_machine, parts)]
    graph = thinking.form_lookup(chosen.retriever, parts)
    if graph is not None and chosen.decompose:  # a question that is one step has no form
        offered.append(FormTool(graph, chosen.k))
    # A step's answer goes into other questions: one sentence of a quoted answer, not three.
    worded = composers.answer_wording(settings, parts)
    if isinstance(worded, ExtractiveComposer):
        worded = replace(worded, statements=1)
    short = chosen.short and chosen.decompose and build.may_write("reader")
    as_thinker = thinking_settings(chosen)
    return MachineDepth(
        tc_rag.build_machine(settings, as_machine, parts, tools=tuple(offered), compose=worded),
        boundary,
        thinking.build_depth_solver(build, as_thinker) if short else None,
        chosen.k,
    )


def _build_boundary(build: StrategyBuild, chosen: UnifiedSettings) -> tuple[Boundary, list[str]]:
    """Builds the knowledge boundary, with notes for the trace."""
    if chosen.boundary == "none":
        return NoBoundary(), []
    signal: StateSignal | None = None
    notes: list[str] = []
    if chosen.boundary in ("all", "state"):
        signal, notes = _state_signal(build, chosen)
    if chosen.boundary == "state" and signal is None:
        return NoBoundary(), notes
    as_thinker = thinking_settings(chosen)
    paper = thinking.knowledge_boundary(build, as_thinker)
    assert isinstance(paper, GenerateThenAssess), "none was asked for above"  # noqa: S101
    if chosen.boundary == "state":
        return replace(paper, self_check=False, likelihood=False, state=signal), notes
    if chosen.boundary != "self-check":
        notes = [thinking.boundary_tau(build.settings, as_thinker, build.reader.name)[1], *notes]
    return replace(paper, state=signal), notes


def _state_signal(
    build: StrategyBuild, chosen: UnifiedSettings
) -> tuple[StateSignal | None, list[str]]:
    """The state value of the reader's own answers; `None` where it cannot be had, and why."""
    if chosen.metric == "off":
        return None, []
    reader = build.reader
    if chosen.metric == "cppl" and not isinstance(reader, Likelihood):
        why = f"{reader.name} scores no given text: the state value is no signal of the boundary"
        return None, [why]
    limit = tc_rag.halting_threshold(build.settings, machine_settings(chosen), reader.name)
    monitor = make_monitor(cast("Metric", chosen.metric), reader)
    return StateSignal(monitor, limit.sigma), [limit.note]

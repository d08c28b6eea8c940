"""TC-RAG's machine as the settings ask for it: monitor, threshold, moves and tools."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from osler.answer import Composer
from osler.app.config import (
    Settings,
    TcRagSettings,
)
from osler.app.wiring import Parts
from osler.app.wiring.composers import build_composer, evidence_gate, may_write, sampling_of
from osler.app.wiring.tools import make_tools as tools_of
from osler.errors import CapabilityMissing
from osler.llm.core.base import LanguageModel, Likelihood
from osler.methods.tcrag.actions import parse_action
from osler.methods.tcrag.dialect import parse_released
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.monitor import SIGMA, Cppl, Monitor, Uct, Unmonitored
from osler.methods.tcrag.moves import AnyMove, GuidedMoves, Moves
from osler.methods.tcrag.tools import Tool

# For the packaged model: nine in ten of its answers to the 24 calibration questions lie below.
# `osler calibrate` fitted 42.5 for cppl when it was last asked (n = 23).
PACKAGED_SIGMA = {"cppl": 45.0, "uct": 32.0, "off": SIGMA["off"]}


# Characters of an action by a model whose words nobody quotes.
_SHORT = 160


@dataclass(frozen=True, slots=True)
class Threshold:
    sigma: float
    basis: str = ""
    """Where it comes from, if the reader of an answer should know."""
    note: str = ""
    """Why another value was passed over."""


def halting_threshold(settings: Settings, chosen: TcRagSettings, planner: str) -> Threshold:
    """The threshold as set, else as calibrated to this model and metric, else the default.

    The usual one is the paper's, or what was fitted to the packaged model.
    """
    if chosen.sigma is not None:
        return Threshold(chosen.sigma)
    fitted, note = settings.calibration, ""
    if fitted.sigma is not None and chosen.metric != "off":
        if (fitted.metric, fitted.model) == (chosen.metric, planner):
            return Threshold(fitted.sigma, f"calibrated on {fitted.n} questions, {fitted.date}")
        note = (
            f"the calibrated sigma {fitted.sigma:g} is for {fitted.metric} of {fitted.model},"
            f" not for {chosen.metric} of {planner}: it is not used"
        )
    usual = PACKAGED_SIGMA if settings.model_for("planner").kind == "packaged" else SIGMA
    return Threshold(usual[chosen.metric], note=note)


def build_machine(
    settings: Settings,
    chosen: TcRagSettings,
    parts: Parts,
    *,
    tools: tuple[Tool, ...] = (),
    compose: Composer | None = None,
) -> TuringMachine:
    """TC-RAG: the planner acts and is monitored, the summariser sums up, the reader answers.

    `tools` and `compose` stand in the place of those that the settings name.
    """
    planner, summariser = parts.model_for("planner"), parts.model_for("summariser")
    by_auto = not may_write(settings, "planner")
    guided = by_auto if chosen.moves == "auto" else chosen.moves == "guided"
    longest = _SHORT if guided else 600
    if not tools:
        tools = tools_of(
            chosen, parts, evidence_gate(settings, parts), sampling_of(settings), longest=longest
        )
    limit = halting_threshold(settings, chosen, planner.name)
    return TuringMachine(
        planner,
        tools,
        state_monitor(chosen.metric, planner),
        compose or build_composer(settings, parts),
        _machine_moves(
            settings, chosen, parts, frozenset(tool.name for tool in tools), guided=guided
        ),
        sigma=limit.sigma,
        basis=limit.basis,
        note=limit.note,
        summariser=None if summariser.name == planner.name else summariser,
        max_loop=chosen.max_loop,
        argument=not guided,
        visible=chosen.visible,
        constrained=parts.models["planner"].constrains,
        longest=longest,
        read=parse_released if chosen.dialect == "released" else parse_action,
        # Only uct reads the tokens of a reply; reporting them can cost a second reading.
        sampling=replace(sampling_of(settings), top=int(chosen.metric == "uct")),
    )


def state_monitor(metric: Literal["cppl", "uct", "off"], model: LanguageModel) -> Monitor:
    """Raises `CapabilityMissing` for a model that cannot be monitored so."""
    match metric:
        case "off":
            return Unmonitored()
        case "uct":
            return Uct(model)
        case "cppl":
            if not isinstance(model, Likelihood):
                raise CapabilityMissing(
                    f"cppl needs the likelihood of a given text, and {model.name} has none",
                    fix='set strategy.metric = "uct" or "off"',
                )
            return Cppl(model)


def _machine_moves(
    settings: Settings, chosen: TcRagSettings, parts: Parts, names: frozenset[str], *, guided: bool
) -> Moves:
    widest = AnyMove(names, chosen.backtrack, chosen.summary)
    return GuidedMoves(widest, evidence_gate(settings, parts)) if guided else widest

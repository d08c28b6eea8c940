"""TC-RAG's machine as the settings ask for it: monitor, threshold, moves and tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from osler.answer import Composer
from osler.build import Parts
from osler.build.composers import build_composer, evidence_gate, may_write, sampling_of
from osler.build.models import LoadedModel
from osler.build.tools import make_tools as tools_of
from osler.errors import CapabilityMissing
from osler.llm.core.base import LanguageModel, Likelihood
from osler.methods.tcrag.actions import parse_action, parse_released, parse_tolerant
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.moves import AnyMove, GuidedMoves, Moves, ObservationJudge
from osler.methods.tcrag.parts import ActionReader
from osler.methods.tcrag.stack import SIGMA, Metric, make_monitor
from osler.methods.tcrag.tools import Tool
from osler.settings import Settings, TcRagSettings

# For the packaged model: nine in ten of its answers to the 24 calibration questions lie below.
# `osler calibrate` fitted 42.5 for cppl when it was last asked (n = 23).
PACKAGED_SIGMA = {**SIGMA, "cppl": 45.0, "uct": 32.0}

# Characters of an action's text; of a model under guided moves, whose words nobody quotes.
_LONG, _SHORT = 600, 160

_READERS: Mapping[str, ActionReader] = {
    "tolerant": parse_tolerant,
    "paper": parse_action,
    "released": parse_released,
}


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
    # Before a model is known, "auto" is its first choice.
    metric: Metric = "cppl" if chosen.metric == "auto" else chosen.metric
    if chosen.sigma is not None:
        return Threshold(chosen.sigma)
    fitted, note = settings.calibration, ""
    if fitted.sigma is not None and metric != "off":
        if (fitted.metric, fitted.model) == (metric, planner):
            return Threshold(fitted.sigma, fitted.basis)
        note = (
            f"the calibrated sigma {fitted.sigma:g} is for {fitted.metric} of {fitted.model},"
            f" not for {metric} of {planner}: it is not used"
        )
    usual = PACKAGED_SIGMA if settings.model_for("planner").kind == "packaged" else SIGMA
    return Threshold(usual[metric], note=note)


def choose_metric(
    metric: Literal["auto", Metric], players: Iterable[LoadedModel], *, composed: bool
) -> Metric:
    """The metric as set; "auto": the paper's first that every one of these models can be valued by.

    `composed`: an answer is worded by another than the model, whose tokens it has not.
    """
    if metric != "auto":
        return metric
    models = tuple(players)
    scoring = [isinstance(ready.model, Likelihood) for ready in models]
    telling = [scores or ready.tells for scores, ready in zip(scoring, models, strict=True)]
    return metric_of(scores=all(scoring), tells=all(telling), composed=composed)


def metric_of(*, scores: bool, tells: bool, composed: bool) -> Literal["cppl", "uct", "off"]:
    """What "auto" comes to with a model that scores given texts, or tells log-probabilities."""
    if scores:
        return "cppl"
    return "uct" if tells and not composed else "off"


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
    composer = compose or build_composer(settings, parts)
    metric = choose_metric(
        chosen.metric, (parts.models["planner"],), composed=composer.writes_answer
    )
    chosen = chosen.model_copy(update={"metric": metric})
    by_auto = not may_write(settings, "planner")
    guided = by_auto if chosen.moves == "auto" else chosen.moves == "guided"
    longest = _SHORT if guided else _LONG
    if not tools:
        tools = tools_of(
            chosen, parts, evidence_gate(settings, parts), sampling_of(settings), longest=longest
        )
    widest = AnyMove(frozenset(tool.name for tool in tools), chosen.backtrack, chosen.summary)
    moves: Moves = widest
    if guided:
        moves = GuidedMoves(widest, ObservationJudge(evidence_gate(settings, parts)))
    limit = halting_threshold(settings, chosen, planner.name)
    _require_metric(metric, planner, composer)
    _require_quotes(metric, settings)
    return TuringMachine(
        planner,
        tools,
        make_monitor(metric, planner),
        composer,
        moves,
        sigma=limit.sigma,
        basis=limit.basis,
        note=limit.note,
        summariser=None if summariser.name == planner.name else summariser,
        max_loop=chosen.max_loop,
        argument=not guided,
        constrained=parts.models["planner"].constrains,
        longest=longest,
        template="json" if chosen.dialect == "released" else "line",
        exhausted=chosen.exhausted,
        read=_READERS[chosen.dialect],
        closes=chosen.dialect == "tolerant",
        fresh=chosen.fresh and not guided,
        search_first=chosen.search_first and not guided,
        # Reporting a reply's tokens can cost a second reading: only for the metric that reads them.
        sampling=replace(sampling_of(settings), top=int(metric == "uct")),
    )


def _require_metric(metric: Metric, planner: LanguageModel, composer: Composer) -> None:
    """Raises `CapabilityMissing` where no Conclusion could ever be valued: the answer is composed
    in its place, and the planner scores no given text."""
    if metric == "uct" and composer.writes_answer and not isinstance(planner, Likelihood):
        raise CapabilityMissing(
            f"{metric} needs the likelihood of the composed answer, and {planner.name} scores no"
            " given text",
            fix='set strategy.metric = "off", or let the planner\'s model word answers',
        )


def _require_quotes(metric: Metric, settings: Settings) -> None:
    """Raises `CapabilityMissing` for a metric of quoted answers where the reader words them."""
    if metric == "sureness" and may_write(settings, "reader"):
        raise CapabilityMissing(
            "sureness is of quoted answers, and this reader's own words are the answer",
            fix='set strategy.metric = "auto", or model.writes = "no"',
        )

"""The strategy that the settings name, over the parts it is given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, assert_never

from osler.answer.base import Composer
from osler.answer.cautions import Cautious
from osler.answer.extractive import Extractive, Gate, Least
from osler.answer.options import OptionChooser, OptionLetters, OptionTexts
from osler.answer.rewriter import Reread
from osler.answer.written import Written
from osler.app.config import (
    Baseline,
    Cot,
    Direct,
    KagThinker,
    OmniRag,
    Rag,
    Role,
    Settings,
    TcRag,
    Unified,
)
from osler.app.wiring.parts import Parts
from osler.app.wiring.tools import tools as tools_of
from osler.errors import BadConfig, CapabilityMissing
from osler.llm.core.base import LanguageModel, Likelihood, Sampling
from osler.methods.omni.dossier import Dossier
from osler.methods.tcrag.actions import parse_action
from osler.methods.tcrag.dialect import parse_released
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.monitor import SIGMA, Cppl, Monitor, Uct, Unmonitored
from osler.methods.tcrag.moves import AnyMove, Guided, Moves
from osler.methods.tcrag.tools import Tool
from osler.trace import Budget, Solver
from osler.types import Language

PACKAGED_SIGMA = {"cppl": 45.0, "uct": 32.0, "off": SIGMA["off"]}
"""For the packaged model: nine in ten of its answers to the 24 calibration questions lie below.
`osler calibrate` fitted 42.5 for cppl when it was last asked (n = 23)."""

_SHORT = 160
"""Characters of an action by a model whose words nobody quotes."""


def solver(settings: Settings, parts: Parts, plan: Dossier | None = None) -> Solver:
    """The configured strategy over these parts; `plan`: this one, and nobody else plans.

    Raises `BadConfig` for a plan where the strategy runs none.
    """
    from osler.methods.baselines import cot, direct, rag

    if plan is not None and not isinstance(settings.strategy, OmniRag):
        raise BadConfig(
            f"{settings.strategy.kind} runs no source plan", fix="add --strategy omni-rag"
        )
    sampling, compose, reader = (
        _sampling(settings),
        composer(settings, parts),
        parts.model("reader"),
    )
    match settings.strategy:
        case Direct():
            return direct.Direct(reader, compose, sampling)
        case Cot():
            return cot.ChainOfThought(reader, compose, sampling)
        case Rag(k=k):
            found = parts.retriever("rag", parts.sources)
            return rag.RetrieveAndRead(reader, found, compose, parts.sources, k, sampling)
        case TcRag() as chosen:
            return machine(settings, chosen, parts)
        case Baseline() as method:
            from osler.app.wiring.baselines import baseline

            return baseline(method, parts, compose, sampling)
        case KagThinker() as thinking:
            from osler.app.wiring.thinking import thinker

            return thinker(settings, thinking, parts, compose, sampling)
        case OmniRag() as planned:
            from osler.app.wiring.planning import planner_and_reader

            return planner_and_reader(settings, planned, parts, compose, sampling, plan)
        case Unified() as whole:
            from osler.app.wiring.unified import unified

            return unified(settings, whole, parts, compose, sampling)
        case _ as never:
            assert_never(never)


def composer(settings: Settings, parts: Parts) -> Composer:
    """Who makes the answer, and tells what must be known of its evidence."""
    rules = settings.answer.cautions
    plain = wording(settings, parts)
    return plain if rules == "none" else Cautious(plain, rules)


def wording(settings: Settings, parts: Parts) -> Composer:
    """Who words the answer: a model that may, else nobody (quotes)."""
    reader = parts.model("reader")
    if writes(settings, "reader"):
        # Where another model steers, its conclusion is only a draft.
        steering: Role = "reader" if isinstance(settings.strategy, OmniRag) else "planner"
        alone = parts.models.get(steering, parts.models["reader"]).model.name == reader.name
        return Written() if alone else Reread(reader, _sampling(settings))
    return Extractive(
        gate(settings, parts),
        reader if isinstance(reader, Likelihood) else None,
        settings.answer.statements,
        settings.answer.candidates,
        reasoned=isinstance(settings.strategy, Cot),
        options=_options(settings, parts),
    )


def _options(settings: Settings, parts: Parts) -> OptionChooser | None:
    """Who chooses an option; nobody by texts that cannot be scored."""
    reader = parts.models["reader"]
    how = settings.answer.options
    if how != "texts":
        return OptionLetters(reader.model, constrains=reader.constrains, written=how == "written")
    return OptionTexts(reader.model) if isinstance(reader.model, Likelihood) else None


def writes(settings: Settings, role: Role) -> bool:
    """Whether the role's model may word medicine; "auto": never the packaged one."""
    chosen = settings.role(role)
    return chosen.kind != "packaged" if chosen.writes == "auto" else chosen.writes == "yes"


def gate(settings: Settings, parts: Parts) -> Gate:
    """Which passages are evidence for a question."""
    chosen = settings.answer
    least: dict[Language, Least] = {
        "en": Least(chosen.coverage, chosen.relevance),
        "zh": Least(chosen.coverage_zh, chosen.relevance_zh),
    }
    return Gate(parts.coverage, parts.relevance, least)


@dataclass(frozen=True, slots=True)
class Threshold:
    sigma: float
    basis: str = ""
    """Where it comes from, if the reader of an answer should know."""
    note: str = ""
    """Why another value was passed over."""


def threshold(settings: Settings, chosen: TcRag, planner: str) -> Threshold:
    """As set; else as calibrated to this very model and metric; else the usual one.

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
    usual = PACKAGED_SIGMA if settings.role("planner").kind == "packaged" else SIGMA
    return Threshold(usual[chosen.metric], note=note)


def budget(settings: Settings) -> Budget:
    chosen = settings.budget
    return Budget(chosen.calls, chosen.tokens, chosen.searches, chosen.seconds)


def machine(
    settings: Settings,
    chosen: TcRag,
    parts: Parts,
    *,
    tools: tuple[Tool, ...] = (),
    compose: Composer | None = None,
) -> TuringMachine:
    """TC-RAG: the planner acts and is monitored, the summariser sums up, the reader answers.

    `tools` and `compose` stand in the place of those that the settings name.
    """
    planner, summariser = parts.model("planner"), parts.model("summariser")
    by_auto = not writes(settings, "planner")
    guided = by_auto if chosen.moves == "auto" else chosen.moves == "guided"
    longest = _SHORT if guided else 600
    if not tools:
        tools = tools_of(chosen, parts, gate(settings, parts), _sampling(settings), longest=longest)
    limit = threshold(settings, chosen, planner.name)
    return TuringMachine(
        planner,
        tools,
        monitor(chosen.metric, planner),
        compose or composer(settings, parts),
        _moves(settings, chosen, parts, frozenset(tool.name for tool in tools), guided=guided),
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
        sampling=replace(_sampling(settings), top=int(chosen.metric == "uct")),
    )


def monitor(metric: Literal["cppl", "uct", "off"], model: LanguageModel) -> Monitor:
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


def _moves(
    settings: Settings, chosen: TcRag, parts: Parts, names: frozenset[str], *, guided: bool
) -> Moves:
    widest = AnyMove(names, chosen.backtrack, chosen.summary)
    return Guided(widest, gate(settings, parts)) if guided else widest


def _sampling(settings: Settings) -> Sampling:
    chosen = settings.sampling
    return Sampling(chosen.temperature, chosen.max_tokens, seed=chosen.seed)

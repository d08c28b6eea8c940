"""The strategy that the settings name, over the parts it is given."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from osler.answer.base import Composer
from osler.answer.extractive import Extractive, Gate, Least
from osler.answer.options import OptionChooser, OptionLetters, OptionTexts
from osler.answer.written import Written
from osler.config import Cot, Direct, Rag, Settings, TcRag
from osler.errors import CapabilityMissing
from osler.llm.base import LanguageModel, Likelihood, Sampling
from osler.tcrag import tools as tcrag_tools
from osler.tcrag.machine import TuringMachine
from osler.tcrag.monitor import SIGMA, Cppl, Monitor, Uct, Unmonitored
from osler.tcrag.moves import AnyMove, Guided, Moves
from osler.trace import Budget, Solver
from osler.types import Language
from osler.wiring.parts import Parts

PACKAGED_SIGMA = {"cppl": 45.0, "uct": 32.0, "off": SIGMA["off"]}
"""Fitted to the packaged model: nine in ten of its answers to the 24 calibration questions
lie below (`benchmarks/calibrate.py`)."""

_SHORT = 160
"""Characters of an action by a model whose words nobody quotes."""


def solver(settings: Settings, parts: Parts) -> Solver:
    """The configured strategy over these parts."""
    from osler.baselines import cot, direct, rag

    sampling, compose = _sampling(settings), composer(settings, parts)
    match settings.strategy:
        case Direct():
            return direct.Direct(parts.model, compose, sampling)
        case Cot():
            return cot.ChainOfThought(parts.model, compose, sampling)
        case Rag(k=k):
            found = parts.retriever("rag", parts.sources)
            return rag.RetrieveAndRead(parts.model, found, compose, parts.sources, k, sampling)
        case TcRag() as chosen:
            return _machine(settings, chosen, parts, compose, sampling)
        case _ as never:
            assert_never(never)


def composer(settings: Settings, parts: Parts) -> Composer:
    """Who words the answer: a model that may, else nobody (quotes)."""
    if writes(settings):
        return Written()
    return Extractive(
        gate(settings, parts),
        parts.model if isinstance(parts.model, Likelihood) else None,
        settings.answer.statements,
        settings.answer.candidates,
        reasoned=isinstance(settings.strategy, Cot),
        options=_options(settings, parts),
    )


def _options(settings: Settings, parts: Parts) -> OptionChooser | None:
    """Who chooses an option; nobody by texts that cannot be scored."""
    if settings.answer.options == "letters":
        return OptionLetters(parts.model, constrains=parts.constrains)
    return OptionTexts(parts.model) if isinstance(parts.model, Likelihood) else None


def writes(settings: Settings) -> bool:
    """Whether the model may word medicine; "auto": never the packaged one."""
    chosen = settings.model
    return chosen.kind != "packaged" if chosen.writes == "auto" else chosen.writes == "yes"


def gate(settings: Settings, parts: Parts) -> Gate:
    """Which passages are evidence for a question."""
    chosen = settings.answer
    least: dict[Language, Least] = {
        "en": Least(chosen.coverage, chosen.relevance),
        "zh": Least(chosen.coverage_zh, chosen.relevance_zh),
    }
    return Gate(parts.coverage, parts.relevance, least)


def sigma(settings: Settings, chosen: TcRag) -> float:
    """As set; else the paper's, or what was fitted to the packaged model."""
    if chosen.sigma is not None:
        return chosen.sigma
    fitted = PACKAGED_SIGMA if settings.model.kind == "packaged" else SIGMA
    return fitted[chosen.metric]


def budget(settings: Settings) -> Budget:
    chosen = settings.budget
    return Budget(chosen.calls, chosen.tokens, chosen.searches, chosen.seconds)


def _machine(
    settings: Settings, chosen: TcRag, parts: Parts, compose: Composer, sampling: Sampling
) -> TuringMachine:
    guided = not writes(settings) if chosen.moves == "auto" else chosen.moves == "guided"
    tools = _tools(chosen, parts)
    return TuringMachine(
        parts.model,
        tools,
        _monitor(chosen, parts.model),
        compose,
        _moves(settings, chosen, parts, frozenset(tool.name for tool in tools), guided=guided),
        sigma=sigma(settings, chosen),
        max_loop=chosen.max_loop,
        argument=not guided,
        visible=chosen.visible,
        constrained=parts.constrains,
        longest=_SHORT if guided else 600,
        # Only uct reads the tokens of a reply; reporting them can cost a second reading.
        sampling=replace(sampling, top=int(chosen.metric == "uct")),
    )


def _tools(chosen: TcRag, parts: Parts) -> tuple[tcrag_tools.Tool, ...]:
    """A tool for each kind of source that is there; sources of the user's own are documents."""
    named = {source for group in tcrag_tools.SOURCES_OF.values() for source in group}
    own = tuple(source for source in parts.sources if source not in named)
    found = []
    for name, group in tcrag_tools.SOURCES_OF.items():
        sources = tuple(source for source in group if source in parts.sources)
        if name == tcrag_tools.DOC_RAG:
            sources += own
        if sources:
            found.append(tcrag_tools.Tool(name, parts.retriever(name, sources), sources, chosen.k))
    return tuple(found)


def _monitor(chosen: TcRag, model: LanguageModel) -> Monitor:
    match chosen.metric:
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

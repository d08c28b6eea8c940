"""KAG-Thinker, as the settings ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from osler.answer import Composer
from osler.app.config import KagThinkerSettings, Role, Settings
from osler.app.wiring import Parts
from osler.app.wiring.composers import may_write
from osler.app.wiring.graphs import FORMS
from osler.app.wiring.models import encoder_languages
from osler.errors import BadConfig
from osler.llm.core.base import Sampling
from osler.llm.core.speaker import Speaker
from osler.methods.kag.boundary import TAU, GenerateThenAssess, NoBoundary
from osler.methods.kag.computed import QuestionCalculator
from osler.methods.kag.depth import Depth, DepthSolver, FormRetriever
from osler.methods.kag.dialogue import DialogueThinker
from osler.methods.kag.executors import Calculator, Deducer
from osler.methods.kag.focus import Focuser, LikenessFocuser, LikenessScorer
from osler.methods.kag.graph_route import GRAPH_SETS, GraphRoute
from osler.methods.kag.hybrid import QueriesAsForms
from osler.methods.kag.outline import Outliner
from osler.methods.kag.output import AnswerFinisher
from osler.methods.kag.planner import Decomposer, FormPlanner, GivenForms
from osler.methods.kag.pool import QuestionSearch
from osler.methods.kag.solver import QuestionRoute, Thinker
from osler.methods.kag.text_route import TextRoute
from osler.methods.kag.transcript import ReleasedTurns, TrainedTurns
from osler.sources.catalogue import GRAPH
from osler.types import Language

# Characters of reasoning by a small model.
_BRIEF = 80
TURNS = 10
"""Searches for one sub-problem (the released code's value)."""
_FEW_TURNS = 2
PAPER_DECODING = Sampling(temperature=0.0, max_tokens=8192, seed=42)
"""The released code's; its top_p of 0.95 changes nothing at temperature 0."""
FOCUS_LEAST = 0.54
"""Cosine of the packaged encoder from which a reference answers: `benchmarks/LOG.md`."""


def build_thinker(
    settings: Settings,
    chosen: KagThinkerSettings,
    parts: Parts,
    compose: Composer,
    sampling: Sampling,
) -> Thinker | DialogueThinker:
    """The planner decomposes; the reader does all else. In a dialogue the reader does both."""
    if chosen.decoding == "paper" or (chosen.decoding == "auto" and chosen.dialogue != "calls"):
        sampling = PAPER_DECODING
    if chosen.dialogue != "calls":
        return _build_dialogue(settings, chosen, parts, compose, sampling)
    reader = make_speaker(settings, parts, "reader", sampling)
    depth = replace(
        build_depth_solver(settings, chosen, parts, sampling),
        boundary=knowledge_boundary(settings, chosen, reader),
        graph=form_lookup(chosen.retriever, parts),
    )
    told = "" if chosen.boundary == "none" else boundary_tau(settings, chosen, reader.model.name)[1]
    return thinker_around(settings, chosen, parts, compose, sampling, depth, told)


def _build_dialogue(
    settings: Settings,
    chosen: KagThinkerSettings,
    parts: Parts,
    compose: Composer,
    sampling: Sampling,
) -> DialogueThinker:
    reader = make_speaker(settings, parts, "reader", sampling)
    return DialogueThinker(
        reader.model,
        ReleasedTurns() if chosen.dialogue == "checkpoint" else TrainedTurns(),
        parts.retriever("kag-thinker", parts.sources),
        compose,
        Focuser(reader),
        replace(sampling, top=0),
        parts.sources,
        chosen.k,
        TURNS if chosen.turns is None else chosen.turns,
    )


def build_depth_solver(
    settings: Settings, chosen: KagThinkerSettings, parts: Parts, sampling: Sampling
) -> DepthSolver:
    """The paper's, without a boundary and without the graph."""
    reader = make_speaker(settings, parts, "reader", sampling)
    return DepthSolver(
        reader,
        parts.retriever("kag-thinker", parts.sources),
        NoBoundary(),
        _build_focuser(settings, chosen, parts, reader),
        sources=parts.sources,
        k=chosen.k,
        turns=_search_turns(settings, chosen),
        graph_first=chosen.graph_first,
        fusion=chosen.fusion,
    )


def _build_focuser(
    settings: Settings, chosen: KagThinkerSettings, parts: Parts, reader: Speaker
) -> Focuser:
    """Focusing by the model, or by the likeness of question and reference: the encoder's where it
    knows the language, else the words that both have."""
    if chosen.focus == "model" or (chosen.focus == "auto" and may_write(settings, "reader")):
        return Focuser(reader)
    cosine = FOCUS_LEAST if chosen.focus_least is None else chosen.focus_least
    known = encoder_languages(settings)
    languages: tuple[Language, ...] = ("en", "zh")
    covered = {"en": settings.answer.coverage, "zh": settings.answer.coverage_zh}
    scorers = {
        language: LikenessScorer(parts.relevance, cosine)
        if language in known
        else LikenessScorer(parts.coverage, covered[language])
        for language in languages
    }
    return LikenessFocuser(reader, scorers=scorers)


def _search_turns(settings: Settings, chosen: KagThinkerSettings) -> int:
    """A small model's third search is seldom a new one."""
    if chosen.turns is not None:
        return chosen.turns
    return TURNS if may_write(settings, "reader") else _FEW_TURNS


def thinker_around(
    settings: Settings,
    chosen: KagThinkerSettings,
    parts: Parts,
    compose: Composer,
    sampling: Sampling,
    depth: Depth,
    note: str,
) -> Thinker:
    """The solver around what answers its lookups.

    A model that may not word medicine is taken for too small for Table 1 and for long reasoning.
    """
    reader = make_speaker(settings, parts, "reader", sampling)
    planner: FormPlanner = GivenForms()
    if chosen.decompose:
        asked = make_speaker(settings, parts, "planner", sampling)
        # A small model's likeliest outline is its best; chance only repeats itself.
        likeliest = replace(asked, sampling=replace(sampling, temperature=0.0))
        planner = Decomposer(asked) if may_write(settings, "planner") else Outliner(likeliest)
    return Thinker(
        planner,
        depth,
        Calculator(reader, None if chosen.formulas else {}),
        Deducer(reader),
        AnswerFinisher(reader),
        compose,
        note,
        _question_search(chosen, parts),
        tuple(_question_routes(settings, chosen, parts, compose)),
    )


def _question_routes(
    settings: Settings, chosen: KagThinkerSettings, parts: Parts, compose: Composer
) -> Iterator[QuestionRoute]:
    """What answers without a plan by a model: verified formulas, the concept graph where there is
    one, and the texts."""
    if chosen.formulas:
        yield QuestionCalculator(meaning=parts.relevance)
    is_asked = chosen.decompose and chosen.graph_sets and chosen.retriever == "hybrid"
    if is_asked and GRAPH_SETS in parts.carriers and GRAPH in parts.sources:
        yield GraphRoute(parts.retriever(GRAPH_SETS, (GRAPH,)))
    if chosen.decompose and chosen.text_steps:
        yield TextRoute(
            parts.retriever("kag-thinker", parts.sources),
            compose,
            parts.sources,
            _question_search(chosen, parts),
            leaves_unknown=may_write(settings, "planner"),
        )


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
        told = f"tau {fitted.tau:g}: calibrated on {fitted.tau_n} answers, {fitted.tau_date}"
        return fitted.tau, told
    return TAU, (
        f"the calibrated tau {fitted.tau:g} is for {fitted.tau_model}, not for {reader}:"
        " it is not used"
    )


def make_speaker(settings: Settings, parts: Parts, role: Role, sampling: Sampling) -> Speaker:
    """The role's model, asked as KAG-Thinker asks."""
    ready = parts.models[role]
    made = Speaker(ready.model, role, sampling, ready.constrains)
    return made if may_write(settings, role) else replace(made, reasoning=_BRIEF)


def knowledge_boundary(
    settings: Settings, chosen: KagThinkerSettings, reader: Speaker
) -> GenerateThenAssess | NoBoundary:
    """Builds the knowledge boundary of the reader (KAG-Thinker §3.2)."""
    if chosen.boundary == "none":
        return NoBoundary()
    return GenerateThenAssess(
        reader,
        boundary_tau(settings, chosen, reader.model.name)[0],
        self_check=chosen.boundary in ("both", "self-check"),
        likelihood=chosen.boundary in ("both", "likelihood"),
        examples=not may_write(settings, "reader"),
    )


def own_knowledge(
    settings: Settings, chosen: KagThinkerSettings, parts: Parts
) -> GenerateThenAssess:
    """The boundary as a run has it, to be asked alone. Raises `BadConfig` where there is none."""
    asked = settings.sampling
    sampling = Sampling(asked.temperature, asked.max_tokens, seed=asked.seed)
    found = knowledge_boundary(settings, chosen, make_speaker(settings, parts, "reader", sampling))
    if isinstance(found, NoBoundary):
        raise BadConfig("there is no boundary", fix='set strategy.boundary = "both"')
    return found

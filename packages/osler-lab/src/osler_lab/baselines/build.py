"""Builds the methods of other papers from their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from osler.build import Parts
from osler.build.graphs import FORMS
from osler.build.plugins import StrategyMaker
from osler.build.strategy_build import StrategyBuild
from osler.errors import CapabilityMissing
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.llm.core.base import Attentive, LanguageModel, Likelihood
from osler.methods.episode import MethodDeps
from osler.methods.kag.executors import Calculator, Deducer
from osler.methods.kag.logical_forms import Deduce, Math, Operation
from osler.methods.omni.planners import SourceDescription
from osler.methods.single_pass import Direct, RetrieveAndRead
from osler.settings import Settings
from osler.sources.catalogue import GRAPH
from osler.trace import Run, Solver
from osler.types import Language, Retriever
from osler_lab.baselines import settings as sections
from osler_lab.baselines.acting import PROTOCOLS, ProtocolSearch, ReAct, SearchO1
from osler_lab.baselines.chain_of_knowledge import ChainOfKnowledge, KnowledgeSource
from osler_lab.baselines.corpus import (
    ATOMS,
    CHAINS,
    HYBRID,
    TRIPLES,
    WALK,
    corpus_carriers,
    corpus_retriever,
)
from osler_lab.baselines.decomposing import IMedRag, KagStatic, MedRag
from osler_lab.baselines.dragin import AttentionSensor, Dragin, EntropySensor, NeedSensor
from osler_lab.baselines.growing import EverySentence, FixedLength, Flare, IRCoT
from osler_lab.baselines.indexing import CorpusGraph, HippoRag, PikeRag
from osler_lab.baselines.self_rag import Critic, PromptedCritic, SelfRag, TrainedCritic
from osler_lab.baselines.weighing import Adaptive, ChainOfNote, HyKGE, SuRe

METHOD_CLASSES: Mapping[type[sections.BaselineSettings], type[Any]] = {
    sections.FlRagSettings: FixedLength,
    sections.FsRagSettings: EverySentence,
    sections.FlareSettings: Flare,
    sections.DraginSettings: Dragin,
    sections.DraginEntropySettings: Dragin,
    sections.ChainOfNoteSettings: ChainOfNote,
    sections.ChainOfKnowledgeSettings: ChainOfKnowledge,
    sections.SureSettings: SuRe,
    sections.HyKgeSettings: HyKGE,
    sections.ReActSettings: ReAct,
    sections.SelfRagSettings: SelfRag,
    sections.SelfRagPromptedSettings: SelfRag,
    sections.AdaptiveRagSettings: Adaptive,
    sections.IrCotSettings: IRCoT,
    sections.SearchO1Settings: SearchO1,
    sections.R1GenSettings: ProtocolSearch,
    sections.SearchR1Settings: ProtocolSearch,
    sections.ZeroSearchSettings: ProtocolSearch,
    sections.StepSearchSettings: ProtocolSearch,
    sections.ReSearchSettings: ProtocolSearch,
    sections.HippoRagSettings: HippoRag,
    sections.PikeRagSettings: PikeRag,
    sections.KagStaticSettings: KagStatic,
    sections.MedRagSettings: MedRag,
    sections.IMedRagSettings: IMedRag,
}
BASELINES = {section.model_fields["kind"].default: section for section in METHOD_CLASSES}
"""Settings of every method, by `strategy.kind`."""


class BaselineMaker(StrategyMaker):
    """Makes each of `METHOD_CLASSES`."""

    describes_sources = frozenset({"chain-of-knowledge"})

    def make_solver(self, build: StrategyBuild, chosen: Any) -> Solver:
        return build_baseline(build, chosen)

    def adapt_settings(self, settings: Settings, chosen: Any) -> Settings:
        """MedRAG fuses the word index and the vector index alike, with a constant of its own, and
        each to a hundred hits (`RetrievalSystem.retrieve` of its program)."""
        if not isinstance(chosen, sections.FusedFields):
            return settings
        fusion = {
            "rrf_k": 100,
            "dense_weight": 1.0,
            "lexical_weight": 1.0,
            "depth": 100,
        }
        fused = settings.retrieve.model_copy(update=fusion)
        return settings.model_copy(update={"retrieve": fused})

    def list_carriers(self, chosen: Any, kb: KnowledgeBase, encoder: Encoder) -> tuple[str, ...]:
        return corpus_carriers(chosen, kb, encoder)

    def open_retriever(
        self,
        settings: Settings,
        kb: KnowledgeBase,
        encoder: Encoder,
        name: str,
        sources: tuple[str, ...],
    ) -> Retriever | None:
        return corpus_retriever(settings, kb, encoder, name, sources)


def build_baseline(build: StrategyBuild, method: sections.BaselineSettings) -> Solver:
    """The method over these parts. Raises `CapabilityMissing` for what its model cannot do."""
    kit, parts = _method_deps(build, method), build.parts
    # Everything that is not a setting; `_with_settings` adds the settings by their names.
    given: dict[str, Any] = {"kit": kit}
    match method:
        case sections.DraginSettings() | sections.DraginEntropySettings():
            given["sensor"] = _need_sensor(method, kit.model)
        case sections.SelfRagSettings():
            given["critic"] = _trained_critic(kit.model)
        case sections.SelfRagPromptedSettings():
            given["critic"] = PromptedCritic()
        case sections.AdaptiveRagSettings():
            given |= _three_levels(method, kit)
        case sections.HyKgeSettings():
            given["relevance"] = parts.relevance
        case sections.ChainOfKnowledgeSettings():
            given["knowledge"] = _knowledge_sources(parts)
        case sections.HippoRagSettings():
            given |= {"relevance": parts.relevance, "corpus": _corpus_graph(parts)}
        case sections.KagStaticSettings():
            given |= _kag_parts(build)
        case sections.PikeRagSettings():
            has_atoms = ATOMS in parts.carriers
            atomic = parts.retriever(ATOMS, parts.sources) if has_atoms else None
            given |= {"relevance": parts.relevance, "atomic": atomic}
        case _ if method.kind in PROTOCOLS:
            given["protocol"] = PROTOCOLS[method.kind]
    return _with_settings(method, **given)


def _kag_parts(build: StrategyBuild) -> dict[str, object]:
    """What KAG 0.8 shares with KAG-Thinker: methods know nothing of each other."""
    reader, parts = build.make_speaker("reader"), build.parts
    # Without the verified formulas, which are Osler's, not KAG's.
    calculator, deducer = Calculator(reader, {}), Deducer(reader)

    async def run_program(query: str, known: Sequence[str], language: Language, run: Run) -> str:
        form = Math(tuple(known), query)
        return await calculator.solve(len(known) + 1, form, known, language, run)

    async def deduce_answer(query: str, known: Sequence[str], language: Language, run: Run) -> str:
        form = Deduce(Operation.EXTRACT, tuple(known), query)
        return await deducer.solve(len(known) + 1, form, known, language, run)

    forms = parts.retriever(FORMS, (GRAPH,)) if GRAPH in parts.sources else None
    hybrid = parts.retriever(HYBRID, parts.sources) if HYBRID in parts.carriers else None
    solvers = {"Math": run_program, "Deduce": deduce_answer}
    return {"forms": forms, "hybrid": hybrid, "solvers": solvers}


def _knowledge_sources(parts: Parts) -> tuple[KnowledgeSource, ...]:
    """Each source by itself, described as for a source planner."""
    offers = {offer.name: offer for offer in parts.offers}
    languages: tuple[Language, ...] = ("en", "zh")
    sources = []
    for name in parts.sources:
        offer = offers.get(name, SourceDescription(name))
        described = {language: offer.describe_in(language) for language in languages}
        found = parts.retriever(f"chain-of-knowledge:{name}", (name,))
        sources.append(KnowledgeSource(name, found, described, offer.is_graph))
    return tuple(sources)


def _corpus_graph(parts: Parts) -> CorpusGraph | None:
    if WALK not in parts.carriers:
        return None
    triples, walk = (parts.retriever(name, parts.sources) for name in (TRIPLES, WALK))
    return CorpusGraph(triples, walk)


def _with_settings(settings: sections.BaselineSettings, **given: object) -> Solver:
    """The settings' method with `given` and the settings of the same names as its fields."""
    method = METHOD_CLASSES[type(settings)]
    named = {field.name for field in fields(method)} & type(settings).model_fields.keys()
    values = {name: getattr(settings, name) for name in named - given.keys()}
    built: Solver = method(**given, **values)
    return built


def _method_deps(build: StrategyBuild, method: sections.BaselineSettings) -> MethodDeps:
    parts = build.parts
    user: str = method.kind
    sources, k = parts.sources, getattr(method, "k", 1)
    if isinstance(method, sections.HyKgeSettings):
        user, sources = CHAINS, (GRAPH,)
    found = parts.retriever(user, sources)
    return MethodDeps(build.reader, found, build.composer, sources, k, build.sampling)


def _need_sensor(
    method: sections.DraginSettings | sections.DraginEntropySettings,
    model: LanguageModel,
) -> NeedSensor:
    if isinstance(method, sections.DraginEntropySettings):
        return EntropySensor()
    if isinstance(model, Attentive):
        return AttentionSensor(model, scaled=method.scaled)
    raise CapabilityMissing(
        f"dragin needs the model's attention, and {model.name} hides it",
        fix='set model.kind = "transformers", or strategy.kind = "dragin-entropy"',
    )


def _trained_critic(model: LanguageModel) -> Critic:
    if isinstance(model, Likelihood):
        return TrainedCritic(model)
    raise CapabilityMissing(
        f"reflection tokens are weighed by likelihood, and {model.name} gives none",
        fix='take strategy.kind = "self-rag-prompted", which asks any model in words',
    )


def _three_levels(
    method: sections.AdaptiveRagSettings, kit: MethodDeps
) -> dict[str, Solver | None]:
    """The methods for Adaptive-RAG's three levels; IRCoT has its own settings."""
    ircot = sections.IrCotSettings()
    return {
        "none": Direct(kit.model, kit.composer, kit.sampling),
        "once": RetrieveAndRead(kit),
        "several": _with_settings(ircot, kit=replace(kit, k=ircot.k)) if method.several else None,
    }

"""The methods of other papers, as the settings ask for them."""

from __future__ import annotations

from typing import assert_never

from osler.answer import Composer
from osler.app.config import baselines as chosen
from osler.app.wiring import CHAINS, Parts
from osler.errors import CapabilityMissing
from osler.llm.core.base import Attentive, LanguageModel, Likelihood, Sampling
from osler.methods.baselines import (
    adaptive,
    chain_of_knowledge,
    chain_of_note,
    direct,
    dragin,
    fl_rag,
    flare,
    fs_rag,
    hipporag,
    hykge,
    i_medrag,
    ircot,
    kag_static,
    medrag,
    pike_rag,
    protocols,
    rag,
    react,
    search_o1,
    self_rag,
    self_rag_critics,
    sure,
)
from osler.methods.baselines.episode import MethodDeps
from osler.sources.catalogue import GRAPH
from osler.trace import Solver
from osler.types import Relevance


def baseline(
    method: chosen.AnyBaseline, parts: Parts, compose: Composer, sampling: Sampling
) -> Solver:
    """The method over these parts. Raises `CapabilityMissing` for what its model cannot do."""
    model = parts.model_for("reader")
    kit = _kit(method, parts, compose, sampling)
    match method:
        case chosen.FlRagSettings():
            return fl_rag.FixedLength(kit, method.window, method.length)
        case chosen.FsRagSettings():
            return fs_rag.EverySentence(kit, method.sentences, method.look_ahead)
        case chosen.FlareSettings():
            return flare.Flare(
                kit, method.theta, method.beta, method.query, method.look_ahead, method.rounds
            )
        case chosen.DraginSettings() | chosen.DraginEntropySettings():
            return _dragin(method, kit, model)
        case chosen.ChainOfNoteSettings():
            return chain_of_note.ChainOfNote(kit)
        case chosen.ChainOfKnowledgeSettings():
            return chain_of_knowledge.ChainOfKnowledge(
                kit, method.samples, method.temperature, method.rationales
            )
        case chosen.SureSettings():
            return sure.SuRe(kit, method.candidates)
        case chosen.HyKgeSettings():
            return hykge.HyKGE(kit, parts.relevance, method.candidates)
        case chosen.ReActSettings():
            return react.ReAct(kit, method.steps)
        case chosen.SelfRagSettings():
            return _self_rag(method, kit, model)
        case chosen.AdaptiveRagSettings():
            return _adaptive(method, kit)
        case chosen.IrCotSettings():
            return ircot.IRCoT(kit, method.steps, method.passages, method.reader)
        case chosen.SearchO1Settings():
            return search_o1.SearchO1(kit, method.searches, method.refine)
        case chosen.R1GenSettings():
            return protocols.ProtocolSearch(kit, protocols.SPEECHES[method.kind], turns=0)
        case (
            chosen.SearchR1Settings()
            | chosen.ZeroSearchSettings()
            | chosen.StepSearchSettings()
            | chosen.ReSearchSettings()
        ):
            return protocols.ProtocolSearch(kit, protocols.SPEECHES[method.kind], method.turns)
        case chosen.HippoRagSettings():
            return _hipporag(method, kit, parts.relevance)
        case chosen.PikeRagSettings():
            return _pike_rag(method, kit, parts.relevance)
        case chosen.KagStaticSettings():
            return kag_static.KagStatic(kit, method.tasks)
        case chosen.MedRagSettings():
            return medrag.MedRag(kit)
        case chosen.IMedRagSettings():
            return i_medrag.IMedRag(kit, method.rounds, method.queries)
        case _ as never:
            assert_never(never)


def _kit(
    method: chosen.AnyBaseline, parts: Parts, compose: Composer, sampling: Sampling
) -> MethodDeps:
    user: str = method.kind
    sources, k = parts.sources, 1
    if not isinstance(method, chosen.R1GenSettings):
        k = method.k
    if isinstance(method, chosen.HyKgeSettings):
        user, sources = CHAINS, (GRAPH,)
    return MethodDeps(
        parts.model_for("reader"), parts.retriever(user, sources), compose, sources, k, sampling
    )


def _dragin(
    method: chosen.DraginSettings | chosen.DraginEntropySettings,
    kit: MethodDeps,
    model: LanguageModel,
) -> Solver:
    sensor: dragin.NeedSensor
    if isinstance(method, chosen.DraginEntropySettings):
        sensor = dragin.EntropySensor(method.threshold, method.words)
    else:
        attentive = _attentive(model)
        sensor = dragin.AttentionSensor(attentive, method.threshold, method.words, method.scaled)
    return dragin.Dragin(kit, sensor, method.look_ahead, method.rounds)


def _attentive(model: LanguageModel) -> Attentive:
    if isinstance(model, Attentive):
        return model
    raise CapabilityMissing(
        f"dragin needs the model's attention, and {model.name} hides it",
        fix='set model.kind = "transformers", or strategy.kind = "dragin-entropy"',
    )


def _hipporag(method: chosen.HippoRagSettings, kit: MethodDeps, relevance: Relevance) -> Solver:
    return hipporag.HippoRag(
        kit,
        relevance,
        method.depth,
        method.triples,
        method.passage_weight,
        method.damping,
    )


def _pike_rag(method: chosen.PikeRagSettings, kit: MethodDeps, relevance: Relevance) -> Solver:
    return pike_rag.PikeRag(
        kit,
        relevance,
        method.steps,
        method.proposals,
        method.atoms,
        method.likeness,
        method.candidates,
    )


def _self_rag(method: chosen.SelfRagSettings, kit: MethodDeps, model: LanguageModel) -> Solver:
    critic: self_rag.Critic = self_rag_critics.PromptedCritic()
    if method.form == "trained":
        if not isinstance(model, Likelihood):
            raise CapabilityMissing(
                f"reflection tokens are weighed by likelihood, and {model.name} tells none",
                fix='set strategy.form = "prompted"',
            )
        critic = self_rag_critics.TrainedCritic(model)
    return self_rag.SelfRag(
        kit,
        critic,
        method.threshold,
        method.relevance,
        method.support,
        method.utility,
        method.beam,
        method.segments,
    )


def _adaptive(method: chosen.AdaptiveRagSettings, kit: MethodDeps) -> Solver:
    several = chosen.IrCotSettings()
    steps = ircot.IRCoT(
        MethodDeps(kit.model, kit.retriever, kit.composer, kit.sources, several.k, kit.sampling),
        several.steps,
        several.passages,
        several.reader,
    )
    return adaptive.Adaptive(
        kit,
        direct.Direct(kit.model, kit.composer, kit.sampling),
        rag.RetrieveAndRead(
            kit.model, kit.retriever, kit.composer, kit.sources, kit.k, kit.sampling
        ),
        steps if method.several else None,
    )

"""Settings → objects: the only module that knows everything.

A strategy is built from `Parts`, which come in three kinds: live ones, live ones
that are being recorded, and replayed ones that touch no model, encoder or
knowledge base. The strategy cannot tell them apart.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from osler.answer.base import Composer
from osler.answer.extractive import Extractive, Gate, Least
from osler.answer.written import Written
from osler.config import Cot, Direct, Rag, Settings, TcRag
from osler.errors import BadConfig, CapabilityMissing, KnowledgeBaseMissing
from osler.kb.base import Built, KnowledgeBase, Progress
from osler.llm.base import LanguageModel, Likelihood, Sampling
from osler.llm.tape import (
    Player,
    RecordingRelevance,
    RecordingRetriever,
    ReplayingRelevance,
    ReplayingRetriever,
    Tape,
    recording,
    replaying,
)
from osler.retrieve.dense import Dense
from osler.retrieve.hybrid import Hybrid
from osler.retrieve.lexical import Lexical
from osler.retrieve.relevance import ByLanguage, Coverage, EncoderRelevance, Overlap
from osler.tcrag import tools as tcrag_tools
from osler.tcrag.machine import TuringMachine
from osler.tcrag.monitor import SIGMA, Cppl, Monitor, Uct, Unmonitored
from osler.tcrag.moves import AnyMove, Guided, Moves
from osler.trace import Budget, Solver
from osler.types import ALL_SOURCES, EMR, Hit, Language, Relevance, Retriever

if TYPE_CHECKING:
    from osler.kb.embed import Encoder

PACKAGED = "smollm2-135m-instruct-q8_0"

PACKAGED_SIGMA = {"cppl": 45.0, "uct": 32.0, "off": SIGMA["off"]}
"""Fitted to the packaged model: nine in ten of its answers to the 24 calibration questions
lie below (`benchmarks/calibrate.py`)."""

_SHORT = 160
"""Characters of an action by a model whose words nobody quotes."""

_SAMPLE_LICENCE = "Apache-2.0"


@dataclass(frozen=True)
class Parts:
    """What a strategy is built from."""

    model: LanguageModel
    retriever: Callable[[str, tuple[str, ...]], Retriever]
    """Name of its user and sources → retriever."""
    relevance: Relevance
    """Of a sentence to a question."""
    coverage: Relevance
    """Of a question by a passage."""
    sources: tuple[str, ...]
    """Those that the knowledge base holds and the settings allow."""
    snapshot: str = ""
    constrains: bool = True
    """Whether the model takes a grammar."""


# Models and encoders


async def language_model(settings: Settings) -> tuple[LanguageModel, bool]:
    """The configured model, ready to be asked, and whether it takes a grammar.

    A file that is cut short, or a server that is not there, is refused before a run
    begins. Raises `ModelError`.
    """
    chosen = settings.model
    if chosen.kind == "openai":
        from osler.llm import openai

        endpoint = openai.Endpoint(
            base_url=chosen.url,
            model=chosen.name,
            api_key=_key(chosen.key_file),
            timeout_s=chosen.timeout_s,
        )
        served = await openai.connect(endpoint)
        return served, served.constrains
    return await asyncio.to_thread(_embedded, settings), True


def _key(file: Path | None) -> str | None:
    """The server's key; it is read here and stored nowhere."""
    if file is None:
        return os.environ.get("OPENAI_API_KEY")
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        fix = "set model.key_file to a file that holds the key alone"
        raise BadConfig(f"the key file {file} cannot be read: {error}", fix=fix) from error


def _embedded(settings: Settings) -> LanguageModel:
    from osler.llm.local import LlamaCpp, check_gguf
    from osler.llm.quantise import default_gguf

    chosen = settings.model
    if chosen.kind == "packaged":
        path, name = default_gguf(), PACKAGED
    else:
        assert chosen.path is not None, "the settings refuse gguf without a path"  # noqa: S101
        path, name = chosen.path, chosen.path.stem
        check_gguf(path)
    model = LlamaCpp(path, name=name, context=chosen.context, threads=chosen.thread_count)
    model.load()
    return model


def encoder(settings: Settings) -> Encoder:
    """The default sentence encoder. Raises `ModelMissing`."""
    from osler.kb.embed import MiniLM

    return MiniLM()


def relevance(encoder: Encoder) -> Relevance:
    return ByLanguage(EncoderRelevance(encoder), Overlap())


# Knowledge base


def knowledge_base(settings: Settings) -> KnowledgeBase:
    """The configured knowledge base. Raises `KnowledgeBaseError`."""
    return KnowledgeBase.open(settings.kb.path)


def open_or_create(settings: Settings) -> KnowledgeBase:
    try:
        return knowledge_base(settings)
    except KnowledgeBaseMissing:
        return KnowledgeBase.create(settings.kb.path)


def build_sample(settings: Settings, progress: Progress | None = None) -> Built:
    """Puts the packaged sample texts into the configured knowledge base and builds it."""
    with open_or_create(settings) as kb:
        with as_file(files("osler.sample")) as folder:
            for source in ALL_SOURCES:
                kb.add(
                    [folder / source],
                    source=source,
                    licence=_SAMPLE_LICENCE,
                    illustrative=True,
                    progress=progress,
                )
        return kb.build(encoder(settings), progress=progress)


def searched(settings: Settings, kb: KnowledgeBase) -> tuple[str, ...]:
    """The sources to search: those allowed that are there; patients only when named.

    Raises `BadConfig` for a source that is asked for and not there.
    """
    present, wanted = kb.sources, settings.kb.sources
    if not wanted:
        return _ordered(set(present) - {EMR})
    if absent := set(wanted) - set(present):
        raise BadConfig(
            f"the knowledge base has no source {', '.join(sorted(absent))}",
            fix=f"choose from {', '.join(_ordered(present))}, or `osler kb add` it",
        )
    return _ordered(wanted)


def retriever(
    settings: Settings, kb: KnowledgeBase, encoder: Encoder, sources: tuple[str, ...]
) -> Retriever:
    chosen = settings.retrieve
    return Hybrid(
        Dense(kb, encoder, sources),
        Lexical(kb, sources),
        dense_weight=chosen.dense_weight,
        lexical_weight=chosen.lexical_weight,
        constant=chosen.rrf_k,
        depth=chosen.depth,
    )


async def search(settings: Settings, query: str, *, k: int, sources: Iterable[str]) -> list[Hit]:
    """One search of the configured knowledge base; no `sources` = all but patients."""
    with knowledge_base(settings) as kb:
        chosen = encoder(settings)
        kb.require_built(chosen.identity)
        named = tuple(sources) or searched(settings, kb)
        return await retriever(settings, kb, chosen, named).search(query, k=k)


# Parts


async def live(settings: Settings) -> Parts:
    """The real model, and the real knowledge base where the strategy reads one."""
    model, constrains = await language_model(settings)
    if isinstance(settings.strategy, Direct | Cot):
        return Parts(model, _no_retriever, Overlap(), Overlap(), (), constrains=constrains)
    kb, chosen = knowledge_base(settings), encoder(settings)
    kb.require_built(chosen.identity)
    return Parts(
        model,
        lambda name, sources: retriever(settings, kb, chosen, sources),
        relevance(chosen),
        Coverage(kb.rarity),
        searched(settings, kb),
        kb.snapshot,
        constrains,
    )


def recorded(parts: Parts, tape: Tape) -> Parts:
    """The same parts, with everything that they give written to the tape."""
    return Parts(
        recording(parts.model, tape),
        lambda name, sources: RecordingRetriever(name, parts.retriever(name, sources), tape),
        RecordingRelevance("relevance", parts.relevance, tape),
        RecordingRelevance("coverage", parts.coverage, tape),
        parts.sources,
        parts.snapshot,
        parts.constrains,
    )


def replayed(tape: Tape, sources: tuple[str, ...], snapshot: str) -> Parts:
    """What the tape holds, and nothing else."""
    player = Player(tape)
    return Parts(
        replaying(player),
        lambda name, sources: ReplayingRetriever(name, player),
        ReplayingRelevance("relevance", player),
        ReplayingRelevance("coverage", player),
        sources,
        snapshot,
        tape.constrains,
    )


# Strategies


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
    )


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


def _ordered(sources: Iterable[str]) -> tuple[str, ...]:
    """Osler's own sources in the papers' order, then the user's by name."""
    given = set(sources)
    own = sorted(given - set(ALL_SOURCES))
    return (*(source for source in ALL_SOURCES if source in given), *own)


def _no_retriever(name: str, sources: tuple[str, ...]) -> Retriever:
    raise BadConfig(f"{name} searches nothing")

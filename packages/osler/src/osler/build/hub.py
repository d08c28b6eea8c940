"""The models that transformers runs, and the encoders and rerankers that servers run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from osler.errors import BadConfig, ModelError, read_text_file
from osler.llm.core.cache import cache_dir
from osler.retrieve.asked import QuestionReader
from osler.retrieve.experts.cards import open_expert
from osler.retrieve.experts.judge import (
    JUDGE,
    MATCH,
    JudgeExpert,
    JudgeRelevance,
    MatchEncoder,
    MatchRelevance,
)
from osler.retrieve.experts.kinds import KINDS, SentenceKinds
from osler.retrieve.experts.label_sections import LABEL_SECTIONS, LabelSections
from osler.retrieve.pooled import RerankedRetriever
from osler.settings import (
    EmbedderSettings,
    KagThinkerSettings,
    ModelSettings,
    RerankerSettings,
    Settings,
)
from osler.sources.catalogue import EMR, GRAPH
from osler.text import load_plugins
from osler.types import Language, Relevance, Retriever

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from osler.kb.encoders.base import Encoder
    from osler.kb.encoders.e5 import E5Encoder
    from osler.llm.server.connection import ServerClient
    from osler.llm.transformers.hub import Weights
    from osler.llm.transformers.model import TransformersModel

_SERVER_S = 120.0
"""Seconds for one batch of texts on a server of encoders or rerankers, which none exceeds."""


def open_transformers_model(chosen: ModelSettings) -> TransformersModel:
    """Loads the weights now. Raises `ModelError`."""
    from osler.llm.transformers.model import open_transformers

    return open_transformers(
        _locate_weights(chosen.path, chosen.name, chosen.revision),
        dtype=chosen.dtype,
        device=chosen.device,
        adapter=chosen.adapter,
        context=chosen.context,
    )


@lru_cache(maxsize=1)
def open_minilm(cache: Path) -> Encoder:
    """One for the process: what the notice of danger has encoded, no search encodes again."""
    from osler.kb.encoders.base import MiniLMEncoder, VectorMemory

    return VectorMemory(MiniLMEncoder(cache=cache))


@lru_cache(maxsize=1)
def load_e5(cache: Path) -> E5Encoder:
    """One for the process."""
    from osler.kb.encoders.e5 import E5Encoder

    return E5Encoder(cache=cache)


def read_tokens(text: str) -> tuple[list[tuple[int, int]], NDArray[Any]] | None:
    """As `E5Encoder.read_tokens`; `None` where the encoder is not installed."""
    try:
        return load_e5(cache_dir()).read_tokens(text)
    except ModelError:
        # The search names what is not installed; until then rules read the question.
        return None


@lru_cache(maxsize=1)
def open_e5(cache: Path) -> Encoder:
    """As `open_minilm`; passages are remembered by what loads it late."""
    from osler.kb.encoders.base import VectorMemory

    return VectorMemory(load_e5(cache), passages=0)


def open_encoder(chosen: EmbedderSettings) -> Encoder:
    """The configured encoder; one with weights of its own loads them now. Raises `ModelError`."""
    match chosen.kind:
        case "packaged":
            return open_minilm(cache_dir())
        case "openai":
            from osler.kb.encoders.hub import OpenAIEncoder

            return OpenAIEncoder(
                _server_client(chosen, "embedder"),
                languages=frozenset(chosen.languages),
                query_prefix=chosen.query_prefix,
                passage_prefix=chosen.passage_prefix,
            )
        case "hub":
            return _open_hub_encoder(chosen)
        case "medcpt":
            from osler.kb.encoders import hub

            return hub.medcpt_encoder(
                _locate_weights(chosen.path, hub.MEDCPT_QUERY, chosen.revision),
                _locate_weights(chosen.passage_path, hub.MEDCPT_ARTICLE, chosen.passage_revision),
                dtype="auto",
            )
        case "plugin":
            return _open_brought_encoder(chosen.name)
        case _ as never:
            assert_never(never)


def _open_brought_encoder(name: str) -> Encoder:
    brought = load_plugins("osler.encoders")
    if name not in brought:
        known = ", ".join(brought) or "none"
        raise BadConfig(
            f"no installed package brings an encoder {name!r}",
            fix=f"set embedder.name; known: {known}",
        )
    encoder: Encoder = brought[name]()
    return encoder


def _open_hub_encoder(chosen: EmbedderSettings) -> Encoder:
    from osler.kb.encoders.hub import EncoderSide, HubEncoder

    asked = _locate_weights(chosen.path, chosen.name, chosen.revision)
    read = asked
    if chosen.passage_name or chosen.passage_path:
        read = _locate_weights(chosen.passage_path, chosen.passage_name, chosen.passage_revision)
    return HubEncoder(
        EncoderSide(asked, chosen.longest, chosen.query_prefix),
        EncoderSide(read, chosen.longest, chosen.passage_prefix),
        pooling=chosen.pooling,
        languages=frozenset(chosen.languages),
        dtype="auto",
    )


def open_reranker(settings: Settings) -> Relevance | None:
    """Opens the configured reranker; `None` = no reranking. Raises `ModelError`."""
    chosen = settings.reranker
    match chosen.kind:
        case "none":
            return None
        case "openai":
            from osler.retrieve.rerankers import OpenAIReranker

            return OpenAIReranker(_server_client(chosen, "reranker"))
        case "hub":
            from osler.retrieve.rerankers import CrossEncoder

            return CrossEncoder(
                _locate_weights(chosen.path, chosen.name, chosen.revision),
                dtype="auto",
            )
        case _ as never:
            assert_never(never)


@lru_cache(maxsize=4)
def _open_judge(path: Path | None) -> JudgeExpert:
    """Opened once, since many questions share it."""
    return JudgeExpert(open_expert(JUDGE, path))


@lru_cache(maxsize=4)
def _open_match(path: Path | None) -> MatchEncoder:
    return MatchEncoder(open_expert(MATCH, path))


def open_judges(
    settings: Settings, reader: QuestionReader | None = None
) -> tuple[Relevance | None, Relevance | None, tuple[str, ...]]:
    """Opens the judge of sentences and the encoder that is weighed beside it, where the settings
    name them; else, or where one of them cannot be used, neither, with what the reader of answers
    must know of it."""
    chosen = settings.answer
    if chosen.judge == "off":
        return None, None, ()
    try:
        judge = JudgeRelevance(_open_judge(chosen.judge_path), reader)
        match = MatchRelevance(_open_match(chosen.match_path), reader)
    except ModelError as error:
        return None, None, (str(error),)
    return judge, match, ()


def open_experts(
    settings: Settings, encoder: Encoder, reader: QuestionReader
) -> tuple[Relevance | None, Relevance | None, tuple[str, ...], Relevance | None, Relevance | None]:
    """As `open_judges`, and as `open_section_experts` before and behind the faults of all."""
    judge, match, faults = open_judges(settings, reader)
    kinds, label_sections, unusable = open_section_experts(settings, encoder)
    return judge, match, (*faults, *unusable), kinds, label_sections


def open_section_experts(
    settings: Settings, encoder: Encoder
) -> tuple[Relevance | None, Relevance | None, tuple[str, ...]]:
    """Opens the experts that tell kinds of sentences and sections of labels, beside the judge and
    over those of the packaged encoders that are set; else, or where one of them cannot be used,
    neither, with what the reader of answers must know of it."""
    from osler.kb.encoders.base import MiniLMEncoder, encoder_for
    from osler.kb.encoders.e5 import E5Encoder

    packaged: Mapping[Language, str] = {"en": MiniLMEncoder.identity, "zh": E5Encoder.identity}
    own = {language: encoder_for(encoder, language) for language in packaged}
    own = {one: made for one, made in own.items() if made.identity == packaged[one]}
    if settings.answer.judge == "off" or not own:
        return None, None, ()
    try:
        kinds = SentenceKinds.of_expert(open_expert(KINDS), own)
        if "en" not in own:
            return kinds, None, ()
        return kinds, LabelSections.of_expert(open_expert(LABEL_SECTIONS), own["en"]), ()
    except ModelError as error:
        return None, None, (str(error),)


def search_server(settings: Settings) -> Retriever | None:
    """The search server of KAG-Thinker's released code, where one is set."""
    chosen = settings.strategy
    if not isinstance(chosen, KagThinkerSettings) or not chosen.search_url:
        return None
    from osler.llm.server.connection import ServerClient
    from osler.llm.server.endpoint import Endpoint
    from osler.retrieve.web import SearchServer

    endpoint = Endpoint(base_url=chosen.search_url, model="", section="strategy")
    return SearchServer(ServerClient(endpoint))


def with_reranker(
    settings: Settings, inner: Retriever, second: Relevance | None, sources: tuple[str, ...]
) -> Retriever:
    """The search with the second look, where there is one; patients stand by their likeness, and
    the graph has weighed its relations itself."""
    # Likeness of patients and relevance of relations are not that of texts to a question.
    if second is None or sources in ((EMR,), (GRAPH,)):
        return inner
    depth = settings.reranker.depth
    return RerankedRetriever(inner, second, depth=depth, k=depth)


def _locate_weights(path: Path | None, name: str, revision: str) -> Weights:
    from osler.llm.transformers.hub import PinnedModel

    return path if path is not None else PinnedModel(name, revision)


def _server_client(chosen: EmbedderSettings | RerankerSettings, section: str) -> ServerClient:
    from osler.llm.server.connection import ServerClient
    from osler.llm.server.endpoint import Endpoint

    return ServerClient(
        Endpoint(
            base_url=chosen.url,
            model=chosen.name,
            api_key=read_server_key(chosen.key_file, section),
            timeout_s=_SERVER_S,
            section=section,
        )
    )


def read_server_key(
    file: Path | None, section: str, variable: str = "OPENAI_API_KEY"
) -> str | None:
    """The file's words, else `variable` of the environment. Raises `BadConfig`."""
    if file is None:
        return os.environ.get(variable)
    fix = f"set {section}.key_file to a file that holds the key alone"
    return read_text_file(file, BadConfig, fix, what="the key file ").strip()

"""The models that the settings name: language model and text encoder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from osler.build.hub import open_e5, open_encoder, open_transformers_model, read_server_key
from osler.kb.encoders.base import (
    Encoder,
    EncoderByLanguage,
    LateEncoder,
    VectorMemory,
    encoder_for,
)
from osler.llm.core.base import LanguageModel
from osler.llm.core.cache import cache_dir
from osler.llm.local.weights import E5, is_present
from osler.retrieve.asked import QuestionReader
from osler.retrieve.relevance import (
    CoverageRelevance,
    EncoderRelevance,
    MeaningRelevance,
    OverlapRelevance,
    RelevanceByLanguage,
    TermRarity,
)
from osler.settings import ModelSettings, Role, Settings
from osler.types import Language, Relevance

if TYPE_CHECKING:
    from osler.llm.server.dialects import ConstraintKind
    from osler.llm.server.endpoint import Endpoint

_ENGINES_WORDS = {"grammar": "GBNF", "schema": "JSON schema"}

# Settings of a model that do not change what it replies.
_SERVES = ("key_file", "timeout_s", "slots", "parallel", "threads", "writes")

PACKAGED = "smollm2-135m-instruct-q8_0"


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that can be asked now."""

    model: LanguageModel
    constrains: bool = True
    """Whether it takes a grammar."""
    formats: tuple[str, ...] = ("GBNF",)
    """What its replies can be held to, as engines call it."""
    tells: bool = False
    """Whether its replies were seen to come with log-probabilities."""


async def load_roles(
    settings: Settings, roles: Iterable[Role], ready: dict[ModelSettings, LoadedModel] | None = None
) -> dict[Role, LoadedModel]:
    """Loads a model for each role; roles with equal settings share one loaded model.

    `ready` holds what is loaded already, and is given what has to be loaded now.
    """
    ready = {} if ready is None else ready
    played: dict[Role, LoadedModel] = {}
    usual = settings.model.model_copy(update={"writes": "auto"})
    for role in roles:
        # Whether its words may be answers does not make it another model.
        chosen = settings.model_for(role).model_copy(update={"writes": "auto"})
        if chosen not in ready:
            section = "model" if chosen == usual else f"roles.{role}"
            ready[chosen] = await load_model(chosen, section)
        played[role] = ready[chosen]
    return played


async def load_model(chosen: ModelSettings, section: str = "model") -> LoadedModel:
    """The model, ready to be asked; `section` of the settings is named in what goes wrong.

    A file that is cut short, or a server that is not there, is refused before a run
    begins. Raises `ModelError`.
    """
    if chosen.kind == "openai":
        from osler.llm.server import client

        endpoint = model_endpoint(chosen, section)
        served = await client.connect_server(endpoint)
        served.allowance.tokens = chosen.thinking
        formats = engine_formats(served.server.kinds)
        return LoadedModel(served, served.constrains, formats, served.server.logprobs)
    if chosen.kind == "transformers":
        opened = await asyncio.to_thread(open_transformers_model, chosen)
        opened.allowance.tokens = chosen.thinking
        return LoadedModel(opened, False, ())
    return LoadedModel(await asyncio.to_thread(_load_embedded, chosen))


def engine_formats(kinds: frozenset[ConstraintKind]) -> tuple[str, ...]:
    """What a server's replies can be held to, as engines call it, the most exact first."""
    from osler.llm.server.dialects import ConstraintKind

    found = [kind.value for kind in ConstraintKind if kind in kinds]
    return tuple(_ENGINES_WORDS.get(kind, kind) for kind in found)


def model_endpoint(chosen: ModelSettings, section: str = "model") -> Endpoint:
    """The address of a server's model, with its key. Raises `BadConfig`."""
    from osler.llm.server.endpoint import Endpoint

    return Endpoint(
        base_url=chosen.url,
        model=chosen.name,
        api_key=read_server_key(chosen.key_file, section),
        timeout_s=chosen.timeout_s,
        max_concurrency=chosen.parallel,
        section=section,
        fields=chosen.request_fields,
    )


def model_identity(chosen: ModelSettings) -> str:
    """Identity of a model beyond its name: its settings, and its files' sizes and times."""
    told = chosen.model_dump(mode="json", exclude=set(_SERVES))
    places = filter(None, (chosen.path, chosen.adapter))
    told["files"] = [
        (file.name, stat.st_size, stat.st_mtime_ns)
        for place in places
        for file in (sorted(place.rglob("*")) if place.is_dir() else [place])
        if not file.is_dir()
        for stat in [file.stat()]
    ]
    return json.dumps(told, sort_keys=True)


def _load_embedded(chosen: ModelSettings) -> LanguageModel:
    from osler.llm.local.engine import check_gguf
    from osler.llm.local.gguf_files import default_gguf
    from osler.llm.local.model import LlamaCpp

    if chosen.kind == "packaged":
        path, name = default_gguf(), PACKAGED
    else:
        assert chosen.path is not None, "the settings refuse gguf without a path"  # noqa: S101
        path, name = chosen.path, chosen.path.stem
        check_gguf(path)
    model = LlamaCpp(
        path,
        name=name,
        context=chosen.context,
        threads=chosen.thread_count,
        slots=chosen.slots,
        timeout_s=chosen.timeout_s,
    )
    model.allowance.tokens = chosen.thinking if chosen.kind != "packaged" else 0
    # The packaged file was checked when it was made, and a quoted answer needs no language model.
    if chosen.kind != "packaged":
        model.load()
    return model


def load_encoder(settings: Settings) -> Encoder:
    """The configured encoder; beside the packaged one, that for Chinese where its weights are.

    Raises `ModelError`.
    """
    usual = open_encoder(settings.embedder)
    if not isinstance(usual, VectorMemory):
        usual = VectorMemory(usual)
    if settings.embedder.kind != "packaged" or not is_present(E5):
        return usual
    from osler.kb.encoders.e5 import E5Encoder

    chinese = LateEncoder(
        E5Encoder.identity,
        E5Encoder.dimension,
        E5Encoder.languages,
        load=partial(open_e5, cache_dir()),
    )
    return EncoderByLanguage(usual, {"zh": VectorMemory(chinese)})


def encoder_languages(settings: Settings) -> frozenset[Language]:
    """The languages of the configured encoder, which is not loaded for it."""
    chosen = settings.embedder
    match chosen.kind:
        case "packaged":
            return frozenset({"en", "zh"} if is_present(E5) else {"en"})
        case "medcpt":
            return frozenset({"en"})
        case _:
            return frozenset(chosen.languages)


def encoder_relevance(
    encoder: Encoder, reader: QuestionReader | None = None, rarity: TermRarity | None = None
) -> Relevance:
    """Cosines in the encoder's languages, shares of words in others; `reader` reads queries.

    A language with an encoder of its own is among the others: its cosines have another scale.
    """
    other = CoverageRelevance(rarity) if rarity else OverlapRelevance()
    return RelevanceByLanguage(EncoderRelevance(encoder_for(encoder, "en"), reader), other)


def meaning_relevance(encoder: Encoder, reader: QuestionReader) -> Relevance | None:
    """Relevance of Chinese texts by their own encoder; `None` without one."""
    own = encoder_for(encoder, "zh")
    if own is encoder_for(encoder, "en"):
        return None
    return MeaningRelevance(EncoderRelevance(own, reader))

"""The models that the settings name: the one that speaks, and the encoder of texts."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from osler.config import Settings
from osler.errors import BadConfig
from osler.llm.base import LanguageModel
from osler.retrieve.relevance import ByLanguage, EncoderRelevance, Overlap
from osler.types import Relevance

if TYPE_CHECKING:
    from osler.kb.embed import Encoder

PACKAGED = "smollm2-135m-instruct-q8_0"


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
    from osler.llm.engine import check_gguf
    from osler.llm.local import LlamaCpp
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

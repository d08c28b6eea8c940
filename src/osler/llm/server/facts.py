"""What a server tells of itself beside its replies: windows, slots, names of models.

| Server | Where it says how long its context is |
|---|---|
| vLLM, SGLang | `max_model_len` in the list of models |
| OpenRouter, Groq | `context_length`, `context_window` in the list of models |
| llama.cpp | `n_ctx` of `/props`, which also has `total_slots` |
| Ollama | `/api/ps` what is allotted, `/api/show` the model's own |
| LM Studio | `loaded_context_length` of `/api/v0/models` |

A server that keeps a fact to itself is none that lacks it: it is `None` then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from osler.llm.server.connection import Endpoint, ServerClient, ServerSession
from osler.llm.server.dialects import Dialect
from osler.llm.server.probe import ask_models, ask_root, model_entries

_IN_LIST = ("max_model_len", "context_length", "context_window", "max_context_length")


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What was told; `None` where it was not."""

    models: tuple[str, ...] = ()
    context: int | None = None
    """Tokens of prompt and reply together, as they are allotted now."""
    longest: int | None = None
    """Tokens that the model could have, where that is more."""
    slots: int | None = None
    """Calls that are worked on at once."""


async def read_facts(door: ServerClient, dialect: Dialect) -> ServerFacts:
    """Reads what the server tells. Raises `ModelUnreachable` and `KeyRefused`."""
    async with door.open() as line:
        listed = model_entries(await ask_models(line))
        models = tuple(str(one["id"]) for one in listed if one.get("id"))
        match dialect:
            case Dialect.LLAMA_CPP:
                return await _read_llama(line, models)
            case Dialect.OLLAMA:
                return await _read_ollama(line, models, door.endpoint)
            case _:
                context = _find_window(listed, door.endpoint.model)
                if context is None and dialect is Dialect.GENERIC:
                    context = await _read_lm_studio(line, door.endpoint.model)
                return ServerFacts(models, context)


async def list_models(door: ServerClient) -> tuple[str, ...]:
    """Names of the models that the server lists. Raises as a request does."""
    async with door.open() as line:
        listed = model_entries(await line.request_json("/models", hasty=True))
    return tuple(str(one["id"]) for one in listed if one.get("id"))


def _find_window(entries: list[Mapping[str, Any]], model: str) -> int | None:
    """Of the model's entry; of the only one, where none has its name."""
    named = [one for one in entries if one.get("id") in (model, f"{model}:latest")]
    for one in named or (entries if len(entries) == 1 else []):
        for key in _IN_LIST:
            if (count := _whole(one.get(key))) is not None:
                return count
    return None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


async def _read_llama(line: ServerSession, models: tuple[str, ...]) -> ServerFacts:
    told = await ask_root(line, "/props")
    props = told if isinstance(told, Mapping) else {}
    usual = props.get("default_generation_settings")
    context = _whole(usual.get("n_ctx")) if isinstance(usual, Mapping) else None
    return ServerFacts(models, context, slots=_whole(props.get("total_slots")))


async def _read_ollama(
    line: ServerSession, models: tuple[str, ...], endpoint: Endpoint
) -> ServerFacts:
    told = await ask_root(line, "/api/ps")
    running = told.get("models") if isinstance(told, Mapping) else None
    names = (endpoint.model, f"{endpoint.model}:latest")
    allotted = [
        _whole(one.get("context_length"))
        for one in (running if isinstance(running, list) else [])
        if isinstance(one, Mapping) and one.get("name") in names
    ]
    shown = await ask_root(line, "/api/show", {"model": endpoint.model})
    info = shown.get("model_info") if isinstance(shown, Mapping) else None
    own = [
        _whole(value)
        for key, value in (info.items() if isinstance(info, Mapping) else ())
        if str(key).endswith(".context_length")
    ]
    return ServerFacts(models, next(iter(allotted), None), next(iter(own), None))


async def _read_lm_studio(line: ServerSession, model: str) -> int | None:
    entries = model_entries(await ask_root(line, "/api/v0/models"))
    loaded = [one.get("loaded_context_length") for one in entries if one.get("id") == model]
    return next(filter(None, map(_whole, loaded)), None)

"""Detects the kind of server by its distinctive endpoints."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from osler.errors import ModelError, ModelUnreachable
from osler.llm.server.connection import (
    Endpoint,
    KeyRefused,
    ServerBusy,
    ServerClient,
    ServerSession,
)
from osler.llm.server.dialects import TRAITS, Dialect, ServerProfile
from osler.llm.server.endpoint import BadReply, mapping_at

T = TypeVar("T")

DROPPABLE = frozenset(
    {"max_tokens", "temperature", "seed", "stop", "logprobs", "top_logprobs", "stream_options"}
)
"""Fields of a chat that are done without where a server refuses them."""
_LISTED = 10
"""Models that a message names."""


async def unless_refused(request: Awaitable[T]) -> T | None:
    """Awaits a request; returns None for one that the server refuses or garbles.

    A server that cannot be reached, or refuses the key, is one.
    """
    try:
        return await request
    except (ModelUnreachable, KeyRefused):
        raise
    except (ModelError, BadReply):
        return None


async def identify_server(line: ServerSession, endpoint: Endpoint) -> ServerProfile:
    """Detects the kind of server, and reads its list of models.

    Raises `ModelError` that names the models there are where this one is not among them,
    `ModelUnreachable`, and `KeyRefused`.
    """
    models = await ask_models(line)
    dialect = await _identify_dialect(line, model_entries(models))
    if TRAITS[dialect].lists_models:
        check_model(models, endpoint)
    entry = next((one for one in model_entries(models) if one.get("id") == endpoint.model), {})
    known = entry.get("supported_parameters")
    # OpenRouter lists what each model takes; what is not on the list is left out from the start.
    without = DROPPABLE - set(known) if isinstance(known, list) else frozenset()
    return ServerProfile(dialect, without=frozenset(without - {"max_tokens", "stream_options"}))


async def _identify_dialect(line: ServerSession, entries: list[Mapping[str, Any]]) -> Dialect:
    """Detects the dialect by endpoints; else by the list of models."""
    for dialect, traits in TRAITS.items():
        for path in traits.endpoints:
            reply = await ask_root(line, path)
            if mapping_at(reply).get(traits.key):
                return dialect
        if not traits.endpoints and any(traits.key in entry for entry in entries):
            return dialect
    return Dialect.GENERIC


async def ask_models(line: ServerSession) -> Any:
    """Asks for the list of models. A server whose list is broken may answer chats all the same."""
    try:
        return await unless_refused(line.request_json("/models", hasty=True))
    except ServerBusy:
        return None


async def ask_root(line: ServerSession, path: str, body: dict[str, Any] | None = None) -> Any:
    """Asks an endpoint outside `/v1`. A gateway may guard or break those it does not have."""
    try:
        return await unless_refused(line.request_json(path, body, root=True, hasty=True))
    except (KeyRefused, ServerBusy):
        return None


def model_entries(models: Any) -> list[Mapping[str, Any]]:
    """The entries of a list of models; none of what is no list."""
    listed = mapping_at(models).get("data")
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def check_model(models: Any, endpoint: Endpoint) -> None:
    """Raises `ModelError` that names the models of a list in which this one is not."""
    known, model = [str(one.get("id")) for one in model_entries(models)], endpoint.model
    if known and model not in known and f"{model}:latest" not in known:
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        named = ", ".join(known[:_LISTED])
        raise ModelError(
            f"the server has no model {model}, but {named}{more}",
            fix=f"set {endpoint.section}.name to one of them",
        )


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


async def read_facts(api: ServerClient, dialect: Dialect) -> ServerFacts:
    """Reads what the server tells. Raises `ModelUnreachable` and `KeyRefused`."""
    async with api.open() as line:
        listed = model_entries(await ask_models(line))
        models = _names_of(listed)
        match dialect:
            case Dialect.LLAMA_CPP:
                return await _read_llama(line, models)
            case Dialect.OLLAMA:
                return await _read_ollama(line, models, api.endpoint)
            case _:
                context = _find_window(listed, api.endpoint.model)
                if context is None and dialect is Dialect.GENERIC:
                    context = await _read_lm_studio(line, api.endpoint.model)
                return ServerFacts(models, context)


async def list_models(api: ServerClient) -> tuple[str, ...]:
    """Names of the models that the server lists. Raises as a request does."""
    async with api.open() as line:
        return _names_of(model_entries(await line.request_json("/models", hasty=True)))


def _names_of(entries: list[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(str(one["id"]) for one in entries if one.get("id"))


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
    props = mapping_at(await ask_root(line, "/props"))
    context = _whole(mapping_at(props, "default_generation_settings").get("n_ctx"))
    return ServerFacts(models, context, slots=_whole(props.get("total_slots")))


async def _read_ollama(
    line: ServerSession, models: tuple[str, ...], endpoint: Endpoint
) -> ServerFacts:
    running = mapping_at(await ask_root(line, "/api/ps")).get("models")
    names = (endpoint.model, f"{endpoint.model}:latest")
    allotted = [
        _whole(one.get("context_length"))
        for one in (running if isinstance(running, list) else [])
        if mapping_at(one).get("name") in names
    ]
    shown = await ask_root(line, "/api/show", {"model": endpoint.model})
    own = [
        _whole(value)
        for key, value in mapping_at(shown, "model_info").items()
        if str(key).endswith(".context_length")
    ]
    return ServerFacts(models, next(iter(allotted), None), next(iter(own), None))


async def _read_lm_studio(line: ServerSession, model: str) -> int | None:
    entries = model_entries(await ask_root(line, "/api/v0/models"))
    loaded = [one.get("loaded_context_length") for one in entries if one.get("id") == model]
    return next(filter(None, map(_whole, loaded)), None)

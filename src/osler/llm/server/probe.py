"""Detects the kind of server by its distinctive endpoints."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from osler.errors import ModelError, ModelUnreachable
from osler.llm.server.bounded_reading import BadReply
from osler.llm.server.connection import Endpoint, KeyRefused, ServerBusy, ServerSession
from osler.llm.server.dialects import TRAITS, Dialect, ServerProfile

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
    """Detects the dialect by endpoints; where there is none of them, by the list of models."""
    for dialect, traits in TRAITS.items():
        for path in traits.endpoints:
            reply = await ask_root(line, path)
            if isinstance(reply, Mapping) and reply.get(traits.key):
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
    listed = models.get("data") if isinstance(models, Mapping) else None
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

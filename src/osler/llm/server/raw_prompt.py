"""Completes raw prompts on servers: the `/completions` endpoint, past the chat template.

Its replies have another form than a chat's: here they are translated, and read as every other.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from osler.llm.core.base import Sampling
from osler.llm.server import replies
from osler.llm.server.bounded_reading import BadReply
from osler.llm.server.dialects import Dialect, ServerProfile, sampling_fields

DIALECTS = frozenset({Dialect.VLLM, Dialect.SGLANG, Dialect.LLAMA_CPP, Dialect.GENERIC})
"""Servers that are known to read such a prompt as it stands; Ollama puts it into a template."""


def completion_body(
    server: ServerProfile,
    model: str,
    prompt: str,
    sampling: Sampling,
    held: Mapping[str, Any],
) -> dict[str, Any]:
    """Makes the body of a completion; `held` comes from `dialects.constraint_fields`."""
    body = {
        "model": model,
        "prompt": prompt,
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        **({"stop": list(sampling.stop)} if sampling.stop else {}),
        **({"logprobs": sampling.top} if sampling.top else {}),
        **sampling_fields(server.dialect),
        **held,
    }
    return {name: value for name, value in body.items() if name not in server.without}


def to_chat_reply(reply: Any) -> dict[str, Any]:
    """Translates a completion's reply to a chat's. Raises `BadReply` for one without a text."""
    choice = replies.first_choice(reply)
    text = replies.require_key(choice, "text", str, "the first choice")
    told = choice.get("logprobs")
    logprobs = told if isinstance(told, Mapping) else {}
    # llama.cpp's server tells them as in a chat.
    entries = logprobs.get("content") or _legacy_entries(logprobs)
    chat = {
        "message": {"content": text},
        "finish_reason": choice.get("finish_reason"),
        "logprobs": {"content": entries},
    }
    return {"choices": [chat], "usage": reply.get("usage")}


def _legacy_entries(logprobs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Entries of parallel lists: the tokens, their log-probabilities, the likeliest of each."""
    tokens, values = logprobs.get("tokens") or [], logprobs.get("token_logprobs") or []
    tops = logprobs.get("top_logprobs") or []
    if not all(isinstance(one, list) for one in (tokens, values, tops)):
        raise BadReply("the log-probabilities are no lists")
    if len(tokens) != len(values):
        raise BadReply(f"{len(tokens)} tokens have {len(values)} log-probabilities")
    return [
        {
            "token": token,
            "logprob": value,
            "top_logprobs": [{"token": one, "logprob": p} for one, p in (top or {}).items()],
        }
        for token, value, top in zip_longest(tokens, values, tops[: len(tokens)])
    ]

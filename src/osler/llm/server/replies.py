"""Readers of reply fields that take nothing on trust: counted, compared, bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from osler.llm.core.align import decode_pieces
from osler.llm.core.base import TokenScore
from osler.llm.server.bounded_reading import BadReply
from osler.text import join_surrogates
from osler.types import Usage

_ROUNDING = 1e-4
"""A log-probability above 0 by no more than this is a sum of rounding errors."""
_LONGEST_TOKEN = 32
"""Characters of a token that no whole reply has on average: longer ones are runs of blanks."""
STRAY = "\ufffd"
"""Stands for bytes that are no character."""


def first_choice(reply: Any) -> Mapping[str, Any]:
    if not isinstance(reply, Mapping):
        raise BadReply("the reply is no JSON object")
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise BadReply(f"the reply has no choices: {str(reply)[:200]}")
    return choices[0]


def require_key(holder: Any, key: str, kind: type[Any], where: str) -> Any:
    """Returns `holder[key]`, which must be of the kind. Raises `BadReply` that says where it is
    not.
    """
    value = holder.get(key) if isinstance(holder, Mapping) else None
    if not isinstance(value, kind):
        raise BadReply(f"{where} has no {key}: {str(holder)[:200]}")
    return value


def token_entries(choice: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Returns the entries of the reply's tokens; empty when there are none."""
    logprobs = choice.get("logprobs")
    listed = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if not isinstance(listed, list):
        return ()
    if not all(isinstance(entry, Mapping) for entry in listed):
        raise BadReply("the reply's log-probabilities are no list of objects")
    return listed


def read_tokens(choice: Mapping[str, Any], text: str) -> tuple[TokenScore, ...]:
    """Reads the entries with offsets into `text`; none when they do not spell it.

    Entries past the text, such as a stop string's or the end of the turn, are left out.
    Raises `BadReply` for what is no log-probability.
    """
    reported = token_entries(choice)
    spelt, spans = decode_pieces([_token_bytes(entry) for entry in reported])
    if not spelt.startswith(text):
        return ()
    return tuple(
        TokenScore(
            text[start:end], start, min(end, len(text)), read_logprob(entry), _top_tokens(entry)
        )
        for entry, (start, end) in zip(reported, spans, strict=True)
        if start < len(text)
    )


def read_logprob(entry: Mapping[str, Any]) -> float:
    return check_logprob(entry.get("logprob"), entry.get("token"))


def check_logprob(value: Any, token: Any) -> float:
    """Checks a log-probability. Raises `BadReply` for a missing, positive or non-numeric one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadReply(f"the token {token!r} has no log-probability but {value!r}")
    if not isfinite(value) or value > _ROUNDING:
        raise BadReply(f"{value} is no log-probability (token {token!r})")
    return min(0.0, float(value))


def top_entries(entry: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    top = entry.get("top_logprobs") or []
    if not isinstance(top, list) or not all(isinstance(other, Mapping) for other in top):
        raise BadReply("top_logprobs is no list of objects")
    return top


def read_usage(reply: Mapping[str, Any], seconds: float) -> Usage:
    """Reads the usage; servers may leave any of it out, which counts as 0."""
    usage = reply.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    return Usage(
        calls=1,
        prompt_tokens=_read_count(usage.get("prompt_tokens")),
        completion_tokens=_read_count(usage.get("completion_tokens")),
        cached_tokens=_read_count(details.get("cached_tokens")),
        seconds=round(seconds, 3),
    )


def longest_reply(max_tokens: int) -> int:
    """Returns the most characters of a reply of so many tokens; a longer one lost its bound."""
    return max_tokens * _LONGEST_TOKEN


def _token_bytes(entry: Mapping[str, Any]) -> bytes:
    spelt = entry.get("bytes")
    try:
        # `bytes` of a number would be as many zeros.
        return (
            join_surrogates(str(entry.get("token", ""))).encode()
            if spelt is None
            else bytes(list(spelt))
        )
    except (TypeError, ValueError) as error:
        raise BadReply(f"a token's bytes are no bytes: {str(spelt)[:80]!r}") from error


def _top_tokens(entry: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    return tuple(
        (join_surrogates(str(o.get("token", ""))), read_logprob(o)) for o in top_entries(entry)
    )


def _read_count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0

"""Scores given texts on servers, in the two ways that they offer.

* `echo` (vLLM) gives back a prompt of token ids with their log-probabilities, in one request;
* llama.cpp's server has no such thing, so each token is forced by a logit bias, in a
  request of its own, as `llm/local/model.py` does it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, assert_never

from osler.llm.core.base import Message, TokenScore, raw_text
from osler.llm.core.spans import decode_pieces, token_scores
from osler.llm.server import replies
from osler.llm.server.dialects import ScoringMethod, list_messages, turn_fields
from osler.llm.server.endpoint import BadReply, mapping_at

_FORCE = 1_000.0
"""Logit bias that no raw logit reaches."""
_LOOKUPS = (300, 3_000, 1_000_000)
"""Numbers of likeliest tokens to ask for until the wanted one is among them."""

Context = Sequence[Message] | str


class ServerRequest(Protocol):
    """A request and the JSON of its reply; POST with a body, else GET."""

    async def __call__(
        self, path: str, body: dict[str, Any] | None = None, *, root: bool = False
    ) -> Any:
        """`root`: the path is not under `/v1`."""


_Step = Callable[[int, int], Awaitable[Mapping[str, Any]]]
"""A forced token, how many of the likeliest to tell → what the server tells."""


async def score_text(
    way: ScoringMethod, ask: ServerRequest, model: str, context: Context, text: str
) -> tuple[TokenScore, ...]:
    """Scores the text's tokens after the context. Raises `BadReply` and what `ask` raises."""
    # In what is sent to vLLM as plain text, the model's own marks are tokens anyway.
    if way is not ScoringMethod.FORCED and (raw := raw_text(context)) is not None:
        context = raw
    match way:
        case ScoringMethod.FORCED:
            return await score_by_forcing(ask, context, text)
        case ScoringMethod.ECHO:
            return await _score_by_echo(ask, model, context, text)
        case _:
            assert_never(way)


# vLLM


async def _score_by_echo(
    ask: ServerRequest, model: str, context: Context, text: str
) -> tuple[TokenScore, ...]:
    continued = {} if isinstance(context, str) else turn_fields(context)
    before = await _tokenise_ids(ask, context, first=True, model=model, **continued)
    ids = await _tokenise_ids(ask, text, first=False, model=model)
    if not before or not ids:
        raise BadReply("there are no tokens to score, or none before them")
    body: dict[str, Any] = {"model": model, "prompt": before + ids, "temperature": 0.0}
    body |= {"max_tokens": 0, "echo": True, "logprobs": 0}
    reported = read_echo(await ask("/completions", body), len(before) + len(ids))[-len(ids) :]
    spans = spans_of([piece for piece, _ in reported], text)
    return token_scores(text, spans, [logprob for _, logprob in reported])


def read_echo(reply: Any, count: int) -> list[tuple[str, float]]:
    """Reads the last tokens' texts and log-probabilities in a `/completions` reply with `echo`.

    `count` is how many tokens the prompt had, and a reply with another number of
    them is a `BadReply`. The first has no log-probability and is left out.
    """
    logprobs = replies.require_key(
        replies.first_choice(reply), "logprobs", Mapping, "the first choice"
    )
    values, pieces = logprobs.get("token_logprobs"), logprobs.get("tokens")
    if not isinstance(values, list) or not isinstance(pieces, list):
        raise BadReply("the echo has no token_logprobs")
    if not len(values) == len(pieces) == count:
        raise BadReply(f"the echo of {count} tokens has {len(values)} log-probabilities")
    told_of = zip(pieces[1:], values[1:], strict=True)
    return [(str(piece), replies.check_logprob(value, piece)) for piece, value in told_of]


async def _tokenise_ids(
    ask: ServerRequest, text: Context, *, first: bool, **more: Any
) -> list[int]:
    """Tokenises by `/tokenize`, as vLLM has it; messages by the chat template."""
    if isinstance(text, str):
        fields: dict[str, Any] = {"prompt": text, "add_special_tokens": first}
    else:
        fields = {"messages": list_messages(text)}
    reply = await ask("/tokenize", fields | more, root=True)
    ids = mapping_at(reply).get("tokens")
    if not isinstance(ids, list) or not all(isinstance(one, int) for one in ids):
        raise BadReply("/tokenize gave no tokens")
    return ids


# llama.cpp


async def score_by_forcing(
    ask: ServerRequest, context: Context, text: str
) -> tuple[TokenScore, ...]:
    """Scores a text on llama.cpp's server, a request for each token. Raises `BadReply`."""
    raw = raw_text(context)
    if isinstance(context, str):
        before = await _tokenise_pieces(ask, context, add_special=True)
    elif raw is not None:
        before = await _tokenise_pieces(ask, raw, add_special=True, parse_special=True)
    else:
        templated = await ask("/apply-template", {"messages": list_messages(context)}, root=True)
        prompt = replies.require_key(templated, "prompt", str, "/apply-template")
        before = await _tokenise_pieces(ask, prompt, add_special=True, parse_special=True)
    prompt_ids = [token for token, _ in before]
    letter = await _tokenise_pieces(ask, "a")
    tokens = await _tokenise_pieces(ask, text, parse_special=raw is not None)
    if not letter or not tokens:
        raise BadReply("/tokenize gave no tokens")
    logprobs: list[float] = []
    for token, piece in tokens:
        # A prefix that others left in the server's cache was read in other batches, which moved
        # a token by as much as 0.8 nats; so the first step reads all of it, and the rest reuse it.
        step = partial(_force_step, ask, prompt_ids, cached=bool(logprobs))
        logprobs.append(await _forced_token(step, token, piece, plain=letter[0][0]))
        prompt_ids.append(token)
    spelt, spans = decode_pieces([piece for _, piece in tokens])
    if spelt != text:
        raise BadReply("the server's tokens do not spell the text")
    return token_scores(text, spans, logprobs)


async def _tokenise_pieces(
    ask: ServerRequest, text: str, **special: bool
) -> list[tuple[int, bytes]]:
    """Tokenises to ids with their bytes; a piece that is no text comes as a list of bytes."""
    fields = {"content": text, "with_pieces": True, "parse_special": False, **special}
    reply = await ask("/tokenize", fields, root=True)
    try:
        tokens = [(token["id"], token["piece"]) for token in reply["tokens"]]
        return [(i, p.encode() if isinstance(p, str) else bytes(list(p))) for i, p in tokens]
    except (KeyError, TypeError, ValueError) as error:
        raise BadReply("/tokenize gave no tokens with pieces") from error


async def _forced_token(step: _Step, token: int, piece: bytes, *, plain: int) -> float:
    """Returns the raw model's log-probability of `token`.

    A token that is only part of a character is never reported as the chosen one: it
    is looked up among the likeliest while the token `plain` is forced.
    """
    try:
        piece.decode("utf-8")
    except UnicodeDecodeError:
        return await _look_up_token(step, token, plain)
    entry = await step(token, 1)
    if entry.get("id") != token:
        raise BadReply(f"the server did not take the forced token {token}")
    return replies.read_logprob(entry)


async def _look_up_token(step: _Step, token: int, plain: int) -> float:
    for count in _LOOKUPS:
        for other in replies.top_entries(await step(plain, count)):
            if other.get("id") == token:
                return replies.read_logprob(other)
    raise BadReply(f"the token {token} has no log-probability")


async def _force_step(
    ask: ServerRequest, prompt: list[int], token: int, count: int, *, cached: bool
) -> Mapping[str, Any]:
    body = {
        "prompt": prompt,
        "n_predict": 1,
        "n_probs": count,
        "temperature": 0.0,
        "logit_bias": [[token, _FORCE]],
        "cache_prompt": cached,
    }
    entries = replies.token_entries(replies.first_choice(await ask("/completions", body)))
    if not entries:
        raise BadReply("the reply has no log-probabilities")
    return entries[0]


# Spans


def spans_of(pieces: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Finds where in `text` each token lies, of tokens that are given as text.

    A token that is part of a character comes back as a replacement character. A run of
    such shares the span of all the characters that it makes. Raises `BadReply` when
    the tokens do not spell the text.
    """
    spans: list[tuple[int, int]] = []
    at, waiting = 0, 0
    for piece in pieces:
        if not piece or replies.STRAY in piece:
            waiting += 1
            continue
        # Those that wait make at least one character, so the next piece begins further on.
        start = text.find(piece, at + 1) if waiting else at
        if start < 0 or not text.startswith(piece, start):
            raise BadReply(f"the server's tokens do not spell the text: {piece!r}")
        spans += [(at, start)] * waiting + [(start, start + len(piece))]
        at, waiting = start + len(piece), 0
    if bool(waiting) != (at < len(text)):
        raise BadReply("the server's tokens do not spell the text to its end")
    return spans + [(at, len(text))] * waiting

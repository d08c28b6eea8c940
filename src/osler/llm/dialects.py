"""What the servers that call themselves OpenAI-compatible say differently.

Requests are made and replies are read here; whoever needs to send several is handed
a way to ask. What the servers have in common is that they ignore fields they do not
know, so a reply is never taken to have obeyed: entries are counted, texts compared.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from math import isfinite
from typing import Any, Protocol

from osler.llm.align import decode
from osler.llm.base import Completion, Message, Sampling, TokenScore
from osler.types import Usage

_ROUNDING = 1e-4
"""A log-probability above 0 by no more than this is a sum of rounding errors."""
_STRAY = "\ufffd"
_FORCE = 1_000.0
"""Logit bias that no raw logit reaches."""
_LOOKUPS = (300, 3_000, 1_000_000)
"""How many of the likeliest tokens to ask for until the wanted one is among them."""


class Ask(Protocol):
    """A request and the JSON of its reply; POST with a body, else GET."""

    async def __call__(
        self, path: str, body: dict[str, Any] | None = None, *, root: bool = False
    ) -> Any:
        """`root`: the path is not under `/v1`."""
        ...


_Step = Callable[[int, int], Awaitable[Mapping[str, Any]]]
"""A forced token, how many of the likeliest to tell → what the server tells."""


class BadReply(ValueError):
    """A reply that is not what the interface promises; its text says what is wrong."""


class Dialect(StrEnum):
    LLAMA_CPP = "llama.cpp"
    VLLM = "vLLM"
    GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Server:
    """What was found out about a server when it was connected to."""

    dialect: Dialect = Dialect.GENERIC
    constrains: bool = False
    """Whether a grammar was seen to hold."""
    echoes: bool = False
    """Whether a continued message comes back with its beginning in front."""


@dataclass(frozen=True, slots=True)
class Reply:
    completion: Completion
    unreported: bool
    """Whether there are log-probabilities of these words that the reply does not tell."""


def chat(
    dialect: Dialect, model: str, messages: Sequence[Message], sampling: Sampling
) -> dict[str, Any]:
    """The body for `/chat/completions`."""
    body = {
        "model": model,
        "messages": listed(messages),
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        **({"stop": list(sampling.stop)} if sampling.stop else {}),
        **({"logprobs": True, "top_logprobs": sampling.top} if sampling.top else {}),
    }
    # The paper samples by temperature alone; the servers' own defaults would cut tails.
    match dialect:
        case Dialect.LLAMA_CPP:
            body |= {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
            body |= {"grammar": sampling.grammar.gbnf} if sampling.grammar else {}
        case Dialect.VLLM:
            body |= {"top_k": -1, "top_p": 1.0, "min_p": 0.0, **turn(messages)}
            if sampling.grammar:
                body["structured_outputs"] = {"grammar": sampling.grammar.gbnf}
        case Dialect.GENERIC:
            pass
    return body


def listed(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def turn(messages: Sequence[Message]) -> dict[str, bool]:
    """vLLM's way to say whether the last message is to be continued."""
    continued = bool(begun(messages))
    return {"continue_final_message": continued, "add_generation_prompt": not continued}


def begun(messages: Sequence[Message]) -> str:
    """What the assistant has said already; empty when it has the next turn to itself."""
    last = messages[-1] if messages else Message("user", "")
    return last.content if last.role == "assistant" else ""


def read_chat(
    reply: Any, server: Server, messages: Sequence[Message], sampling: Sampling, seconds: float
) -> Reply:
    """The completion in a `/chat/completions` reply. Raises `BadReply`."""
    choice = _first_choice(reply)
    message = _get(choice, "message", Mapping, "the first choice")
    said = message.get("content")
    thought = message.get("reasoning_content") or message.get("reasoning")
    if said is None and thought:
        said = ""  # the thinking took all the tokens
    if not isinstance(said, str):
        refusal = message.get("refusal") or choice.get("finish_reason")
        raise BadReply(f"the reply's content is no text but {said!r} (finish: {refusal})")
    if choice.get("finish_reason") == "content_filter":
        raise BadReply("the server's content filter cut the reply")
    cut = choice.get("finish_reason") == "length"
    text = said.removeprefix(begun(messages)) if server.echoes else said
    text = text.rstrip(_STRAY) if cut else text
    usage = _usage(reply, seconds)
    tokens = read_tokens(choice, text) if sampling.top else ()
    masked = bool(sampling.grammar) and server.dialect is Dialect.VLLM
    if masked or not _all_told(choice, text, usage):
        tokens = ()
    unreported = bool(sampling.top and text and not thought and not tokens)
    thinking = thought if isinstance(thought, str) else ""
    completion = Completion(text, tokens, "length" if cut else "stop", usage, thinking)
    return Reply(completion, unreported and (masked or not text.isascii()))


def _all_told(choice: Mapping[str, Any], text: str, usage: Usage) -> bool:
    """False when tokens that share a character were reported as one, as llama.cpp does."""
    return text.isascii() or len(_entries(choice)) >= usage.completion_tokens


def read_tokens(choice: Mapping[str, Any], text: str) -> tuple[TokenScore, ...]:
    """The entries with offsets into `text`; none when they do not spell it.

    Entries past the text, such as a stop string's or the end of the turn, are left out.
    Raises `BadReply` for what is no log-probability.
    """
    entries = _entries(choice)
    spelt, spans = decode([_bytes(entry) for entry in entries])
    if not spelt.startswith(text):
        return ()
    return tuple(
        TokenScore(text[start:end], start, min(end, len(text)), logprob(entry), _top(entry))
        for entry, (start, end) in zip(entries, spans, strict=True)
        if start < len(text)
    )


def read_echo(reply: Any, count: int) -> list[tuple[str, float]]:
    """The last tokens' texts and log-probabilities in a `/completions` reply with `echo`.

    `count` is how many tokens the prompt had, and a reply with another number of
    them is a `BadReply`. The first has no log-probability and is left out.
    """
    told = _get(_first_choice(reply), "logprobs", Mapping, "the first choice")
    values, pieces = told.get("token_logprobs"), told.get("tokens")
    if not isinstance(values, list) or not isinstance(pieces, list):
        raise BadReply("the echo has no token_logprobs")
    if not len(values) == len(pieces) == count:
        raise BadReply(f"the echo of {count} tokens has {len(values)} log-probabilities")
    told_of = zip(pieces[1:], values[1:], strict=True)
    return [(str(piece), _finite(value, piece)) for piece, value in told_of]


def first_entry(reply: Any) -> Mapping[str, Any]:
    """What is told of the first token in llama.cpp's `/completions` reply."""
    entries = _entries(_first_choice(reply))
    if not entries:
        raise BadReply("the reply has no log-probabilities")
    return entries[0]


def spans_of(pieces: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Where in `text` each token lies, of tokens that are told as text.

    A token that is part of a character is told as a replacement character. A run of
    such shares the span of all the characters that it makes. Raises `BadReply` when
    the tokens do not spell the text.
    """
    spans: list[tuple[int, int]] = []
    at, waiting = 0, 0
    for piece in pieces:
        if not piece or _STRAY in piece:
            waiting += 1
            continue
        start = text.find(piece, at + 1) if waiting else at
        if start < 0 or not text.startswith(piece, start):
            raise BadReply(f"the server's tokens do not spell the text: {piece!r}")
        spans += [(at, start)] * waiting + [(start, start + len(piece))]
        at, waiting = start + len(piece), 0
    if bool(waiting) != (at < len(text)):
        raise BadReply("the server's tokens do not spell the text to its end")
    return spans + [(at, len(text))] * waiting


def scores(
    text: str, spans: Sequence[tuple[int, int]], logprobs: Sequence[float]
) -> tuple[TokenScore, ...]:
    return tuple(
        TokenScore(text[start:end], start, end, logprob)
        for (start, end), logprob in zip(spans, logprobs, strict=True)
    )


async def forced(ask: Ask, context: Sequence[Message] | str, text: str) -> tuple[TokenScore, ...]:
    """Scores a text on llama.cpp's server, a request for each token. Raises `BadReply`."""
    if isinstance(context, str):
        before = await _tokenise(ask, context, add_special=True)
    else:
        templated = await ask("/apply-template", {"messages": listed(context)}, root=True)
        prompt = _get(templated, "prompt", str, "/apply-template")
        before = await _tokenise(ask, prompt, add_special=True, parse_special=True)
    prompt_ids = [token for token, _ in before]
    letter, tokens = await _tokenise(ask, "a"), await _tokenise(ask, text)
    if not letter or not tokens:
        raise BadReply("/tokenize gave no tokens")
    logprobs: list[float] = []
    for token, piece in tokens:
        # A prefix that others left in the server's cache was read in other batches, which moved
        # a token by as much as 0.8 nats; so the first step reads all of it, and the rest reuse it.
        step = partial(_step, ask, prompt_ids, cached=bool(logprobs))
        logprobs.append(await _forced_token(step, token, piece, plain=letter[0][0]))
        prompt_ids.append(token)
    spelt, spans = decode([piece for _, piece in tokens])
    if spelt != text:
        raise BadReply("the server's tokens do not spell the text")
    return scores(text, spans, logprobs)


async def _tokenise(ask: Ask, text: str, **special: bool) -> list[tuple[int, bytes]]:
    """Ids with their bytes; a piece that is no text is told as a list of its bytes."""
    asked = {"content": text, "with_pieces": True, "parse_special": False, **special}
    reply = await ask("/tokenize", asked, root=True)
    try:
        told = [(token["id"], token["piece"]) for token in reply["tokens"]]
        return [(i, p.encode() if isinstance(p, str) else bytes(p)) for i, p in told]
    except (KeyError, TypeError, ValueError) as error:
        raise BadReply("/tokenize gave no tokens with pieces") from error


async def _forced_token(step: _Step, token: int, piece: bytes, *, plain: int) -> float:
    """The raw model's log-probability of `token`.

    A token that is only part of a character is never reported as the chosen one: it
    is looked up among the likeliest while the token `plain` is forced.
    """
    try:
        piece.decode("utf-8")
    except UnicodeDecodeError:
        return await _looked_up(step, token, plain)
    entry = await step(token, 1)
    if entry.get("id") != token:
        raise BadReply(f"the server did not take the forced token {token}")
    return logprob(entry)


async def _looked_up(step: _Step, token: int, plain: int) -> float:
    for count in _LOOKUPS:
        for other in _top_entries(await step(plain, count)):
            if other.get("id") == token:
                return logprob(other)
    raise BadReply(f"the token {token} has no log-probability")


async def _step(
    ask: Ask, prompt: list[int], token: int, count: int, *, cached: bool
) -> Mapping[str, Any]:
    body = {
        "prompt": prompt,
        "n_predict": 1,
        "n_probs": count,
        "temperature": 0.0,
        "logit_bias": [[token, _FORCE]],
        "cache_prompt": cached,
    }
    return first_entry(await ask("/completions", body))


def logprob(entry: Mapping[str, Any]) -> float:
    return _finite(entry.get("logprob"), entry.get("token"))


def _finite(value: Any, token: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadReply(f"the token {token!r} has no log-probability but {value!r}")
    if not isfinite(value) or value > _ROUNDING:
        raise BadReply(f"{value} is no log-probability (token {token!r})")
    return min(0.0, float(value))


def _entries(choice: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    told = choice.get("logprobs")
    entries = told.get("content") if isinstance(told, Mapping) else None
    if not isinstance(entries, list):
        return ()
    if not all(isinstance(entry, Mapping) for entry in entries):
        raise BadReply("the reply's log-probabilities are no list of objects")
    return entries


def _bytes(entry: Mapping[str, Any]) -> bytes:
    told = entry.get("bytes")
    if told is None:
        return str(entry.get("token", "")).encode()
    try:
        return bytes(told)
    except (TypeError, ValueError) as error:
        raise BadReply(f"a token's bytes are no bytes: {told!r}") from error


def _top(entry: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    return tuple((str(o.get("token", "")), logprob(o)) for o in _top_entries(entry))


def _top_entries(entry: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    told = entry.get("top_logprobs") or []
    if not isinstance(told, list) or not all(isinstance(other, Mapping) for other in told):
        raise BadReply("top_logprobs is no list of objects")
    return told


def _first_choice(reply: Any) -> Mapping[str, Any]:
    if not isinstance(reply, Mapping):
        raise BadReply("the reply is no JSON object")
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise BadReply(f"the reply has no choices: {str(reply)[:200]}")
    return choices[0]


def _get(holder: Any, key: str, kind: type[Any], where: str) -> Any:
    value = holder.get(key) if isinstance(holder, Mapping) else None
    if not isinstance(value, kind):
        raise BadReply(f"{where} has no {key}: {str(holder)[:200]}")
    return value


def _usage(reply: Mapping[str, Any], seconds: float) -> Usage:
    """Servers may leave any of it out: what is not told is 0."""
    told = reply.get("usage")
    told = told if isinstance(told, Mapping) else {}
    details = told.get("prompt_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    return Usage(
        calls=1,
        prompt_tokens=_count(told.get("prompt_tokens")),
        completion_tokens=_count(told.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")),
        seconds=round(seconds, 3),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0

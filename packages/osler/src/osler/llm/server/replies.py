"""Readers of reply fields that take nothing on trust: counted, compared, bounded.

`ask_to_continue` says whose turn it is at a server, and what becomes of a try that failed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any
from weakref import WeakKeyDictionary

from osler.llm.core.base import Completion, Message, TokenScore
from osler.llm.core.spans import decode_pieces
from osler.llm.core.thinking import split_thinking, without_spans
from osler.llm.server.endpoint import BadReply, mapping_at
from osler.prompts import render_prompt
from osler.text import is_cjk, join_surrogates, language_of
from osler.types import Usage

_ROUNDING = 1e-4
"""A log-probability above 0 by no more than this is a sum of rounding errors."""
_LONGEST_TOKEN = 32
"""Characters of a token that no whole reply has on average: longer ones are runs of blanks."""
STRAY = "\ufffd"
"""Stands for bytes that are no character."""


def first_choice(reply: Any) -> Mapping[str, Any]:
    if not isinstance(reply, Mapping):
        raise BadReply("the reply is not a JSON object")
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
    listed = mapping_at(choice, "logprobs").get("content")
    if not isinstance(listed, list):
        return ()
    if not all(isinstance(entry, Mapping) for entry in listed):
        raise BadReply("the reply's log-probabilities are not a list of objects")
    return listed


def read_tokens(choice: Mapping[str, Any], text: str) -> tuple[TokenScore, ...]:
    """Reads the entries with offsets into `text`; none when they do not spell it.

    Entries past the text, such as a stop string's or the end of the turn, are left out.
    Raises `BadReply` for what is not a log-probability.
    """
    reported = token_entries(choice)
    spelt, spans = decode_pieces([_token_bytes(entry) for entry in reported])
    # Offsets into another text would be worse than none: log-probabilities are then left out.
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
    # In Python a bool is an int, and `true` would pass as the log-probability 1.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadReply(f"the token {token!r} has no log-probability but {value!r}")
    if not isfinite(value) or value > _ROUNDING:
        raise BadReply(f"{value} is not a log-probability (token {token!r})")
    return min(0.0, float(value))


def top_entries(entry: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    top = entry.get("top_logprobs") or []
    if not isinstance(top, list) or not all(isinstance(other, Mapping) for other in top):
        raise BadReply("top_logprobs is not a list of objects")
    return top


def read_usage(reply: Mapping[str, Any], seconds: float) -> Usage:
    """Reads the usage; servers may leave any of it out, which counts as 0."""
    usage = mapping_at(reply, "usage")
    return Usage(
        calls=1,
        prompt_tokens=_read_count(usage.get("prompt_tokens")),
        completion_tokens=_read_count(usage.get("completion_tokens")),
        cached_tokens=_read_count(mapping_at(usage, "prompt_tokens_details").get("cached_tokens")),
        seconds=round(seconds, 3),
    )


def _call_parts(calls: Any) -> list[tuple[str, str]]:
    """Names and arguments of a message's tool calls, as text; none of what is not a list of
    them."""
    parts = []
    for call in calls if isinstance(calls, list) else ():
        told = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(told, Mapping):
            given = told.get("arguments") or ""
            spelt = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
            parts.append((str(told.get("name") or ""), spelt))
    return parts


def spell_calls(message: Mapping[str, Any]) -> str:
    """A message's native tool calls, as a model without a parser of its server's writes them."""
    spelt = []
    for name, arguments in _call_parts(message.get("tool_calls")):
        call = f'{{"name": {json.dumps(name)}, "arguments": {arguments or "{}"}}}'
        spelt += [f"<tool_call>\n{call}\n</tool_call>"] if name else []
    return "\n".join(spelt)


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
        raise BadReply(f"a token's bytes are invalid: {str(spelt)[:80]!r}") from error


def _top_tokens(entry: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    return tuple(
        (join_surrogates(str(o.get("token", ""))), read_logprob(o)) for o in top_entries(entry)
    )


def _read_count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def objects_by_index(reply: Any, key: str, count: int) -> list[Mapping[str, Any]]:
    """The objects of the list `reply[key]`, by their `index`, one for each of `count` texts.

    Raises `BadReply` for a list that lacks some, has some twice, or is none.
    """
    objects = reply.get(key) if isinstance(reply, Mapping) else None
    if not isinstance(objects, list) or not all(isinstance(one, Mapping) for one in objects):
        raise BadReply(f"the reply has no list of {key}")
    indexes = [one.get("index", i) for i, one in enumerate(objects)]
    placed = {i: one for i, one in zip(indexes, objects, strict=True) if isinstance(i, int)}
    if len(objects) != count or placed.keys() != set(range(count)):
        raise BadReply(f"the reply has {len(objects)} {key} for {count} texts")
    return [placed[i] for i in range(count)]


# Streams


class ChatGatherer:
    """Collects the chunks of `/chat/completions`; `translate` converts other servers' chunks.

    More than `max_tokens` tokens can spell is not read: the server has lost the bound,
    and the reply counts as cut.
    """

    def __init__(
        self, max_tokens: int, *, translate: Callable[[Any], Any] = lambda told: told
    ) -> None:
        self._most = longest_reply(max_tokens)
        self._max_tokens = max_tokens
        self._translate = translate
        self._said: dict[str, list[str]] = {"content": [], "reasoning_content": [], "refusal": []}
        self._calls: dict[Any, dict[str, str]] = {}
        self._length = 0
        self._entries: list[Any] = []
        self._finish: str | None = None
        self._usage: Any = None
        self._model: Any = None
        self._pieces = 0
        self._whole: Any = None

    def take_piece(self, chunk: Any) -> bool:
        """Takes a chunk; True when the reply has grown past every bound. Raises `BadReply`."""
        chunk = self._translate(chunk)
        if not isinstance(chunk, Mapping):
            raise BadReply(f"an event is not a JSON object: {str(chunk)[:80]}")
        self._usage = chunk.get("usage") or self._usage
        self._model = chunk.get("model") or self._model
        choices = chunk.get("choices")
        if not choices:
            return False
        if not isinstance(choices, list) or not isinstance(choices[0], Mapping):
            raise BadReply("an event's choices are not a list of objects")
        self._pieces += 1
        self._add_choice(choices[0])
        return self._is_over()

    def take_whole(self, reply: Any) -> None:
        """Takes the reply of a server that does not stream."""
        self._whole = self._translate(reply)

    def broken_off(self) -> bool:
        """Whether the stream ended before the reply did. Raises `BadReply` when it was empty."""
        if not self._pieces:
            raise BadReply("the stream had no reply in it")
        return self._finish is None

    @property
    def reply(self) -> Any:
        """The reply in the form of a server that does not stream."""
        if self._whole is not None:
            return self._whole
        texts = {key: "".join(pieces) for key, pieces in self._said.items() if pieces}
        calls = {"tool_calls": [{"function": one} for one in self._calls.values()]}
        message = {"role": "assistant", "content": None, **texts, **(calls if self._calls else {})}
        choice: dict[str, Any] = {
            "message": message,
            "finish_reason": self._finish,
        }
        if self._entries:
            choice["logprobs"] = {"content": self._entries}
        about = {"usage": self._usage, "model": self._model}
        return {"choices": [choice], **{name: told for name, told in about.items() if told}}

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            raise BadReply(f"an event has no delta: {str(choice)[:80]}")
        self._add_piece("content", delta.get("content"))
        self._add_piece(
            "reasoning_content", delta.get("reasoning_content") or delta.get("reasoning")
        )
        self._add_piece("refusal", delta.get("refusal"))
        self._add_calls(delta.get("tool_calls"))
        entries = mapping_at(choice, "logprobs").get("content")
        self._entries += entries if isinstance(entries, list) else []
        finish = choice.get("finish_reason")
        self._finish = str(finish) if finish else self._finish

    def _add_piece(self, key: str, piece: Any) -> None:
        if piece is None:
            return
        if not isinstance(piece, str):
            raise BadReply(f"an event's {key} is not text but {str(piece)[:80]}")
        self._said[key].append(piece)
        self._length += len(piece)

    def _add_calls(self, pieces: Any) -> None:
        """Calls come in pieces: the name first, then the arguments bit by bit."""
        for piece in pieces if isinstance(pieces, list) else ():
            for name, arguments in _call_parts([piece]):
                index = piece.get("index", len(self._calls))
                call = self._calls.setdefault(index, {"name": "", "arguments": ""})
                call["name"] += name
                call["arguments"] += arguments
                self._length += len(name) + len(arguments)

    def _is_over(self) -> bool:
        if self._length <= self._most and len(self._entries) <= 2 * self._max_tokens:
            return False
        self._finish = "length"
        return True


class SilentStream(Exception):
    """A stream that broke off before its first event: some servers look at a request only when
    they have begun to answer it."""


@dataclass(frozen=True, slots=True)
class BusyAnswer:
    """A failed try that may be repeated."""

    why: str
    asked: float | None = None
    """Seconds that the server asks to wait."""
    absent: bool = False
    """Set when there was no connection, so no server that could be busy."""
    interrupted: bool = False
    """Set when a stream was ended in good order before its reply was."""


class Turns:
    """At most so many requests under way at once."""

    def __init__(self, at_once: int) -> None:
        # A semaphore belongs to one event loop, and a model may be used in several.
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._gates = WeakKeyDictionary()
        self.at_once = at_once
        self._under_way = 0

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Waits until another request may be under way."""
        while True:
            async with (gate := self._gate()):
                if gate is not self._gate():
                    continue  # it was made narrower in the meantime
                self._under_way += 1
                try:
                    yield
                finally:
                    self._under_way -= 1
                return

    def _gate(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        return self._gates.setdefault(loop, asyncio.Semaphore(self.at_once))

    def note_interruption(self) -> None:
        """One request at a time from now on, if another was under way: there are servers that end
        a reply when the next request comes (llama-cpp-python's, by default)."""
        if self._under_way > 1 and self.at_once > 1:
            self.at_once = 1
            self._gates.clear()


def without_streaming(body: Mapping[str, Any]) -> dict[str, Any]:
    """The request for a whole reply."""
    kept = {name: value for name, value in body.items() if name != "stream_options"}
    return kept | {"stream": False}


_SHORTEST = 20
"""Characters of the beginning's end that a reply must repeat to have repeated it."""


def ask_to_continue(messages: Sequence[Message]) -> list[Message]:
    """The conversation with a turn that asks for the rest, where the assistant's is not ended."""
    turns = list(messages)
    if not turns or turns[-1].role != "assistant" or not turns[-1].content.strip():
        return turns
    asked = next((turn.content for turn in reversed(turns) if turn.role == "user"), "")
    return [*turns, Message("user", render_prompt("llm/continue", language_of(asked)).text)]


def continue_reply(completion: Completion, begun: str) -> Completion:
    """The reply as a continuation: nothing repeated, and a space where words would join."""
    reply = split_thinking(completion)
    repeated = _repeated_length(reply.text, begun)
    if repeated:
        reply = without_spans(reply, [(0, repeated)])
    if not _wants_space(begun, reply.text):
        return reply
    moved = (replace(one, start=one.start + 1, end=one.end + 1) for one in reply.tokens)
    return replace(reply, text=f" {reply.text}", tokens=tuple(moved))


def _repeated_length(text: str, begun: str) -> int:
    """Characters at the reply's beginning that the message has already, white space included."""
    said, lead = begun.strip(), len(text) - len(text.lstrip())
    for length in range(min(len(said), len(text) - lead), 0, -1):
        if text.startswith(said[len(said) - length :], lead):
            whole = length == len(said)
            return lead + length if whole or length >= _SHORTEST else 0
    return 0


def _wants_space(begun: str, text: str) -> bool:
    before, after = begun[-1:], text[:1]
    if not before or not after or before.isspace() or after.isspace():
        return False
    return not is_cjk(before) and before not in "。，：；" and after not in ".,;:!?)]}。，"

"""Whose turn it is at a server, and what becomes of a try that failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from osler.llm.core.base import Completion, Message, TokenScore
from osler.llm.core.thinking import split_thinking, without_spans
from osler.prompts import render_prompt
from osler.text import is_cjk, language_of


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
        self._at_once = at_once
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
        return self._gates.setdefault(loop, asyncio.Semaphore(self._at_once))

    def note_interruption(self) -> None:
        """One request at a time from now on, if another was under way: there are servers that end
        a reply when the next request comes (llama-cpp-python's, by default)."""
        if self._under_way > 1 and self._at_once > 1:
            self._at_once = 1
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
    return _shift_reply(reply) if _wants_space(begun, reply.text) else reply


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


def _shift_reply(reply: Completion) -> Completion:
    def shift(token: TokenScore) -> TokenScore:
        return replace(token, start=token.start + 1, end=token.end + 1)

    return replace(reply, text=f" {reply.text}", tokens=tuple(map(shift, reply.tokens)))

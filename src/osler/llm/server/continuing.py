"""Continues a message on servers that begin a new turn instead.

They are asked, in a turn of the user's, for what comes next; what the reply repeats of the
beginning is taken out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from osler.llm.core.base import Completion, Message, TokenScore
from osler.llm.core.thinking import split_thinking, without_spans
from osler.prompts import render_prompt
from osler.text import is_cjk, language_of

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

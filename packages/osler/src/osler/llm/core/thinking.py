"""Splits a reasoning model's thinking from its reply.

Known are `<think>…</think>` (DeepSeek-R1, Qwen3, KAG-Thinker) and its kin
(`<thinking>`, `<|thinking|>`, `<|begin_of_thought|>`, `[THINK]`, `◁think▷`,
`<seed:think>`), and the analysis channel of gpt-oss. Where a chat template opens the
block itself, only its end is in the reply: what stands before it was thought. A block
that never ends was thought to the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from osler.llm.core.base import Completion, TokenScore

# <think> is written by DeepSeek-R1 and Qwen3, <|begin_of_thought|> by OpenThinker, [THINK] by
# Magistral, ◁think▷ by Kimi-VL, <seed:think> by Seed-OSS, channels by gpt-oss.
_WORD = r"(?:seed:)?(?:think|thinking|thought|reasoning)"
_OPEN = (
    rf"<\|?{_WORD}\|?>|<\|(?:begin|start)_of_(?:thought|thinking)\|>|\[THINK\]|◁think▷"
    r"|<\|channel\|>(?:analysis|commentary)<\|message\|>"
)
_CLOSE = (
    rf"<\|?/\|?{_WORD}\|?>|<\|end_(?:of_)?(?:think|thinking|thought)\|>|\[/THINK\]|◁/think▷"
    r"|(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>"
)
_MARK = re.compile(f"(?P<open>{_OPEN})|(?P<close>{_CLOSE})", re.IGNORECASE)
_OPENS_AT_END = re.compile(rf"(?:{_OPEN})\s*\Z", re.IGNORECASE)


def opens_thinking(prompt: str) -> bool:
    """Returns whether a templated prompt ends inside a block, so that the reply begins in it."""
    return _OPENS_AT_END.search(prompt) is not None


def split_thinking(completion: Completion, *, inside: bool = False) -> Completion:
    """Splits off a completion's thinking; returns the same object when it has none.

    `inside`: the reply began within a block. Tokens keep their places in the text.
    """
    thoughts, spans = _thinking_blocks(completion.text, inside=inside)
    if not spans:
        return completion
    thoughts_text = [completion.thinking, *(completion.text[start:end] for start, end in thoughts)]
    thinking = "\n\n".join(part.strip() for part in thoughts_text if part.strip())
    return replace(without_spans(completion, spans), thinking=thinking)


def without_spans(completion: Completion, spans: Sequence[tuple[int, int]]) -> Completion:
    """Removes the characters of `spans`, which lie in order and apart, from a completion.

    A token that is partly in a span keeps the rest of its text, and its log-probability.
    """
    # Spans are half-open and in the old text's indexes; tokens are moved by the same rule.
    text, at = "", 0
    for start, end in spans:
        text, at = text + completion.text[at:start], end
    text += completion.text[at:]
    moved = (_move_token(token, text, spans) for token in completion.tokens)
    return replace(completion, text=text, tokens=tuple(token for token in moved if token))


def _move_token(
    token: TokenScore, text: str, spans: Sequence[tuple[int, int]]
) -> TokenScore | None:
    start, end = _move_index(token.start, spans), _move_index(token.end, spans)
    was_empty = token.start == token.end
    if start == end and not (was_empty and not any(s <= token.start < e for s, e in spans)):
        return None
    return replace(token, text=text[start:end], start=start, end=end)


def _move_index(index: int, spans: Sequence[tuple[int, int]]) -> int:
    return index - sum(min(index, end) - start for start, end in spans if start < index)


def _thinking_blocks(
    text: str, *, inside: bool
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Finds the spans of the thoughts, and of the blocks with their marks."""
    thoughts: list[tuple[int, int]] = []
    spans: list[tuple[int, int]] = []
    begun: tuple[int, int] | None = (0, 0) if inside else None
    for mark in _MARK.finditer(text):
        if mark["open"]:
            begun = begun or mark.span()
        elif begun or not spans:
            # An end without a beginning: the chat template opened the block in the prompt.
            outer, inner = begun or (0, 0)
            thoughts.append((inner, mark.start()))
            spans.append((outer, mark.end()))
            begun = None
    if begun:
        thoughts.append((begun[1], len(text)))
        spans.append((begun[0], len(text)))
    return thoughts, _with_space(text, spans)


def _with_space(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Extends blocks that begin the reply over the white space around them."""
    grown: list[tuple[int, int]] = []
    lead = 0
    for start, end in spans:
        if text[lead:start].strip():
            grown.append((start, end))
            continue
        after = len(text) - len(text[end:].lstrip())
        grown.append((lead, after))
        lead = after
    return grown

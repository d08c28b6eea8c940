"""Splits a reasoning model's thinking from its reply.

Known are `<think>…</think>` (DeepSeek-R1, Qwen3, KAG-Thinker) and its kin
(`<thinking>`, `<|thinking|>`, `<|begin_of_thought|>`, `[THINK]`, `◁think▷`,
`<seed:think>`), and the analysis channel of gpt-oss. Where a chat template opens the
block itself, only its end is in the reply: what stands before it was thought. A block
that never ends was thought to the end.

Where nothing is left, `silence_of` says what the reply is: cut while thinking, thought alone, or
empty. A server without a parser of thinking gives some that a chat template began without any mark;
cut, it has none at its end either, and only its first words tell.

Room for thinking: a method asks for the tokens of its reply, 16 for a verdict, 500 for an answer. A
reasoning model spends them before it says a word. What it may think besides is one setting, and is
asked for from the first reply on that shows thinking; a reply that was cut before is asked for once
more.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from osler.llm.core.base import Completion, Sampling, TokenScore

Silence = Literal["", "cut", "thought", "empty"]
"""Why a reply says nothing; "" where it says something."""
# "Well, iron is given first." answers.
_MUSING = re.compile(
    r"\s*(?:hmm+[,.…]|(?:(?:okay|ok|alright|well|right|so)[,.…]?\s+)+(?:let(?:['’]s| me| us)\b"
    r"|i(?:['’]m| am| need| should| have| recall| think)\b|first, i\b|the (?:user|question)\b)"
    r"|first, i (?:need|should|have)"
    r"|i need to (?:figure|think|recall)|let me (?:think|see|recall|start|break|figure)"
    r"|we (?:need|are asked|have) to|the user (?:is|wants|asks|has|asked)"
    r"|好的?，(?=我|用户|让|首先|现在|这个|问题|题)|嗯，|首先，?我(?:需要|得|要)|让我(?:想|看)|用户(?:问|想|的问题))",
    re.IGNORECASE,
)


def silence_of(completion: Completion) -> Silence:
    """Why a reply says nothing: its tokens ended while it thought, it thought alone, or is empty.

    Its thinking may be split off already, or not.
    """
    reply = split_thinking(completion)
    cut = reply.finish == "length"
    if reply.text.strip():
        muses = cut and not reply.thinking and _MUSING.match(reply.text) is not None
        return "cut" if muses else ""
    if reply.thinking:
        return "cut" if cut else "thought"
    # A hosted model's thinking is not shown: its tokens ended before it said a word.
    return "cut" if cut and not reply.text else "empty"


def spoken_part(text: str) -> str:
    """The text without thinking, wherever it stands; empty for nothing but thinking."""
    return split_thinking(Completion(text)).text.strip()


@dataclass
class ThinkingAllowance:
    """The allowance of one model, and whether it thinks."""

    tokens: int = 0
    """Tokens of thinking in a call; 0 = no more than the reply's own."""
    thinks: bool = False
    """Whether it was seen to think."""

    async def complete(
        self, sampling: Sampling, work: Callable[[Sampling], Awaitable[Completion]]
    ) -> Completion:
        """The reply of `work` with room for thinking; where there are two tries, both are paid."""
        granted = self.thinks and self.tokens > 0
        reply = await work(self._grant_tokens(sampling) if granted else sampling)
        thought = bool(split_thinking(reply).thinking)
        self.thinks |= thought
        # Cut while it thought, or in a reply for which its thinking left no room.
        cut = silence_of(reply) == "cut" or (thought and reply.finish == "length")
        if granted or not self.tokens or not cut:
            return reply
        self.thinks = True
        again = await work(self._grant_tokens(sampling))
        return replace(again, usage=reply.usage + again.usage)

    def _grant_tokens(self, sampling: Sampling) -> Sampling:
        return replace(sampling, max_tokens=sampling.max_tokens + self.tokens)


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

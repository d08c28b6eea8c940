r"""`<answer>\boxed{…}</answer>`, the wire form of every sub-answer (KAG-Thinker Tables 2 and 9)."""

from __future__ import annotations

import re

from osler.errors import MalformedOutput
from osler.llm.core.base import Completion
from osler.llm.core.grammar import Grammar, Node, free_text, seq
from osler.llm.core.spans import answer_span, strip_types, tagged_span
from osler.llm.core.verdict import after_reasoning

LONGEST = 160
"""Characters of an answer, under a grammar."""


def boxed_answer(*, longest: int = LONGEST) -> Node:
    return seq(r"<answer>\boxed{", free_text(longest, without="<{}"), "}</answer>")


def boxed_grammar(*, longest: int = LONGEST, reason: int = 0) -> Grammar:
    """`reason`: characters of reasoning that may come first."""
    return Grammar("boxed", after_reasoning(boxed_answer(longest=longest), reason))


UNKNOWN = frozenset(
    {
        "",
        "unknown",
        "not known",
        "no answer",
        "unanswerable",
        "n/a",
        "null",
        "nil",
        "not available",
        "not applicable",
        "not mentioned",
        "not stated",
        "not specified",
        "not provided",
        "not given",
        "cannot be determined",
        "insufficient information",
        "no information",
        "no relevant information",
        "i don't know",
        "the references do not say",
        "the evidence does not say",
        "未知",
        "不知道",
        "不详",
        "不明",
        "无",
        "无答案",
        "没有答案",
        "未提及",
        "无法确定",
        "无法回答",
        "无相关信息",
        "资料没有说明",
        "现有证据没有说明",
    }
)
"""Replies that mean "the references do not say"."""
# Compared without case, underscores and final stop.
ECHOES = frozenset(
    {
        "your answer",
        "my answer",
        "the answer",
        "answer",
        "sample",
        "sample answer",
        "example",
        "placeholder",
        "true/false",
        "yes/no",
        "你的答案",
        "答案",
        "示例",
    }
)
"""Placeholders inside the prompts' own boxes, which small models echo."""
# A LaTeX command with at most a number behind it: "\scriptsize(2)".
_COMMAND = re.compile(
    r"\\(?:[a-z]*size|tiny|small|large|huge|text[a-z]*|math[a-z]*|quad|l?dots)"
    r"\s*[({]?\s*\d{0,3}\s*[)}]?"
)
_MOST_PLAIN = 600


def is_non_answer(text: str) -> bool:
    """Whether a text says that there is no answer, echoes a prompt, or holds no word or number."""
    plain = " ".join(text.replace("_", " ").split()).casefold().strip(" .。!！")
    if plain in UNKNOWN | ECHOES or _COMMAND.fullmatch(text.strip()):
        return True
    return not any(character.isalnum() for character in plain)


def reply_answer(completion: Completion) -> str:
    r"""The reply's answer inside `\boxed{}`, else inside `<answer>`; empty for "unknown" and for an
    echo of the prompt's own box.

    Raises `MalformedOutput` when there is neither.
    """
    text = completion.text
    span = answer_span(text) or tagged_span(text, "answer")
    if span is None:
        raise MalformedOutput(text, expected=r"<answer>\boxed{…}</answer>")
    answer = " ".join(strip_types(text, span).split())
    return "" if is_non_answer(answer) else answer


def answer_or_text(completion: Completion) -> str:
    """The reply's answer; of one with neither tag the reply itself (the released executor).

    Raises `MalformedOutput` for an answer or a search that was begun and not finished.
    """
    text = completion.text
    if answer_span(text) or tagged_span(text, "answer"):
        return reply_answer(completion)
    plain = " ".join(text.rpartition("</think>")[2].split())
    if not plain or len(plain) > _MOST_PLAIN or "<" in plain or "\\boxed" in plain:
        raise MalformedOutput(text, expected=r"<answer>\boxed{…}</answer>")
    return "" if is_non_answer(plain) else plain

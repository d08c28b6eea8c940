r"""`<answer>\boxed{…}</answer>`, the wire form of every sub-answer (KAG-Thinker Tables 2 and 9)."""

from __future__ import annotations

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


UNKNOWN = frozenset({"", "unknown", "未知", "不知道", "i don't know"})
"""Replies that mean "the references do not say"."""
# Compared without case and final stop.
ECHOES = frozenset(
    {"your answer", "my_answer", "my answer", "the answer", "true/false", "你的答案", "答案"}
)
"""Placeholders inside the prompts' own boxes, which small models echo."""


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
    return "" if answer.casefold().rstrip(".。") in UNKNOWN | ECHOES else answer

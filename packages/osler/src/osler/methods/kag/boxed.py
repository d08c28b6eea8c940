r"""`<answer>\boxed{…}</answer>`, the wire form of every sub-answer (KAG-Thinker Tables 2 and 9)."""

from __future__ import annotations

from osler.errors import MalformedOutput
from osler.llm.core.base import Completion
from osler.llm.core.grammar import Grammar, Node, free_text, seq
from osler.llm.core.spans import answer_span, strip_types, tagged_span
from osler.llm.reading.answers import answer_words, declines
from osler.llm.reading.refusals import is_non_answer, is_refusal
from osler.llm.reading.verdicts import after_reasoning

LONGEST = 160
"""Characters of an answer, under a grammar."""


def boxed_answer(*, longest: int = LONGEST) -> Node:
    return seq(r"<answer>\boxed{", free_text(longest, without="<{}"), "}</answer>")


def boxed_grammar(*, longest: int = LONGEST, reason: int = 0) -> Grammar:
    """`reason`: characters of reasoning that may come first."""
    return Grammar("boxed", after_reasoning(boxed_answer(longest=longest), reason))


_MOST_PLAIN = 600


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
    plain = " ".join(answer_words(text).split())
    if is_refusal(plain) or declines(plain):
        return ""
    if not plain or len(plain) > _MOST_PLAIN or "<" in plain or "\\boxed" in plain:
        raise MalformedOutput(text, expected=r"<answer>\boxed{…}</answer>")
    return "" if is_non_answer(plain) else plain

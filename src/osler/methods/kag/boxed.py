r"""`<answer>\boxed{…}</answer>`: the wire form of every sub-answer (KAG-Thinker Tables 2 and 9)."""

from __future__ import annotations

from osler.llm.core.grammar import Grammar, Node, free_text, seq
from osler.llm.core.verdict import after_reasoning

LONGEST = 160
"""Characters of an answer, under a grammar."""


def boxed_answer(*, longest: int = LONGEST) -> Node:
    return seq(r"<answer>\boxed{", free_text(longest, without="<{}"), "}</answer>")


def boxed_grammar(*, longest: int = LONGEST, reason: int = 0) -> Grammar:
    """`reason`: characters of reasoning that may come first."""
    return Grammar("boxed", after_reasoning(boxed_answer(longest=longest), reason))

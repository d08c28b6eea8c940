"""Random texts of a format: what a reply held to it may be.

Needs hypothesis, which is for tests alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

from osler.llm.core.grammar import Alt, Chars, Grammar, Lit, Named, Node, Repeat, Seq

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

# Characters that make trouble for readers; random ones seldom are among them.
_LIKELY = " ,;:.<>{}[]()'\"\\|=#*`_-/aB1，；：、。高"


def grammar_texts(grammar: Grammar) -> SearchStrategy[str]:
    """Texts that the grammar accepts, odd ones more often than chance would have it."""
    return _node_texts(grammar.root)


def regex_of(node: Node) -> str:
    """The format as a regular expression to be matched whole: what the matcher is held against."""
    match node:
        case Lit(text):
            return re.escape(text)
        case Chars(ranges, negated):
            inner = "".join(f"{re.escape(a)}-{re.escape(b)}" for a, b in ranges)
            return f"[{'^' if negated else ''}{inner}]"
        case Seq(parts):
            return "".join(f"(?:{regex_of(part)})" for part in parts)
        case Alt(arms):
            return "|".join(map(regex_of, arms))
        case Repeat(part, least, most):
            return f"(?:{regex_of(part)}){{{least},{most}}}"
        case Named(_, part):
            return regex_of(part)
        case _ as never:
            assert_never(never)


def _node_texts(node: Node) -> SearchStrategy[str]:
    from hypothesis import strategies as st

    match node:
        case Lit(text):
            return st.just(text)
        case Chars():
            return _one_character(node)
        case Seq(parts):
            return st.tuples(*map(_node_texts, parts)).map("".join)
        case Alt(arms):
            return st.one_of(*map(_node_texts, arms))
        case Repeat(part, least, most):
            return st.lists(_node_texts(part), min_size=least, max_size=most).map("".join)
        case Named(_, part):
            return _node_texts(part)
        case _ as never:
            assert_never(never)


def _one_character(node: Chars) -> SearchStrategy[str]:
    from hypothesis import strategies as st

    likely = st.sampled_from([c for c in _LIKELY if node.contains_char(c)] or [node.ranges[0][0]])
    if node.negated:
        every = st.characters(exclude_categories=["Cs"]).filter(node.contains_char)
        return likely | every if any(map(node.contains_char, _LIKELY)) else every
    ranges = [st.characters(min_codepoint=ord(a), max_codepoint=ord(b)) for a, b in node.ranges]
    return st.one_of(*ranges)

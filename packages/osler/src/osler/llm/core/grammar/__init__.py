"""The formats that a reply can be held to.

A format is written once, from six parts (`lit`, `chars`, `seq`, `alt`, `repeat`,
`named_rule`), and what an engine or a reader needs is derived from that: GBNF for
llama.cpp and vLLM, a JSON schema where it was made from one, and a matcher in plain Python for
replies of servers that ignore what they were asked for.

Parts do not refer to themselves and every repetition is bounded: a small model
held to an open repetition never stops. So each format is a regular language.
"""

from osler.llm.core.grammar.core import Grammar
from osler.llm.core.grammar.nodes import (
    Alt,
    Chars,
    Lit,
    Named,
    Node,
    Repeat,
    Seq,
    alt,
    chars,
    free_text,
    lit,
    maybe,
    named_rule,
    repeat,
    seq,
    visible_char,
)
from osler.llm.core.grammar.schema import BadSchema, from_schema

__all__ = [
    "Alt",
    "BadSchema",
    "Chars",
    "Grammar",
    "Lit",
    "Named",
    "Node",
    "Repeat",
    "Seq",
    "alt",
    "chars",
    "free_text",
    "from_schema",
    "lit",
    "maybe",
    "named_rule",
    "repeat",
    "seq",
    "visible_char",
]

"""Medical terms of a question, for asking the graph (Omni-RAG App. E.5):

<term>term0 , term1 , …</term>          fewer than four
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from osler.errors import MalformedOutput
from osler.llm.core.grammar import Grammar, Named, alt, named_rule, repeat, seq, visible_char
from osler.text import clean_text, one_line

MOST = 3
"""Terms of a question (App. E.5)."""
LONGEST_WORD = 24
"""Characters of one word under the grammar."""

_TAGGED = re.compile(r"<\s*terms?\s*>(.*?)(?:<\s*/\s*terms?\s*>|$)", re.IGNORECASE | re.DOTALL)
_EXPECTED = "<term>term , term</term> with at least one term"


def parse_terms(reply: str, *, at_most: int = MOST) -> tuple[str, ...]:
    """The first `at_most` terms, none twice; the last tag counts, as the first may be quoted.

    Separated by " , " as in the paper, by ";" or line; a reply that has none of these by other
    commas. Raises `MalformedOutput` for a reply without a tag or without a term in it.
    """
    tags = _TAGGED.findall(clean_text(reply))
    if not tags:
        raise MalformedOutput(reply, expected=_EXPECTED)
    parts = re.split(r"\s,\s|[;；、\n]", tags[-1])
    if len(parts) == 1:
        parts = re.split(r",\s|，", tags[-1])  # not at every comma: 1,25-dihydroxyvitamin D
    terms = [one_line(part).strip(" ,，") for part in parts]
    kept: dict[str, str] = {}
    for term in terms:
        if term:
            kept.setdefault(term.casefold(), term)
    if not kept:
        raise MalformedOutput(reply, expected=_EXPECTED)
    return tuple(kept.values())[:at_most]


def terms_grammar(*, at_most: int = MOST, longest: int = 8, among: Sequence[str] = ()) -> Grammar:
    """One to `at_most` terms of up to `longest` words; of those `among`, where any are given."""
    term = alt(*among) if among else term_part(longest)
    more = repeat(seq(" , ", term), 0, at_most - 1)
    return Grammar("terms", seq("<term>", term, more, "</term>"))


def term_part(longest: int) -> Named:
    """A term of up to `longest` words; it may have commas, but no " , ", which ends it."""
    word = named_rule(
        "word", repeat(visible_char(",，、;；<>＜＞{}", spaces=False), 1, LONGEST_WORD)
    )
    joined = seq(alt(" ", ", ", ","), word)
    return named_rule("term", seq(word, repeat(joined, 0, longest - 1)))

"""The concepts of the graph that a question is about (Omni-RAG App. E.5):

<term>term0 , term1 , …</term>          fewer than four
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.llm.core.grammar import Grammar, alt, repeat, seq
from osler.llm.core.speaker import Speaker
from osler.methods.omni.plan import Query, term_part
from osler.methods.omni.planners import queries_of
from osler.prompts import render_question_prompt
from osler.sources.catalogue import GRAPH
from osler.text import clean_text, one_line
from osler.trace import Noted, Run
from osler.types import Question

MOST = 3
"""Terms of a question (App. E.5)."""

_TAGGED = re.compile(r"<\s*terms?\s*>(.*?)(?:<\s*/\s*terms?\s*>|$)", re.IGNORECASE | re.DOTALL)
_EXPECTED = "<term>term , term</term> with at least one term"


@dataclass(frozen=True)
class TermExtractor:
    """Extracts at most three terms, each queried in the graph together with the question (App.
    D.3)."""

    speaker: Speaker
    at_most: int = MOST
    among: Callable[[str], Sequence[str]] | None = None
    """Names found in a question, among which a small model must choose; `None` = any words."""

    async def extract_queries(self, question: Question, run: Run) -> list[Query]:
        """The graph queries; empty, with a note, when no term can be read. Raises
        `BudgetExceeded`."""
        prompt = render_question_prompt("omni/terms", question, at_most=self.at_most)
        names = self.among(question.text) if self.among else ()
        try:
            terms = await self.speaker.ask(
                prompt,
                lambda reply: parse_terms(reply.text, at_most=self.at_most),
                run,
                grammar=terms_grammar(at_most=self.at_most, among=names),
            )
        except MalformedOutput as error:
            run.emit(Noted(f"the graph is not asked: {error.message}"))
            return []
        return [
            query for term in terms for query in queries_of(GRAPH, [question.with_options], term)
        ]


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

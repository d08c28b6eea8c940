"""Query2Doc: a passage that could answer, in the style of each source (App. D.3, E.6)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from osler.errors import MalformedOutput
from osler.llm.core.grammar import Grammar, free_text, seq
from osler.llm.core.speaker import Speaker
from osler.methods.omni.describe import SourceDescription
from osler.methods.omni.plan import Query, SourcePlan
from osler.methods.omni.planners import (
    Proposal,
    queries_of,
)
from osler.methods.omni.planners.terms import TermExtractor
from osler.prompts import render_question_prompt
from osler.text import clean_text, one_line
from osler.trace import BudgetExceeded, Noted, Run
from osler.trace.ordered import gather_ordered
from osler.types import Question

_PASSAGE = re.compile(r"<\s*passage\s*>(.*?)(?:<\s*/\s*passage\s*>|$)", re.IGNORECASE | re.DOTALL)
_COPIED = ("your passage", "文字")
LONGEST = 800
"""Characters of a passage under the grammar; a small model would not stop by itself."""


@dataclass(frozen=True)
class Query2Doc:
    """Queries are the question followed by a generated passage, as in Query2doc itself.

    The graph is queried as by Original Question.
    """

    speaker: Speaker
    terms: TermExtractor
    offers: tuple[SourceDescription, ...]
    keep_question: bool = True
    """False: the passage alone is the query."""

    async def plan(self, question: Question, run: Run) -> Proposal:
        works = [partial(self._queries_for, question, offer) for offer in self.offers]
        # One call per source, concurrently; events stay in source order.
        made = await gather_ordered(run, works)
        return Proposal(SourcePlan.of(query for queries in made for query in queries))

    async def _queries_for(
        self, question: Question, offer: SourceDescription, run: Run
    ) -> list[Query]:
        try:
            if offer.is_graph:
                return await self.terms.extract_queries(question, run)
            return await self._write_queries(question, offer, run)
        except BudgetExceeded as spent:
            run.emit(Noted(f"{offer.name} is asked as the question stands: {spent}"))
            return [] if offer.is_graph else queries_of(offer.name, [question.with_options])

    async def _write_queries(
        self, question: Question, offer: SourceDescription, run: Run
    ) -> list[Query]:
        prompt = render_question_prompt(
            "omni/passage",
            question,
            source=offer.name,
            description=offer.describe_in(question.language),
        )
        asked = question.with_options
        try:
            passage = await self.speaker.ask(
                prompt, lambda reply: read_passage(reply.text), run, grammar=passage_grammar()
            )
        except MalformedOutput as error:
            run.emit(Noted(f"{offer.name} is asked as the question stands: {error.message}"))
            return queries_of(offer.name, [asked])
        return queries_of(offer.name, [f"{asked}\n{passage}" if self.keep_question else passage])


def read_passage(reply: str) -> str:
    """The passage on one line; the last tag counts, closed or not. Raises `MalformedOutput`."""
    for found in reversed(_PASSAGE.findall(clean_text(reply))):
        passage = one_line(found)
        if passage and passage.casefold() not in _COPIED:
            return passage
    raise MalformedOutput(reply, expected="<passage>…</passage>")


def passage_grammar(longest: int = LONGEST) -> Grammar:
    return Grammar("passage", seq("<passage>", free_text(longest, without="<>"), "</passage>"))

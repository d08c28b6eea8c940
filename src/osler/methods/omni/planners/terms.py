"""Which concepts of the graph a question is about (Omni-RAG App. E.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.llm.core.speaker import Speaker
from osler.methods.omni.plan import Query
from osler.methods.omni.planners.base import queries_of
from osler.methods.omni.terms import MOST, parse_terms, terms_grammar
from osler.prompts import render_prompt
from osler.sources.catalogue import GRAPH
from osler.trace import Noted, Run
from osler.types import Question


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
        prompt = render_prompt(
            "omni/terms",
            question.language,
            question=question.text,
            options=question.lettered,
            at_most=self.at_most,
        )
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

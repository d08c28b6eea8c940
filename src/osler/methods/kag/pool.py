"""The question's own search, whose hits join those of the steps.

A plan may look for the wrong thing; what one search of the question would have found is then still
there to answer from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from osler.retrieve import look_up
from osler.trace import Run
from osler.types import Hit, Question, Retriever


@dataclass(frozen=True)
class QuestionSearch:
    """Searches the question as it stands, as retrieve-and-read does."""

    retriever: Retriever
    sources: tuple[str, ...] = ()
    k: int = 10

    async def find_passages(self, question: Question, run: Run) -> list[Hit]:
        """The best `k` hits; none where the sources are down. Raises `BudgetExceeded`."""
        found = await look_up(self.retriever, question.text, run, k=self.k, sources=self.sources)
        return list(found.hits)


def merge_hits(*groups: Iterable[Hit]) -> tuple[Hit, ...]:
    """The hits of all groups in order, each passage once."""
    seen: dict[str, Hit] = {}
    for group in groups:
        for hit in group:
            seen.setdefault(hit.passage.id, hit)
    return tuple(seen.values())

"""The question's own search, whose hits join those of the steps.

A plan may look for the wrong thing; what one search of the question would have found is then still
there to answer from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from osler.answer import UNDECIDED, Composer, who_decided
from osler.methods.kag.logical_forms import LogicalPlan
from osler.methods.kag.planner import plan_event
from osler.retrieve import look_up
from osler.trace import FormSolved, Run
from osler.types import Halt, Hit, Question, Retriever, Solution


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


@dataclass(frozen=True)
class QuestionQuotes:
    """Answers from the question's own search, with no plan of steps: for models whose plans find
    less than that."""

    search: QuestionSearch
    composer: Composer

    async def solve(self, question: Question, run: Run) -> Solution:
        """Raises `BudgetExceeded` where no search may be made."""
        run.emit(plan_event(LogicalPlan.single_retrieval(question.text), "formula"))
        hits = await self.search.find_passages(question, run)
        answer = await self.composer.conclude(question, hits, "", run)
        quoted = [] if answer.is_silent else [one.quote for one in answer.evidence]
        ids = tuple(hit.passage.id for hit in hits)
        run.emit(FormSolved(1, "done" if quoted else "failed", " ".join(quoted), passages=ids))
        halt = Halt.NO_EVIDENCE if answer.is_silent else Halt.CONVERGED
        decided = who_decided(self.composer, UNDECIDED)
        return Solution(answer, halt, "searched as it stands", run.usage, decided)


def merge_hits(*groups: Iterable[Hit]) -> tuple[Hit, ...]:
    """The hits of all groups in order, each passage once."""
    seen: dict[str, Hit] = {}
    for group in groups:
        for hit in group:
            seen.setdefault(hit.passage.id, hit)
    return tuple(seen.values())

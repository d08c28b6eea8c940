"""One-shot retrieve and read: the question as it stands is the query.

SR-RAG of TC-RAG App. 8.5 (method 3) when the retriever spans the graph, the
documents and the web; Omni-RAG's "Original Question" when it spans its five sources.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from osler.answer.base import Composer
from osler.baselines.base import draft, ended, numbered
from osler.llm.base import LanguageModel, Sampling
from osler.retrieve.lookup import look_up
from osler.trace import PlannedQuery, Run, SourcesPlanned
from osler.types import Halt, Question, Retriever, Solution


@dataclass(frozen=True)
class RetrieveAndRead:
    model: LanguageModel
    retriever: Retriever
    composer: Composer
    sources: tuple[str, ...]
    k: int = 10
    """Omni-RAG §5.1.2."""
    sampling: Sampling = field(default_factory=Sampling)

    async def solve(self, question: Question, run: Run) -> Solution:
        run.emit(fixed_plan(question, self.sources))
        found = await look_up(self.retriever, question.text, run, k=self.k, sources=self.sources)
        text = ""
        if self.composer.drafts and found.hits:
            documents = numbered(found.hits)
            text = await draft(
                self.model, "baselines/read", question, self.sampling, run, documents=documents
            )
        answer = await self.composer.conclude(question, found.hits, text, run)
        nothing = "the passages found do not answer" if found.hits else "nothing was found"
        why = f"a source was down: {found.failed}" if found.failed else nothing
        return ended(answer, run, converged="read once", silent=Halt.NO_EVIDENCE, why=why)


def fixed_plan(question: Question, sources: tuple[str, ...]) -> SourcesPlanned:
    """The plan of a method that plans nothing: the question itself to every source."""
    queries = tuple(PlannedQuery(source, 0, question.text) for source in sources)
    return SourcesPlanned(queries, "fixed")

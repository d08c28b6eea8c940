"""One-shot retrieve and read: the question as it stands is the query.

SR-RAG of TC-RAG App. 8.5 (method 3) when the retriever spans the graph, the
documents and the web; Omni-RAG's "Original Question" when it spans its five sources;
Naive RAG of KAG-Thinker Table 6 with k = 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from osler.answer import Composer
from osler.llm.core.base import LanguageModel, Sampling
from osler.methods.baselines.episode import Episode, MethodDeps
from osler.trace import PlannedQuery, Run, SourcesPlanned
from osler.types import Question, Retriever, Solution


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
        kit = MethodDeps(
            self.model, self.retriever, self.composer, self.sources, self.k, self.sampling
        )
        with Episode(kit, question, run) as line:
            await line.find_hits(question.text)
            await line.read_evidence()
        return await line.end_episode("read once")


def fixed_plan(question: Question, sources: tuple[str, ...]) -> SourcesPlanned:
    """The plan of a method that plans nothing: the question itself to every source."""
    queries = tuple(PlannedQuery(source, 0, question.text) for source in sources)
    return SourcesPlanned(queries, "fixed")

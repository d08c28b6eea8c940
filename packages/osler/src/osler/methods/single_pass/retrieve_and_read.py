"""One search, then one reading of what it found."""

from __future__ import annotations

from dataclasses import dataclass

from osler.methods.single_pass.episode import Episode, EpisodeMethod
from osler.trace import PlannedQuery, SourcesPlanned
from osler.types import Question


@dataclass(frozen=True)
class RetrieveAndRead(EpisodeMethod):
    """One-shot retrieve and read: the question is the query.

    SR-RAG of TC-RAG App. 8.5 (method 3) when the retriever spans the graph, the documents and
    the web; Omni-RAG's "Original Question" when it spans its five sources; Naive RAG of
    KAG-Thinker Table 6 with k = 3.
    """

    async def run_episode(self, episode: Episode) -> str:
        episode.run.emit(fixed_plan(episode.question, self.kit.sources))
        await episode.search(episode.question.text)
        await episode.read_evidence()
        return "one search was enough"


def fixed_plan(question: Question, sources: tuple[str, ...]) -> SourcesPlanned:
    """The plan of a method that plans nothing: the question itself to every source."""
    queries = tuple(PlannedQuery(source, 0, question.text) for source in sources)
    return SourcesPlanned(queries, "fixed")

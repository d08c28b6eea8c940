"""Methods of one reading: the model alone, a chain of thought, one search (TC-RAG App. 8.5).

`Direct` ("Base") is the language model alone: without a model that may word answers, options are
still weighed by likelihood; an open question is refused, since there is nothing to quote.
`ChainOfThought` (Wei et al. 2022) has the model reason before it answers; no demonstrations are
shown. `RetrieveAndRead` searches once for the question and reads what it found.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from osler.answer import Composer, Decision
from osler.llm.core.base import LanguageModel, Sampling
from osler.methods.episode import (
    Episode,
    EpisodeMethod,
    end_single_pass,
    stated_option,
    write_draft,
)
from osler.trace import PlannedQuery, Run, SourcesPlanned
from osler.types import DecidedBy, Halt, Question, Solution

_UNASKED = "no evidence was requested"
_REFUSED = f"{_UNASKED}, and no writing model is set up"


@dataclass(frozen=True)
class Direct:
    model: LanguageModel
    composer: Composer
    sampling: Sampling = field(default_factory=Sampling)

    async def solve(self, question: Question, run: Run) -> Solution:
        asked, text = (self.model, "baselines/direct", question, self.sampling, run), ""
        if self.composer.uses_draft:
            text = await write_draft(*asked, alone=True)
        answer = await self.composer.conclude(question, (), text, run)
        return end_single_pass(
            answer,
            run,
            DecidedBy.READER,
            converged="one pass, without evidence",
            silent=Halt.REFUSED,
            why=_UNASKED if self.composer.uses_draft else _REFUSED,
        )


@dataclass(frozen=True)
class ChainOfThought:
    model: LanguageModel
    composer: Composer
    sampling: Sampling = field(default_factory=Sampling)

    async def solve(self, question: Question, run: Run) -> Solution:
        asked = (self.model, "baselines/cot", question, self.sampling, run)
        thought = await write_draft(*asked, alone=self.composer.uses_draft)
        # Where the thought names no option, one is weighed after it.
        decision = Decision(stated_option(thought, question), thought.strip())
        answer = await self.composer.conclude(question, (), thought, run, decision=decision)
        return end_single_pass(
            answer,
            run,
            DecidedBy.METHOD if decision.words else DecidedBy.FALLBACK,
            converged="one chain of thought, without evidence",
            silent=Halt.REFUSED,
            why=_UNASKED if self.composer.uses_draft else _REFUSED,
        )


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

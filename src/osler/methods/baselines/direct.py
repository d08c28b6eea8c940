"""Base: the language model alone (TC-RAG App. 8.5, method 1).

Without a model that may word answers, options are still weighed by likelihood;
an open question is refused: there is nothing to quote.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from osler.answer import Composer
from osler.llm.core.base import LanguageModel, Sampling
from osler.methods.baselines.base import end_single_pass, write_draft
from osler.trace import Run
from osler.types import Halt, Question, Solution


@dataclass(frozen=True)
class Direct:
    model: LanguageModel
    composer: Composer
    sampling: Sampling = field(default_factory=Sampling)

    async def solve(self, question: Question, run: Run) -> Solution:
        text = ""
        if self.composer.uses_draft:
            text = await write_draft(self.model, "baselines/direct", question, self.sampling, run)
        answer = await self.composer.conclude(question, (), text, run)
        return end_single_pass(
            answer,
            run,
            converged="one pass, without evidence",
            silent=Halt.REFUSED,
            why="no evidence was asked for, and no model that may word medicine is configured",
        )

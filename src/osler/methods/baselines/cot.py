"""Chain of thought (Wei et al. 2022; TC-RAG App. 8.5, method 2)."""

from __future__ import annotations

from dataclasses import dataclass, field

from osler.answer import Composer
from osler.llm.core.base import LanguageModel, Sampling
from osler.methods.baselines.base import end_single_pass, write_draft
from osler.trace import Run
from osler.types import Halt, Question, Solution


@dataclass(frozen=True)
class ChainOfThought:
    model: LanguageModel
    composer: Composer
    sampling: Sampling = field(default_factory=Sampling)

    async def solve(self, question: Question, run: Run) -> Solution:
        thought = await write_draft(self.model, "baselines/cot", question, self.sampling, run)
        answer = await self.composer.conclude(question, (), thought, run)
        return end_single_pass(
            answer,
            run,
            converged="one chain of thought, without evidence",
            silent=Halt.REFUSED,
            why="no evidence was asked for, and no model that may word medicine is configured",
        )

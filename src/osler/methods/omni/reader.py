"""The reader: a frozen model that answers from what a plan found (Omni-RAG App. E.10, E.11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.answer import Composer
from osler.llm.core.ask import complete
from osler.llm.core.base import LanguageModel, Message, Sampling
from osler.prompts import render_question_prompt
from osler.trace import BudgetExceeded, Run
from osler.types import Answer, Hit, Question, citation_mark


@dataclass(frozen=True)
class Reader:
    """A reader independent of planners: any model may read the results of any plan."""

    model: LanguageModel
    composer: Composer
    sampling: Sampling

    async def read(
        self, question: Question, hits: Sequence[Hit], run: Run, *, alone: bool = False
    ) -> Answer:
        """Answers from `hits`. `alone`: deliberately without documents, from the model's own
        knowledge.

        Without documents and not `alone`, no draft is asked for. Never raises `BudgetExceeded`.
        """
        draft = ""
        if self.composer.uses_draft and (hits or alone):
            draft = await self._write_draft(question, hits, run)
        return await self.composer.conclude(question, hits, draft, run)

    async def _write_draft(self, question: Question, hits: Sequence[Hit], run: Run) -> str:
        if hits:
            found = [hit.passage for hit in hits]
            documents = [
                f"{citation_mark(n)} ({one.source}) {one.heading}: {one.text}"
                for n, one in enumerate(found, 1)
            ]
            prompt = render_question_prompt("omni/read", question, documents=documents)
        else:
            prompt = render_question_prompt("omni/alone", question)
        try:
            reply = await complete(
                self.model,
                [Message("user", prompt.text)],
                self.sampling,
                run,
                role="reader",
                prompt=prompt.identity,
            )
        except BudgetExceeded:
            return ""
        return reply.text

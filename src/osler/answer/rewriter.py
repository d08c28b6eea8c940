"""Answers worded by another model than the one that controlled the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from osler.answer import UNDECIDED, Decision
from osler.answer.written import WrittenComposer
from osler.llm.core.ask import complete
from osler.llm.core.base import LanguageModel, Message, Sampling
from osler.prompts import render_prompt
from osler.trace import BudgetExceeded, Run
from osler.types import Answer, Hit, Question, numbered


@dataclass(frozen=True)
class Rewriter:
    """A composer whose `reader` rewrites the answer from the passages and the draft.

    Without budget for that call the draft is the answer.
    """

    reader: LanguageModel
    sampling: Sampling = field(default_factory=Sampling)
    written: WrittenComposer = field(default_factory=WrittenComposer)

    uses_draft: ClassVar[bool] = True
    writes_answer: ClassVar[bool] = True

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        prompt = render_prompt(
            "answer/reread",
            question.language,
            question=question.text,
            options=question.lettered,
            documents=numbered(hits),
            draft=draft,
        )
        asked = [Message("user", prompt.text)]
        try:
            reply = await complete(
                self.reader, asked, self.sampling, run, role="reader", prompt=prompt.identity
            )
        except BudgetExceeded:
            return await self.written.conclude(question, hits, draft, run, decision=decision)
        return await self.written.conclude(question, hits, reply.text, run, decision=decision)

"""The reader: a frozen model that answers from what a plan found (Omni-RAG App. E.10, E.11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.answer import Composer
from osler.answer.abstention import read_draft
from osler.answer.option_reading import written_option
from osler.llm.core.ask import ask_with_documents, complete, repair_messages
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.prompts import RenderedPrompt, render_question_prompt
from osler.trace import BudgetExceeded, Run
from osler.types import Answer, Hit, Question, citation_mark


@dataclass(frozen=True)
class Reader:
    """A reader independent of planners: any model may read the results of any plan."""

    model: LanguageModel
    composer: Composer
    sampling: Sampling

    async def read(
        self,
        question: Question,
        hits: Sequence[Hit],
        run: Run,
        *,
        alone: bool = False,
        draft: str | None = None,
    ) -> Answer:
        """Answers from `hits`. `alone`: deliberately without documents, from the model's own
        knowledge; `draft`: what the model has written already.

        Without documents and not `alone`, no draft is asked for. Never raises `BudgetExceeded`.
        """
        if draft is None:
            asks = self.composer.uses_draft and (hits or alone)
            draft = await self._write_draft(question, hits, run) if asks else ""
        return await self.composer.conclude(question, hits, read_draft(draft, run), run)

    async def _write_draft(self, question: Question, hits: Sequence[Hit], run: Run) -> str:
        found = [hit.passage for hit in hits]
        documents = [
            f"{citation_mark(n)} ({one.source}) {one.heading}: {one.text}"
            for n, one in enumerate(found, 1)
        ]
        try:
            return await ask_with_documents(
                documents, lambda shown: self._draft_from(question, shown, run), run
            )
        except BudgetExceeded:
            return ""

    async def _draft_from(self, question: Question, documents: Sequence[str], run: Run) -> str:
        if documents:
            prompt = render_question_prompt("omni/read", question, documents=documents)
        else:
            prompt = render_question_prompt("omni/alone", question)
        reply = await self._ask([Message("user", prompt.text)], prompt, run)
        return await self._with_option(question, prompt, reply, run)

    async def _with_option(
        self, question: Question, prompt: RenderedPrompt, drafted: Completion, run: Run
    ) -> str:
        """The draft with an option that can be read: it is asked for once more where it has none,
        as the released code does."""
        draft = drafted.text
        if not question.options or not draft.strip() or written_option(draft, question):
            return draft
        letters = ", ".join(question.letters)
        wrong = f"expected <answer>X</answer> with one of {letters}, at the end"
        asked = repair_messages([Message("user", prompt.text)], drafted, wrong, self.sampling)
        try:
            reply = await self._ask(asked, prompt, run, repaired=wrong)
        except BudgetExceeded:
            return draft
        option = written_option(reply.text, question)
        return f"{draft}\n<answer>{option}</answer>" if option else draft

    async def _ask(
        self, messages: list[Message], prompt: RenderedPrompt, run: Run, *, repaired: str = ""
    ) -> Completion:
        return await complete(
            self.model,
            messages,
            self.sampling,
            run,
            role="reader",
            prompt=prompt.identity,
            repaired=repaired,
        )

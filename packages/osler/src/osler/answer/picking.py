"""Quotes picked by a model that must not word medicine: it names sentences, and writes none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from osler.answer.sentences import QuoteCandidate, add_neighbours
from osler.llm.core.ask import Speaker
from osler.llm.reading.verdicts import numbers_grammar, read_order
from osler.prompts import RenderedPrompt, render_prompt
from osler.trace import Run
from osler.types import Language, Question

SHOWN = 24
"""Sentences that a model is shown. Of 270 questions by other hands .934 have a right one among the
best 12, .956 among these, .978 anywhere among what was found."""
_NOTE: Mapping[Language, str] = {
    "en": "The model {} chose which sentences answer; how sure it is, is not known.",
    "zh": "由模型{}判断哪些原文回答了问题；其把握程度未知。",
}
_FAILED: Mapping[Language, str] = {
    "en": "The reply of the model {} could not be read; the packaged judge chose.",
    "zh": "模型{}的回复无法读取，改由内置模型判断。",
}


@dataclass(frozen=True)
class QuotePicker:
    """Asks one model which of the sentences that were read answer the question."""

    speaker: Speaker

    async def pick_quotes(
        self, question: Question, found: Sequence[QuoteCandidate], run: Run
    ) -> list[QuoteCandidate] | None:
        """The sentences that it names, the best first; `None` where its reply cannot be read, or
        the run's budget has no room for it."""
        # Each with the sentences that it is quoted with.
        shown = [add_neighbours([one], 1)[0] for one in found]
        sentences = [f"{one.hit.passage.heading}: {one.text}" for one in shown]
        prompt = render_pick_prompt(question, sentences)
        named = await self.speaker.try_asking(
            prompt,
            lambda reply: read_order(reply.text, len(found)),
            run,
            grammar=numbers_grammar(len(found), self.speaker.reasoning),
            without="no sentence was picked",
        )
        return None if named is None else [found[n - 1] for n in named]

    def describe_pick(self, language: Language, *, failed: bool) -> str:
        """Who chose, for the reader."""
        said = _FAILED if failed else _NOTE
        return said[language].format(self.speaker.model.name)


def render_pick_prompt(question: Question, sentences: Sequence[str]) -> RenderedPrompt:
    """Renders the prompt, whose replies `read_order` reads."""
    values = {"question": question.text, "sentences": sentences}
    return render_prompt("answer/pick", question.language, **values)

"""A model's statements confirmed by a model: which passages bear out which sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from osler.llm.core.ask import Speaker
from osler.llm.reading.verdicts import read_table, table_grammar
from osler.prompts import RenderedPrompt, render_prompt
from osler.trace import Run
from osler.types import Language, Question

_NOTE: Mapping[Language, str] = {
    "en": "The model {} read whether the cited passages bear each statement out; whether it read"
    " rightly is yours to judge.",
    "zh": "由模型{}判断所引段落是否支持每句陈述；判断是否正确，请自行核对。",
}


@dataclass(frozen=True)
class StatementChecker:
    """Asks one model which of the passages that were read bear out each statement."""

    speaker: Speaker

    async def find_bearing(
        self, question: Question, statements: Sequence[str], passages: Sequence[str], run: Run
    ) -> list[list[int]] | None:
        """For each statement the passages' places, from 0, the best first; `None` where the reply
        cannot be read, or the model or the run's budget has no room for it."""
        prompt = render_confirm_prompt(question, statements, passages)
        size = len(statements), len(passages)
        named = await self.speaker.try_asking(
            prompt,
            lambda reply: read_table(reply.text, *size),
            run,
            grammar=table_grammar(*size, self.speaker.reasoning),
            without="statements were checked by their words alone",
        )
        return None if named is None else [[n - 1 for n in row] for row in named]

    def describe_check(self, language: Language) -> str:
        """Who checked, for the reader."""
        return _NOTE[language].format(self.speaker.model.name)


def render_confirm_prompt(
    question: Question, statements: Sequence[str], passages: Sequence[str]
) -> RenderedPrompt:
    """Renders the prompt, whose replies `read_table` reads."""
    values = {"question": question.text, "passages": passages, "statements": statements}
    return render_prompt("answer/confirm", question.language, **values)

"""What a composer is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from osler.trace import Run
from osler.types import Answer, Hit, Question

NOTHING_SAID = {
    "en": "The evidence does not say.",
    "zh": "现有证据没有说明。",
}


class Composer(Protocol):
    @property
    def uses_draft(self) -> bool:
        """Whether it uses a model's draft; else nobody need pay for one."""
        ...

    @property
    def writes_answer(self) -> bool:
        """Whether it words the answer itself; else the draft is the answer."""
        ...

    async def conclude(
        self, question: Question, hits: Sequence[Hit], draft: str, run: Run
    ) -> Answer:
        """An answer from `hits`; `draft` is what a model wrote, "" if nothing.

        An answer without statements and without an option is an abstention.
        """
        ...


def spoken_text(answer: Answer, question: Question) -> str:
    """The answer as one would read it out: the option first, then what it rests on."""
    if answer.option is None:
        return answer.text
    return f"{answer.option}. {question.option_text(answer.option)} {answer.text}".rstrip()


def plain_text(answer: Answer, question: Question) -> str:
    """The same without citation marks: the text whose sureness is monitored."""
    separator = "" if answer.language == "zh" else " "
    said = [statement.text for statement in answer.statements]
    if answer.option is not None:
        said.insert(0, f"{answer.option}. {question.option_text(answer.option)}.")
    return separator.join(said)

"""Answers: from evidence to statements that cite their passages.

A strategy decides what to read and when to stop; a `Composer` turns the evidence it has gathered
into an `Answer`. `written` attributes each sentence of a capable model's draft, `rewriter` has
another model word it anew, `extractive` quotes. `options` chooses among options, `cautions` adds
what the metadata and wording of the evidence warn of (`currency`, `disagreement`), and `verify`
compares a claim with evidence.
"""

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
        """Whether it uses a model's draft; if not, none need be generated."""
        ...

    @property
    def writes_answer(self) -> bool:
        """Whether it words the answer itself; if not, the draft is the answer."""
        ...

    async def conclude(
        self, question: Question, hits: Sequence[Hit], draft: str, run: Run
    ) -> Answer:
        """Composes an answer from `hits`; `draft` is a model's text, or "".

        An answer without statements and without an option is an abstention.
        """
        ...


def spoken_text(answer: Answer, question: Question) -> str:
    """The answer as running text: the option first, then its statements."""
    if answer.option is None:
        return answer.text
    return f"{answer.option}. {question.option_text(answer.option)} {answer.text}".rstrip()


def plain_text(answer: Answer, question: Question) -> str:
    """The answer without citation marks: the text whose state value is monitored."""
    separator = "" if answer.language == "zh" else " "
    said = [statement.text for statement in answer.statements]
    if answer.option is not None:
        said.insert(0, f"{answer.option}. {question.option_text(answer.option)}.")
    return separator.join(said)

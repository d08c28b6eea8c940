"""Answers: from evidence to statements that cite their passages.

A strategy decides what to read and when to stop; a `Composer` turns the evidence it has gathered
into an `Answer`, and carries out the `Decision` of a strategy that has one. `written` attributes
each sentence of a capable model's draft, or of another model's that words it anew, `extractive`
quotes from what its `gate` lets through. `option_reading` reads the option that a text chose,
`options` chooses one, and `cautions` adds what the metadata of the evidence warns of (`currency`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from osler.trace import Run
from osler.types import Answer, DecidedBy, Hit, Question

NOTHING_SAID = {
    "en": "The evidence does not say.",
    "zh": "现有证据没有说明。",
}
NOT_SEARCHED = {
    "en": "No search was made; without one only a writing model can answer.",
    "zh": "没有进行检索；不检索时，只有能撰写答案的模型才能作答。",
}


@dataclass(frozen=True, slots=True)
class Decision:
    """What a method decided by itself; a composer carries it out, whoever may word the answer."""

    option: str | None = None
    """The letter that it chose; `None` where it named none."""
    words: str = ""
    """Its own answer or reasoning. Where its model may not word medicine they are never shown:
    an option that it did not name is weighed after them, and quotes are ranked by them."""
    passages: tuple[str, ...] = ()
    """Ids of the passages on which it rests; empty = all that were found."""

    def select_hits(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """The hits on which the decision rests; all where it names none of them."""
        return [hit for hit in hits if hit.passage.id in self.passages] or hits


UNDECIDED = Decision()
"""No decision: the composer answers from the hits."""


class Composer(Protocol):
    @property
    def uses_draft(self) -> bool:
        """Whether it uses a model's draft; if not, none need be generated."""

    @property
    def writes_answer(self) -> bool:
        """Whether it words the answer itself; if not, the draft is the answer."""

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        """Composes an answer from `hits`; `draft` is a model's text, or "".

        `decision` has precedence over what the composer would choose by itself. An answer
        without statements and without an option is an abstention.
        """


def who_decided(composer: Composer, decision: Decision) -> DecidedBy:
    """Who decided an answer of the composer's: the method, by its draft or its decision, or a
    reader for it."""
    counts = composer.uses_draft or decision != UNDECIDED
    return DecidedBy.METHOD if counts else DecidedBy.FALLBACK


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

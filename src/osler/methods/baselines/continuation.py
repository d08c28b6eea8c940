"""An answer that grows: the model goes on from what stands, with other passages before it.

What FL-RAG, FS-RAG, FLARE and DRAGIN share; they differ in when and with what they search.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from osler.llm.core.base import Completion, Message
from osler.methods.baselines.episode import Episode, said_so_far
from osler.prompts import RenderedPrompt
from osler.text import split_sentences
from osler.types import Hit, Language

_ANSWERED = re.compile(r"<answer>[^<]*</answer>|\banswer is\b|答案(?:是|为)", re.IGNORECASE)


async def go_on(
    line: Episode, found: Sequence[Hit], text: str, *, tokens: int, top: int = 0
) -> Completion:
    """How the model goes on from `text` with the passages found. Raises `BudgetExceeded`."""
    return await line.ask_model(
        _continuation_prompt(line, found), begun=text, tokens=tokens, top=top
    )


def continuation_messages(line: Episode, found: Sequence[Hit], text: str) -> list[Message]:
    """What the model has before it when it goes on from `text`."""
    return said_so_far(_continuation_prompt(line, found), text)


def _continuation_prompt(line: Episode, found: Sequence[Hit]) -> RenderedPrompt:
    return line.render_prompt(
        "baselines/grow", **line.question_variables, documents=line.list_documents(found)
    )


def has_answer(text: str) -> bool:
    """Whether the text has come to its answer ("So the answer is …")."""
    return _ANSWERED.search(text) is not None


def first_sentence(text: str) -> str:
    """The text to the end of its first sentence, with the white space before it."""
    spans = split_sentences(text)
    return text[: spans[0][1]] if spans else ""


def join_sentences(text: str, more: str, language: Language) -> str:
    """English sentences stand apart, Chinese ones do not."""
    if not text or not more:
        return text + more
    return f"{text.rstrip()}{'' if language == 'zh' else ' '}{more.lstrip()}"

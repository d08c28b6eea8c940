"""Continues a growing answer, each time with other passages in the prompt.

Shared by FL-RAG, FS-RAG, FLARE and DRAGIN, which differ in when they search and with which query.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from osler.llm.core.base import Completion, Message
from osler.llm.reading.answers import bare_words
from osler.llm.reading.debris import is_debris
from osler.methods.single_pass.episode import Episode, said_so_far
from osler.prompts import RenderedPrompt
from osler.text import split_sentences
from osler.types import Hit, Language

_SHORT = 20
"""Characters of a piece that may well come twice."""
_ANSWERED = re.compile(r"<answer>[^<]*</answer>|\banswer is\b|答案(?:是|为)", re.IGNORECASE)


async def go_on(
    episode: Episode, found: Sequence[Hit], text: str, *, tokens: int, top: int = 0
) -> Completion:
    """The model's continuation of `text`, at most `tokens` long, with `hits` in the prompt.

    `top`: alternatives per token whose log-probabilities are wanted. Raises `BudgetExceeded`.
    """
    return await episode.ask(
        _continuation_prompt(episode, found), begun=text, tokens=tokens, top=top
    )


def continuation_messages(episode: Episode, found: Sequence[Hit], text: str) -> list[Message]:
    """The conversation in which the model continues `text`."""
    return said_so_far(_continuation_prompt(episode, found), text)


def _continuation_prompt(episode: Episode, found: Sequence[Hit]) -> RenderedPrompt:
    return episode.render("baselines/grow", documents=episode.list_documents(found))


def has_answer(text: str) -> bool:
    """Whether the text already states its answer ("So the answer is …")."""
    return _ANSWERED.search(text) is not None


def first_sentence(text: str) -> str:
    """The text up to the end of its first sentence, leading white space included."""
    spans = split_sentences(text)
    return text[: spans[0][1]] if spans else ""


def next_sentence(text: str, draft: str) -> str:
    """The first sentence of a continuation that is part of an answer; empty where it has come to
    its end, or says again what the draft says."""
    rest = text
    while (sentence := first_sentence(rest)) and is_debris(sentence):
        rest = rest[len(sentence) :]
    known = {bare_words(draft[start:end]) for start, end in split_sentences(draft)}
    return "" if bare_words(sentence) in known | {""} else sentence


def repeats_text(text: str, draft: str) -> bool:
    """Whether a piece of a continuation, of any length but a few words, is in the draft already."""
    said = bare_words(text)
    return len(said) > _SHORT and said in bare_words(draft)


def join_sentences(text: str, more: str, language: Language) -> str:
    """Joins two pieces of an answer: with a space in English, without one in Chinese."""
    if not text or not more:
        return text + more
    return f"{text.rstrip()}{'' if language == 'zh' else ' '}{more.lstrip()}"

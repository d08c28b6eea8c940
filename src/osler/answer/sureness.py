"""How sure an answer is, in a word."""

from __future__ import annotations

from typing import Literal

from osler.types import Language, Sureness

Word = Literal["very likely", "likely", "uncertain", "probably not"]
_FROM: tuple[tuple[float, Word], ...] = (
    (0.8, "very likely"),
    (0.5, "likely"),
    (0.25, "uncertain"),
    (0.0, "probably not"),
)
"""Least probability of each word, the highest first."""
_SAID: dict[Language, dict[Word, str]] = {
    "en": {
        "very likely": "These quotations very likely answer the question.",
        "likely": "These quotations likely answer the question.",
        "uncertain": "It is uncertain whether these quotations answer the question.",
        "probably not": "These quotations probably do not answer the question.",
    },
    "zh": {
        "very likely": "这些原文很可能回答了该问题。",
        "likely": "这些原文可能回答了该问题。",
        "uncertain": "尚不确定这些原文是否回答了该问题。",
        "probably not": "这些原文很可能没有回答该问题。",
    },
}


def sureness_word(sureness: Sureness) -> Word:
    """The word for a probability; the number stands beside it in every document of a run."""
    return next(word for least, word in _FROM if sureness.probability >= least)


def describe_sureness(sureness: Sureness, language: Language) -> str:
    """A sentence for the reader."""
    return _SAID[language][sureness_word(sureness)]

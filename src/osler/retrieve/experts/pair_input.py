"""Question and text as one sequence of word pieces, for training and running alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from osler.kb.encoders.base import WordPieces

QUESTION_PIECES = 64
"""Pieces of a question that are read; consumers' letters are cut."""
LONGEST = 96
"""Pieces of question and text together, with [CLS] and two [SEP]."""


@dataclass(frozen=True, slots=True)
class PairInput:
    """Ids of [CLS] question [SEP] text [SEP], and 1 where the text is."""

    ids: tuple[int, ...]
    segments: tuple[int, ...]


def read_pair(
    words: WordPieces, question: str, text: str, title: str = "", *, longest: int = LONGEST
) -> PairInput:
    """Reads a pair; the title stands before the text, and what is too long loses its end."""
    asked = words.piece_ids(question)[:QUESTION_PIECES]
    said = words.piece_ids(titled_text(text, title))[: longest - len(asked) - 3]
    ids = (words.first, *asked, words.last, *said, words.last)
    return PairInput(ids, (0,) * (len(asked) + 2) + (1,) * (len(said) + 1))


def titled_text(text: str, title: str) -> str:
    """The text after its title, as the choice of quotes shows sentences to a scorer."""
    return f"{title}. {text}" if title else text

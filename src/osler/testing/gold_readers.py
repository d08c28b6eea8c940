"""A reader that plays gold: shown the gold documents, it writes the gold answer and cites them.

A method that hands such a reader the gold documents answers right; what it loses is the method's
own. A fixed share of its answers has its marks on the next passage, as those of real models have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

from osler.testing.competent import CompetentModel
from osler.testing.mannered import Turns
from osler.text import split_sentences
from osler.types import CITATION_MARK, Passage

_WHOLE = 2**32


@dataclass(frozen=True)
class GoldReader:
    """Replies about one question whose answer and documents are known."""

    question: str
    answer: str
    gold: Sequence[Passage]
    """The documents that bear the answer out together."""
    wrong: float = 0.1
    """Share of its marked replies whose marks name the next passage."""

    def __call__(self, turns: Turns, begun: str) -> str:
        reply = self._model(turns, begun)
        drawn = crc32(f"{self.question}\n{reply}".encode()) / _WHOLE
        return _shift_marks(reply) if drawn < self.wrong else reply

    # A frozen dataclass keeps its cached values in its dictionary all the same.
    @cached_property
    def _model(self) -> CompetentModel:
        titles = [passage.title or passage.heading for passage in self.gold]
        several = len(self.gold) > 1
        return CompetentModel(
            self.question,
            f"{self.answer.rstrip('.')}.",
            self.answer,
            query=self.question,
            topic=titles[0].replace("'", " "),
            evidence=tuple(key_sentence(each, self.answer) for each in self.gold),
            looked_up=tuple(f"What is said of {one}?" for one in titles) if several else (),
        )


def key_sentence(passage: Passage, answer: str) -> str:
    """The sentence by which the reader knows a document: the one with the answer, or the first."""
    text = passage.text
    said = [text[start:end].strip() for start, end in split_sentences(text)]
    return next((one for one in said if answer.casefold() in one.casefold()), said[0])


def _shift_marks(reply: str) -> str:
    return re.sub(CITATION_MARK.pattern, lambda mark: f"[{int(mark[1]) + 1}]", reply)

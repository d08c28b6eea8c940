"""What `answers` weighs beside the pair model's logits: whose text it is, and how near.

The pair model knows which kind of statement a question wants. Whose disease it is, names and words
say better; a linear model puts them together. The cosine of the packaged encoder added nothing on
the dev part and doubled the time, so it is no cue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import log1p
from typing import TYPE_CHECKING

from osler.retrieve.naming import NamingRelevance
from osler.retrieve.words import content_terms

if TYPE_CHECKING:
    from osler.retrieve.experts.linear import Matrix

CUES = ("named", "coverage", "letters")
FEATURES = ("pair", "lead", *CUES)
"""The logits of the text and of its passage's beginning, and the cues."""


def measure_cues(question: str, texts: Sequence[str]) -> Matrix:
    """The cues of each text, its title before it: shape (texts, cues)."""
    import numpy as np

    named = _naming().score_texts(question, texts)
    covered = share_covered(question, texts)
    letters = [log1p(len(text)) for text in texts]
    return np.array([named, covered, letters], np.float64).T


def share_covered(question: str, texts: Sequence[str]) -> list[float]:
    """The share of the question's content words that each text has."""
    asked = set(content_terms(question))
    return [len(asked & set(content_terms(text))) / max(1, len(asked)) for text in texts]


def join_features(logits: Sequence[float], leads: Sequence[float], cues: Matrix) -> Matrix:
    """The rows that the linear model reads: shape (texts, features)."""
    import numpy as np

    return np.hstack([np.array([logits, leads], np.float64).T, cues])


@cache
def _naming() -> NamingRelevance:
    return NamingRelevance(_rarity_by_length)


def _rarity_by_length(words: Sequence[str]) -> Mapping[str, float]:
    """Without a knowledge base the longest word stands for the rarest."""
    return {word: float(len(word)) for word in words}

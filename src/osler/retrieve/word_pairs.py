"""Which pairs of neighbouring words of a question stand side by side in a text as well.

"Vaginal cancer" is not named by a page that has both words in different sentences, nor is
"spastic paraplegia 2" by one on spastic paraplegia 11.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from osler.retrieve.naming import stem_words, telling_words
from osler.retrieve.words import STOP_WORDS

_WORD = re.compile(r"[^\W_]+")


def share_of_pairs(question: str, texts: Sequence[str]) -> list[float | None]:
    """The share of the question's pairs that each text has, compared by their stems.

    A pair is two neighbours of which none is a stop word and one at least is telling
    (`naming.telling_words`). `None` for each text where the question has no pair.
    """
    pairs = _asked_pairs(question)
    if not pairs:
        return [None] * len(texts)
    return [len(pairs & _neighbours(text)) / len(pairs) for text in texts]


def _asked_pairs(question: str) -> frozenset[tuple[str, str]]:
    words, telling = _words_of(question), set(telling_words(question))
    stems = stem_words(sorted(set(words)))
    return frozenset(
        (stems[a], stems[b])
        for a, b in pairwise(words)
        if not STOP_WORDS & {a, b} and telling & {a, b}
    )


@lru_cache(maxsize=512)
def _neighbours(text: str) -> frozenset[tuple[str, str]]:
    words = _words_of(text)
    stems = stem_words(sorted(set(words)))
    found = [stems[word] for word in words]
    return frozenset(pairwise(found))


def _words_of(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]

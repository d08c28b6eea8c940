"""An encoder without a model, for tests only: it knows words, not meanings."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from osler.types import Language

if TYPE_CHECKING:
    from osler.kb.encoders.base import Kind, Vectors

_WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")


class HashingEncoder:
    """A test double: counts of English words and Chinese characters, hashed into 64 places.

    Texts that share words are near each other; two different words may share a place.
    A text without a word counts as the empty word.
    """

    identity = "hashing-64"
    dimension = 64
    languages: frozenset[Language] = frozenset({"en", "zh"})

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        import numpy as np

        counts = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            for word in _WORD.findall(text.lower()) or [""]:
                counts[row, zlib.crc32(word.encode()) % self.dimension] += 1
        counts /= np.linalg.norm(counts, axis=1, keepdims=True)
        return counts

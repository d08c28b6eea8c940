"""What is a sentence about, of what questions ask: treatment, causes, outlook …?

A softmax over words and pairs of words, each hashed to one of `BUCKETS` places, with weights of
one byte; a part of the expert `answers`. The words of the question's subject count as one and the
same, so that nothing is learnt of single diseases. What a question asks for is read by the
patterns of `aspects.toml`.
"""

from __future__ import annotations

import re
import tomllib
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError
from osler.retrieve.naming import telling_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BUCKETS = 1 << 13
MEDICAL = (
    "causes",
    "complications",
    "exams and tests",
    "frequency",
    "information",
    "inheritance",
    "outlook",
    "prevention",
    "research",
    "stages",
    "susceptibility",
    "symptoms",
    "treatment",
)
"""What questions ask for."""
NAMES = (*MEDICAL, "aim", "finding", "method")
"""And the parts of an abstract, in the order of the probabilities."""
_DECIDES = re.compile(
    r"\W*(?:is|are|was|were|does|do|did|can|could|has|have|should|will|may)\b(?!.*\binherited\b)"
    r"|[^:?]+: ",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+|\d+")
_SUBJECT, _NUMBER = "\0subject", "\0number"


@dataclass(frozen=True)
class AspectModel:
    """Weights of shape (places, aspects), float32, and of each aspect a bias."""

    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, NDArray[Any]]) -> AspectModel:
        """Weights are stored as bytes around 128. Raises `ModelError` for other tensors."""
        import numpy as np

        try:
            packed, step, bias = (tensors[name] for name in ("words", "step", "start"))
        except KeyError as error:
            raise ModelError(f"the expert's weights lack {error}") from error
        if packed.shape != (BUCKETS, len(NAMES)) or step.shape != bias.shape:
            raise ModelError("the shapes of the expert's weights do not fit each other")
        return cls((packed.astype(np.float32) - 128) * step.astype(np.float32), bias)

    def measure_agreement(self, question: str, sentences: Sequence[str]) -> NDArray[np.float64]:
        """How far each sentence is about what the question asks for, in [0, 1].

        Where a question asks for none of these: how far it tells of a finding rather than of an
        aim or a method.
        """
        import numpy as np

        if not sentences:
            return np.zeros(0)
        subject = frozenset(telling_words(question))
        places = [hash_words(text, subject) for text in sentences]
        logits = np.stack(
            [self.weights[own].sum(0) / max(1, len(own)) ** 0.5 + self.bias for own in places]
        ).astype(np.float64)
        raised = np.exp(logits - logits.max(1, keepdims=True))
        shares = raised / raised.sum(1, keepdims=True)
        if asked := find_asked_aspect(question):
            return np.asarray(shares[:, NAMES.index(asked)])
        return np.asarray(1 - shares[:, [NAMES.index("aim"), NAMES.index("method")]].sum(1))


def hash_words(sentence: str, subject: Collection[str]) -> list[int]:
    """The places of a sentence's words and pairs of neighbours, in order, each once."""
    words = [
        _NUMBER if word.isdigit() else _SUBJECT if word in subject else word
        for word in _WORD.findall(sentence.casefold())
    ]
    features = [*words, *map(" ".join, pairwise(words))]
    return sorted({zlib.crc32(feature.encode()) % BUCKETS for feature in features})


def find_asked_aspect(question: str) -> str:
    """What a question asks for, one of `MEDICAL`; empty where no pattern says.

    "Does screening improve the outlook?" asks for a finding, not for an outlook.
    """
    said = " ".join(question.split())
    if _DECIDES.match(said):
        return ""
    return next((name for name, asks in _patterns().items() if asks.search(said)), "")


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    text = files("osler.retrieve.experts").joinpath("aspects.toml").read_text(encoding="utf-8")
    given: Mapping[str, Any] = tomllib.loads(text)
    return {name: re.compile(pattern, re.IGNORECASE) for name, pattern in given["asked"].items()}

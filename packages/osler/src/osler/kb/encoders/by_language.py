"""An encoder for one language beside the usual one: two spaces of vectors in one knowledge base.

Vectors of different encoders say nothing about each other. So every text has one language, whose
encoder makes its vector, and a question is compared with vectors of its own language's encoder.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from osler.errors import ModelError
from osler.kb.encoders.base import Encoder
from osler.text import language_of
from osler.types import Language

if TYPE_CHECKING:
    from osler.kb.encoders.base import Kind, Vectors


@dataclass
class LateEncoder:
    """An `Encoder` that is loaded for the first text, which may never come."""

    identity: str
    dimension: int
    languages: frozenset[Language]
    load: Callable[[], Encoder]
    _loaded: Encoder | None = field(default=None, repr=False)
    _loading: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Raises what `load` raises."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self.load()
        return self._loaded.encode(texts, kind=kind)


@dataclass(frozen=True)
class EncoderByLanguage:
    """An `Encoder` that gives texts of some languages to others, of the same dimension.

    Its identity is that of `usual`, whose vectors stay as they are when another language joins.
    """

    usual: Encoder
    others: Mapping[Language, Encoder]

    def __post_init__(self) -> None:
        if any(other.dimension != self.usual.dimension for other in self.others.values()):
            raise ModelError("encoders of one knowledge base must give as many numbers each")

    @property
    def identity(self) -> str:
        return self.usual.identity

    @property
    def dimension(self) -> int:
        return self.usual.dimension

    @property
    def languages(self) -> frozenset[Language]:
        return self.usual.languages | frozenset(self.others)

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        return encode_by_language(self, texts, [language_of(text) for text in texts], kind)


def encoder_for(encoder: Encoder, language: Language) -> Encoder:
    """The one that makes the vectors of this language."""
    if isinstance(encoder, EncoderByLanguage):
        return encoder.others.get(language, encoder.usual)
    return encoder


def shared_languages(encoder: Encoder, language: Language) -> frozenset[Language]:
    """The languages whose vectors compare with those of this one; none where it has no vectors."""
    if language not in encoder.languages:
        return frozenset()
    own = encoder_for(encoder, language)
    return frozenset(one for one in encoder.languages if encoder_for(encoder, one) is own)


def name_spaces(encoder: Encoder) -> str:
    """The encoders of single languages, by which a knowledge base knows them; "" where one
    encoder makes all vectors."""
    others = encoder.others if isinstance(encoder, EncoderByLanguage) else {}
    return " ".join(f"{language}={others[language].identity}" for language in sorted(others))


def read_spaces(named: str) -> dict[str, str]:
    """Language and encoder of each of `name_spaces`."""
    return dict(one.split("=", 1) for one in named.split())


def encode_by_language(
    encoder: Encoder, texts: Sequence[str], languages: Sequence[Language], kind: Kind
) -> Vectors:
    """Vectors of texts whose languages are known, in order."""
    import numpy as np

    makers = [encoder_for(encoder, language) for language in languages]
    if len({id(maker) for maker in makers}) <= 1:
        maker = makers[0] if makers else encoder_for(encoder, "en")
        return maker.encode(texts, kind=kind)
    vectors = np.empty((len(texts), encoder.dimension), np.float32)
    for maker in {id(one): one for one in makers}.values():
        rows = [row for row, one in enumerate(makers) if one is maker]
        vectors[rows] = maker.encode([texts[row] for row in rows], kind=kind)
    return vectors

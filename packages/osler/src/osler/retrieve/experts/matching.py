"""`match`: how near a sentence, under its heading, lies to what would answer a question.

The packaged encoder with all its layers tuned: it has learnt from a larger model that reads
question and sentence together, and from labels.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from osler.errors import ModelError
from osler.kb.encoders.base import (
    Kind,
    WordPieces,
    build_graph,
    encode_texts,
    open_session,
)
from osler.kb.encoders.minilm import DIMENSION, read_safetensors
from osler.llm.core.cache import derive_file
from osler.llm.local.weights import MINILM, MINILM_TOKENIZER, locate_weights
from osler.retrieve.experts.pair_graph import merge_deltas
from osler.retrieve.relevance import EncoderRelevance
from osler.text import language_of

if TYPE_CHECKING:
    from osler.kb.encoders.base import Vectors
    from osler.retrieve.asked import QuestionReader
    from osler.retrieve.experts.shelf import ShelvedExpert
    from osler.types import Language

MATCH = "match"
"""Name of the expert, also on tapes."""
_REVISION = 1
"""Raise it with each change to what the graph computes: it is cached under this number."""


class MatchEncoder:
    """The tuned encoder, an `Encoder` of questions and of "heading. sentence".

    One object may be used from several threads.
    """

    dimension = DIMENSION

    def __init__(
        self, expert: ShelvedExpert, *, threads: int | None = None, cache: Path | None = None
    ) -> None:
        """Loads the graph from the cache, where it is built the first time, in seconds.

        `threads` texts are read side by side. Raises `ModelMissing` when the base encoder's
        weights are not there, and `ModelError` for an expert of another family and for a graph
        that strays from the exact one.
        """
        card = expert.card
        if card.family != "encoder":
            raise ModelError(f"the expert {card.name!r} is not an encoder")
        self.identity = card.identity
        self.languages: frozenset[Language] = frozenset(card.languages)
        tokenizer = locate_weights(MINILM_TOKENIZER, cache=cache)

        def make_graph(draft: Path) -> None:
            base = read_safetensors(locate_weights(MINILM, cache=cache))
            build_graph(merge_deltas(base, expert.read_tensors()), tokenizer, draft)

        name = f"expert-{card.name}-{card.fingerprint[:12]}.int8-{_REVISION}.onnx"
        self._session = open_session(derive_file(name, make_graph, cache=cache), 1)
        self._words = WordPieces(tokenizer)
        self._threads = threads or os.cpu_count() or 1
        self._remembered = lru_cache(maxsize=8_192)(self._encode_text)

    def _encode_text(self, text: str) -> Vectors:
        vector: Vectors = encode_texts(self._session, self._words, [text])[0]
        return vector

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Encodes texts; questions and sentences alike."""
        import numpy as np

        if not texts:
            return np.empty((0, DIMENSION), np.float32)
        with ThreadPoolExecutor(min(self._threads, len(texts))) as pool:
            return np.stack(list(pool.map(self._remembered, texts)))


@dataclass(frozen=True)
class MatchRelevance:
    """The encoder's cosines as a `Relevance`; `reader` reads the question."""

    encoder: MatchEncoder
    reader: QuestionReader | None = None

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Cosines in order; 0 for all in a language that it was not trained on."""
        if language_of(query) not in self.encoder.languages:
            return (0.0,) * len(texts)
        return await EncoderRelevance(self.encoder, self.reader).relevance(query, texts)

"""The experts `judge`, does this sentence answer this question, and `match`, how near it lies to
what would.

Both are the packaged encoder with all its layers tuned. `judge` reads question and sentence
together: the sentence under its heading, between its neighbours. `match` reads each alone, and has
learnt from a larger model that reads both, and from labels.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError
from osler.kb.encoders.base import (
    Kind,
    WordPieces,
    build_graph,
    encode_texts,
    map_beside,
    open_session,
)
from osler.kb.encoders.minilm import DIMENSION, read_safetensors
from osler.llm.core.cache import derive_file
from osler.llm.local.weights import MINILM, MINILM_TOKENIZER, locate_weights
from osler.retrieve.experts.pair_graph import (
    PairInput,
    TextPieces,
    merge_deltas,
    pair_graph,
    run_pairs,
)
from osler.retrieve.relevance import EncoderRelevance
from osler.text import language_of, one_line
from osler.types import Language

if TYPE_CHECKING:
    from osler.kb.encoders.base import Vectors
    from osler.retrieve.asked import QuestionReader
    from osler.retrieve.experts.cards import ShelvedExpert
    from osler.types import Language

JUDGE = "judge"
"""Name of the expert, also on tapes."""
QUESTION, HEADING, SENTENCE, NEIGHBOUR = 64, 40, 110, 20
"""Word pieces that are read of each part."""
_PARTS = "\x1e"
_LEVELS = 2
"""Levels of a heading that are read below the title."""
_REVISION = 1
"""Raise it with each change to what the graph computes: it is cached under this number."""
_MOST_APART = 1.0
"""Most by which a logit in 8 bits may differ from the exact one, on the pairs below."""


@dataclass(frozen=True, slots=True)
class JudgedText:
    """A sentence with what stands around it."""

    sentence: str
    heading: str = ""
    before: str = ""
    after: str = ""

    def to_line(self) -> str:
        """One text, as a `Relevance` takes it and a tape keeps it."""
        parts = (self.heading, self.sentence, self.before, self.after)
        return _PARTS.join(map(one_line, parts))

    @classmethod
    def of_line(cls, line: str) -> JudgedText:
        """Reads what `to_line` wrote; a text without parts is a sentence alone."""
        parts = line.split(_PARTS)
        if len(parts) != 4:
            return cls(line)
        heading, sentence, before, after = parts
        return cls(sentence, heading, before, after)

    @property
    def short_heading(self) -> str:
        """The title and the last levels below it."""
        title, *levels = self.heading.split(" > ")
        return " > ".join((title, *levels[-_LEVELS:]))


_CHECK = (
    ("How is anaphylaxis treated?", JudgedText("Give adrenaline into the outer thigh.", "Allergy")),
    ("How is anaphylaxis treated?", JudgedText("It is a reaction of rapid onset.", "Anaphylaxis")),
    ("what causes scurvy", JudgedText("Scurvy is caused by a lack of vitamin C.", "", "Rare now.")),
    ("what causes scurvy", JudgedText("Rickets is caused by a lack of vitamin D.", "Rickets")),
    ("Is warfarin safe in pregnancy?", JudgedText("See the section on anticoagulants.")),
)


def read_judged(words: TextPieces, question: str, text: JudgedText) -> PairInput:
    """[CLS] question [SEP] heading: sentence [SEP] before [SEP] after [SEP], the second in segment
    1. Of a heading the end is kept, of the sentence before its end, of all else the beginning."""
    asked = tuple(words.piece_ids(question)[:QUESTION])
    heading = words.piece_ids(f"{text.short_heading}:")[-HEADING:] if text.heading else []
    said = (*heading, *words.piece_ids(text.sentence)[:SENTENCE])
    before = tuple(words.piece_ids(text.before)[-NEIGHBOUR:]) if text.before else ()
    after = tuple(words.piece_ids(text.after)[:NEIGHBOUR]) if text.after else ()
    ids = (words.first, *asked, words.last, *said, words.last)
    segments = (0,) * (len(asked) + 2) + (1,) * (len(said) + 1)
    if before or after:
        ids = (*ids, *before, words.last, *after, words.last)
        segments += (0,) * (len(before) + len(after) + 2)
    return PairInput(ids, segments)


class JudgeExpert:
    """Logits that sentences answer. One object may be used from several threads."""

    def __init__(
        self, expert: ShelvedExpert, *, threads: int | None = None, cache: Path | None = None
    ) -> None:
        """Loads the graph from the cache, where it is built the first time, in seconds.

        `threads` pairs are read side by side. Raises `ModelMissing` when the encoder's weights are
        not there, and `ModelError` for an expert of another family and for a graph that strays
        from the exact one on this machine.
        """
        card = expert.card
        if card.family != "pair":
            raise ModelError(f"the expert {card.name!r} is not a pair model")
        self.card = card
        self.languages: frozenset[Language] = frozenset(card.languages)
        self._words = WordPieces(locate_weights(MINILM_TOKENIZER, cache=cache))
        tensors = expert.read_tensors()
        name = f"expert-{card.name}-{card.fingerprint[:12]}.int8-{_REVISION}.onnx"
        graph = derive_file(name, lambda draft: self._build(tensors, draft, cache), cache=cache)
        self._session = open_session(graph, 1)
        self._threads = threads or os.cpu_count() or 1
        self._remembered = lru_cache(maxsize=4_096)(self._score_line)

    def _build(self, tensors: Mapping[str, Any], draft: Path, cache: Path | None) -> None:
        base = read_safetensors(locate_weights(MINILM, cache=cache))
        small = pair_graph(base, tensors)
        exact = self._check_logits(open_session(pair_graph(base, tensors, exact=True), 1))
        rounded = self._check_logits(open_session(small, 1))
        worst = max(abs(a - b) for a, b in zip(exact, rounded, strict=True))
        if not worst <= _MOST_APART:
            raise ModelError(
                f"the expert {self.card.name!r} in 8 bits strays from the exact one on this"
                f" machine: {worst:.2f} in the logit, at most {_MOST_APART} may be",
                fix="use another version of onnxruntime, or `osler experts judge --off`",
            )
        draft.write_bytes(small)

    def _check_logits(self, session: Any) -> list[float]:
        return run_pairs(session, [read_judged(self._words, *pair) for pair in _CHECK])

    def _score_line(self, question: str, line: str) -> float:
        pair = read_judged(self._words, question, JudgedText.of_line(line))
        return run_pairs(self._session, [pair])[0]

    def score_lines(self, question: str, lines: Sequence[str]) -> tuple[float, ...]:
        """Logits, in order, that each line of a `JudgedText` answers the question."""
        return tuple(map_beside(partial(self._remembered, question), lines, self._threads))


@dataclass(frozen=True)
class JudgeRelevance:
    """The judge as a `Relevance` over lines of `JudgedText`; `reader` reads the question."""

    expert: JudgeExpert
    reader: QuestionReader | None = None

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Logits in order; 0 for all in a language that it was not trained on."""
        if not texts or language_of(query) not in self.expert.languages:
            return (0.0,) * len(texts)
        return await asyncio.to_thread(self._score_texts, query, texts)

    def _score_texts(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        asked = self.reader.read(query).full if self.reader else query
        return self.expert.score_lines(asked, texts)


MATCH = "match"
"""Name of the expert, also on tapes."""
_MATCH_REVISION = 1
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

        name = f"expert-{card.name}-{card.fingerprint[:12]}.int8-{_MATCH_REVISION}.onnx"
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
        return np.stack(map_beside(self._remembered, texts, self._threads))


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

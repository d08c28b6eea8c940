"""`answers`: does this text answer this question?"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

from osler.errors import ModelError
from osler.kb.encoders.base import WordPieces, open_session
from osler.kb.encoders.minilm import read_safetensors
from osler.llm.core.cache import derive_file
from osler.llm.local.weights import MINILM, MINILM_TOKENIZER, locate_weights
from osler.retrieve.experts.pair_graph import pair_graph, run_pairs
from osler.retrieve.experts.pair_input import LONGEST, QUESTION_PIECES, read_pair
from osler.retrieve.experts.shelf import ShelvedExpert
from osler.text import language_of
from osler.types import Language

_REVISION = 1
"""Raise it with each change to what the graph computes: it is cached under this number."""
_MOST_APART = 1.0
"""Most by which a logit in 8 bits may differ from the exact one, on the pairs below."""
_CHECK = (
    ("How is anaphylaxis treated?", "Adrenaline is given into the muscle of the outer thigh."),
    ("How is anaphylaxis treated?", "Anaphylaxis is a severe allergic reaction of rapid onset."),
    ("What causes scurvy?", "Scurvy is caused by a lack of vitamin C in the diet."),
    ("What causes scurvy?", "Rickets is caused by a lack of vitamin D in childhood."),
    ("Is warfarin safe in pregnancy?", "See the section on anticoagulants."),
)


@dataclass(frozen=True)
class TextPair:
    """A text with its title, to be judged as an answer."""

    text: str
    title: str = ""


class AnswersExpert:
    """Implements `Relevance`: the probability, in [0, 1], that a text answers the question.

    One object may be used from several threads. Texts are read one at a time, so a score does
    not depend on the others.
    """

    languages: frozenset[Language] = frozenset({"en"})

    def __init__(
        self, expert: ShelvedExpert, *, threads: int | None = None, cache: Path | None = None
    ) -> None:
        """Loads the graph from the cache, where it is built the first time, in seconds.

        Raises `ModelMissing` when the encoder's weights are not there, and `ModelError` for an
        expert of another family and for a graph that strays from the exact one on this machine.
        """
        card = expert.card
        if card.family != "pair":
            raise ModelError(f"the expert {card.name!r} is no pair model")
        self.card = card
        self.languages = frozenset(card.languages)
        self._words = WordPieces(locate_weights(MINILM_TOKENIZER, cache=cache))
        self._longest = int(card.parameters.get("longest", LONGEST))
        # Platt scaling, fitted on the dev part.
        self._slope = card.parameters.get("slope", 1.0)
        self._intercept = card.parameters.get("intercept", 0.0)
        name = f"expert-{card.name}-{card.weights[:12]}.int8-{_REVISION}.onnx"
        graph = derive_file(name, lambda draft: self._build(expert, draft, cache), cache=cache)
        self._session = open_session(graph, threads or max(1, (os.cpu_count() or 2) - 1))

    def _build(self, expert: ShelvedExpert, draft: Path, cache: Path | None) -> None:
        base, deltas = read_safetensors(locate_weights(MINILM, cache=cache)), expert.read_tensors()
        small = pair_graph(base, deltas)
        exact = self._check_logits(open_session(pair_graph(base, deltas, exact=True), 1))
        rounded = self._check_logits(open_session(small, 1))
        worst = max(abs(a - b) for a, b in zip(exact, rounded, strict=True))
        if not worst <= _MOST_APART:
            raise ModelError(
                f"the expert {expert.card.name!r} in 8 bits strays from the exact one on this"
                f" machine: {worst:.2f} in the logit, at most {_MOST_APART} may be",
                fix="use another version of onnxruntime, or `osler experts off`",
            )
        draft.write_bytes(small)

    def _check_logits(self, session: Any) -> list[float]:
        pairs = [read_pair(self._words, *pair, longest=self._longest) for pair in _CHECK]
        return run_pairs(session, pairs)

    def score_logits(self, question: str, texts: Sequence[TextPair]) -> list[float]:
        """Logits before calibration, in order."""
        pairs = [
            read_pair(self._words, question, one.text, one.title, longest=self._longest)
            for one in texts
        ]
        return run_pairs(self._session, pairs)

    def judge_texts(self, question: str, texts: Sequence[TextPair]) -> list[float]:
        """Probabilities, in order, that each text answers the question."""
        return [self._calibrate(logit) for logit in self.score_logits(question, texts)]

    def _is_letter(self, question: str) -> bool:
        return len(self._words.piece_ids(question)) > QUESTION_PIECES

    def _calibrate(self, logit: float) -> float:
        return sigmoid(self._slope * logit + self._intercept)

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Probabilities in order; titles stand in the texts, as where quotes are chosen.

        A question in a language that it does not know gets 0 for all, no order of its own, and so
        does one that it would have to cut: on patients' letters it orders worse than the cosine.
        """
        if language_of(query) not in self.languages or self._is_letter(query):
            return (0.0,) * len(texts)
        pairs = [TextPair(text) for text in texts]
        return tuple(await asyncio.to_thread(self.judge_texts, query, pairs))


def sigmoid(value: float) -> float:
    """1 / (1 + e^-value), without overflow."""
    return 1 / (1 + exp(-value)) if value >= 0 else exp(value) / (1 + exp(value))

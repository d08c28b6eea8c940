"""`answers`: does this text answer this question?"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError
from osler.kb.encoders.base import WordPieces, open_session
from osler.kb.encoders.minilm import read_safetensors
from osler.llm.core.cache import derive_file
from osler.llm.local.weights import MINILM, MINILM_TOKENIZER, locate_weights
from osler.retrieve.experts.answer_cues import join_features, measure_cues, share_covered
from osler.retrieve.experts.aspects import AspectModel, find_asked_aspect
from osler.retrieve.experts.linear import LinearModel
from osler.retrieve.experts.pair_graph import pair_graph, run_pairs
from osler.retrieve.experts.pair_input import LONGEST, QUESTION_PIECES, read_pair, titled_text
from osler.retrieve.experts.shelf import ShelvedExpert
from osler.retrieve.naming import has_no_one_subject
from osler.text import language_of
from osler.types import Language

if TYPE_CHECKING:
    from osler.retrieve.experts.linear import Matrix

_REVISION = 2
"""Raise it with each change to what the graph computes: it is cached under this number."""
_MOST_APART = 1.0
"""Most by which a logit in 8 bits may differ from the exact one, on the pairs below."""
LEAD = 250
"""Characters of a passage's beginning that are read beside a sentence of it."""
MOST = 16
"""Passages of one question that the pair model reads, or their beginnings: the nearest by cues."""
BEST = 3
"""Passages whose sentences it reads: those whose beginnings are best."""
EACH = 3
"""Sentences of each of these that may be quoted."""
JOINED, CHEAP, QUOTED = "joined.", "cheap.", "quoted."
"""Prefixes of the linear models' tensors: over all features, over the cues alone, and over all
features and agreement (`aspects`), for what is quoted."""
_AGREES = 0.3
"""Weight of agreement beside coverage in choosing which sentences are read."""
_LEAST = 0.02
"""Agreement below this is not told apart."""
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
    lead: str = ""
    """Beginning of the passage that a sentence stands in; empty = the text is the passage."""

    @property
    def titled(self) -> str:
        return titled_text(self.text, self.title)

    @property
    def passage(self) -> TextPair:
        """The beginning of its passage, or the text itself."""
        return TextPair(self.lead or self.text, self.title)


class AnswersExpert:
    """Implements `Relevance`: the probability, in [0, 1], that a text answers the question.

    The pair model's logits and the cues of `answer_cues` are put together by a linear model. Of the
    passages it reads the first `most` by their cues; of sentences first the beginnings of their
    passages, then those of the best three. What it does not read stays behind what it read. One
    object may be used from several threads.
    """

    languages: frozenset[Language] = frozenset({"en"})

    def __init__(
        self,
        expert: ShelvedExpert,
        *,
        threads: int | None = None,
        cache: Path | None = None,
        most: int = MOST,
    ) -> None:
        """Loads the graphs from the cache, where they are built the first time, in seconds.

        `threads` pairs are read side by side. Raises `ModelMissing` when the encoder's weights are
        not there, and `ModelError` for an expert of another family and for a graph that strays
        from the exact one on this machine.
        """
        card = expert.card
        if card.family != "pair":
            raise ModelError(f"the expert {card.name!r} is no pair model")
        self.card = card
        self.languages = frozenset(card.languages)
        self.most = most
        self._words = WordPieces(locate_weights(MINILM_TOKENIZER, cache=cache))
        self._longest = int(card.parameters.get("longest", LONGEST))
        tensors = expert.read_tensors()
        self._joined = _read_model(tensors, JOINED)
        self._quoted: LinearModel | None = None
        if any(one.startswith(QUOTED) for one in tensors):
            self._quoted = _read_model(tensors, QUOTED)
            self._aspects = AspectModel.of_tensors(_own_tensors(tensors, QUOTED))
        self._cheap = _read_model(tensors, CHEAP)
        name = f"expert-{card.name}-{card.fingerprint[:12]}.int8-{_REVISION}.onnx"
        graph = derive_file(name, lambda draft: self._build(tensors, draft, cache), cache=cache)
        self._session = open_session(graph, 1)
        self._threads = threads or os.cpu_count() or 1
        # Sentences of one passage share its beginning, and a question is asked more than once.
        self._remembered = lru_cache(maxsize=2_048)(self._score_pair)

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
                fix="use another version of onnxruntime, or `osler experts off`",
            )
        draft.write_bytes(small)

    def _check_logits(self, session: Any) -> list[float]:
        pairs = [read_pair(self._words, *pair, longest=self._longest) for pair in _CHECK]
        return run_pairs(session, pairs)

    def _score_pair(self, question: str, text: str, title: str) -> float:
        pair = read_pair(self._words, question, text, title, longest=self._longest)
        return run_pairs(self._session, [pair])[0]

    def score_logits(self, question: str, texts: Sequence[TextPair]) -> list[float]:
        """Logits of the pair model alone, in order; beginnings of passages are not read."""

        def score(one: TextPair) -> float:
            return self._remembered(question, one.text, one.title)

        if self._threads == 1 or len(texts) < 2:
            return [score(one) for one in texts]
        # Reading two pairs side by side is faster than two threads on one small matrix.
        with ThreadPoolExecutor(min(self._threads, len(texts))) as pool:
            return list(pool.map(score, texts))

    def can_judge(self, question: str) -> bool:
        """Whether it knows the question's language, and the question has one subject.

        On letters and case histories it chooses no better than the cosine.
        """
        short = len(self._words.piece_ids(question)) <= QUESTION_PIECES
        return (
            short and language_of(question) in self.languages and not has_no_one_subject(question)
        )

    def judge_texts(self, question: str, texts: Sequence[TextPair]) -> list[float]:
        """Probabilities, in order, that each text answers the question."""
        import numpy as np

        if not texts:
            return []
        cues = measure_cues(question, [one.titled for one in texts])
        found = self._cheap.predict_shares(cues)[:, 0]
        passages = [one.passage for one in texts]
        order = np.argsort(-found, kind="stable")
        near = list(dict.fromkeys(passages[at] for at in order))[: self.most]
        begun = dict(zip(near, self.score_logits(question, near), strict=True))
        leads = {one.passage for one in texts if one.lead}
        best = sorted(leads.intersection(near), key=lambda one: -begun[one])[:BEST]
        read = [at for at, one in enumerate(texts) if passages[at] in (best if one.lead else near)]
        logits = self.score_logits(question, [texts[at] for at in read])
        rows = join_features(logits, [begun[passages[at]] for at in read], cues[read])
        joined = self._joined.predict_shares(rows)[:, 0]
        # What was not read stays behind what was.
        found = np.minimum(found, joined.min())
        found[read] = joined
        return [float(one) for one in found]

    def judge_quotes(self, question: str, sentences: Sequence[TextPair]) -> list[float]:
        """Probabilities, in order, that each sentence answers what is asked, not only its subject.

        0 for what is not read: of the passages that begin best, `EACH` sentences by what they
        cover and are about. Weights of before quotes had a model of their own give `judge_texts`.
        """
        if self._quoted is None:
            return self.judge_texts(question, sentences)
        agrees, rows = self.measure_quotes(question, sentences)
        found = [0.0] * len(sentences)
        for at, share in zip(agrees, self._quoted.predict_shares(rows)[:, 0], strict=True):
            found[at] = float(share)
        return found

    def measure_quotes(
        self, question: str, sentences: Sequence[TextPair]
    ) -> tuple[list[int], Matrix]:
        """Which sentences are read, and their rows of shape (read, features and agreement)."""
        agreement = self._aspects.measure_agreement(question, [one.text for one in sentences])
        covered = share_covered(question, [one.titled for one in sentences])
        leads = list(dict.fromkeys(one.passage for one in sentences))
        begun = dict(zip(leads, self.score_logits(question, leads), strict=True))
        read: list[int] = []
        for lead in sorted(leads, key=lambda one: -begun[one])[:BEST]:
            own = [at for at, one in enumerate(sentences) if one.passage == lead]
            read += sorted(own, key=lambda at: -covered[at] - _AGREES * agreement[at])[:EACH]
        texts = [sentences[at] for at in read]
        return read, quote_rows(
            question,
            self.score_logits(question, texts),
            [begun[one.passage] for one in texts],
            texts,
            [float(agreement[at]) for at in read],
        )

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Probabilities in order; titles stand in the texts, as where quotes are chosen.

        A question that it cannot judge gets 0 for all, no order of its own.
        """
        if not self.can_judge(query):
            return (0.0,) * len(texts)
        pairs = [TextPair(text) for text in texts]
        return tuple(await asyncio.to_thread(self.judge_texts, query, pairs))


def quote_rows(
    question: str,
    logits: Sequence[float],
    leads: Sequence[float],
    texts: Sequence[TextPair],
    agreement: Sequence[float],
) -> Matrix:
    """The features of sentences that may be quoted: what `judge_texts` reads, and the logarithm of
    agreement, apart for questions that ask for an aspect and for others."""
    import numpy as np

    rows = join_features(logits, leads, measure_cues(question, [one.titled for one in texts]))
    agrees = np.log(np.array(agreement, np.float64) + _LEAST)[:, None]
    asked = bool(find_asked_aspect(question))
    return np.hstack([rows, agrees * asked, agrees * (not asked)])


def _own_tensors(tensors: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)
    }


def _read_model(tensors: Mapping[str, Any], prefix: str) -> LinearModel:
    return LinearModel.of_tensors(_own_tensors(tensors, prefix))


def sigmoid(value: float) -> float:
    """1 / (1 + e^-value), without overflow."""
    return 1 / (1 + exp(-value)) if value >= 0 else exp(value) / (1 + exp(value))

"""DRAGIN: search where tokens are unsure, matter to what follows, and mean something
(TC-RAG App. 8.5, method 12).

Su et al. 2024, *DRAGIN: Dynamic Retrieval Augmented Generation based on the Information Needs
of Large Language Models*, §3. RIND (Eq. 1 to 4): a token's entropy times the greatest attention
that a later token pays it times 0 for stop words, else 1; above theta it triggers. QFS (§3.2):
the words that this token itself attends to most, in the order of the text, are the query. The
text is cut before the token and goes on with what was found.

Departures: entropy and attention of a chunk are read in a second pass over it. By default the
attentions of a chunk are divided by their mean, near to the released code, whose thresholds are
on that scale: it divides by the mean over the words of the sentence, lets a token's attention to
itself count, does not look at the question before it, and writes the whole sentence anew.
`scaled = False` is the equation. QFS looks at question and text, and takes 25
words of content, as the released settings have it. `EntropySensor` is not DRAGIN: for engines
that hide attention it triggers on entropy alone and asks with the last words of content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Protocol

from osler.llm.core.ask import attend
from osler.llm.core.base import Attended, Attentive, Completion, Message, TokenScore
from osler.methods.episode import ROLE, Episode, EpisodeMethod
from osler.retrieve import content_terms
from osler.types import Hit
from osler_lab.baselines.growing import (
    continuation_messages,
    first_sentence,
    go_on,
    has_answer,
    join_sentences,
)

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class SearchNeed:
    """A place in the text where knowledge is needed."""

    start: int
    """Offset of the token in the chunk, in characters."""
    score: float


class NeedSensor(Protocol):
    @property
    def likeliest_count(self) -> int:
        """Alternatives per token whose log-probabilities the engine has to return."""

    async def detect_need(
        self, episode: Episode, context: Sequence[Message], chunk: Completion
    ) -> SearchNeed | None:
        """The first token of the chunk that triggers a search; `None` when no token does."""

    async def build_query(self, episode: Episode, text: str) -> str:
        """The query for `text`, which ends with the token that triggered the search."""


@dataclass(frozen=True)
class Dragin(EpisodeMethod):
    sensor: NeedSensor
    look_ahead: int = 64
    rounds: int = 8
    """Chunks of an answer, at most (ours)."""

    async def run_episode(self, episode: Episode) -> str:
        found: Sequence[Hit] = ()
        for _ in range(self.rounds):
            chunk = await go_on(
                episode,
                found,
                episode.draft,
                tokens=self.look_ahead,
                top=self.sensor.likeliest_count,
            )
            context = continuation_messages(episode, found, episode.draft)
            need = await self.sensor.detect_need(episode, context, chunk)
            if need is None:
                more = chunk.text
            else:
                found, more = await self._search_and_rewrite(episode, chunk, need)
            episode.draft = join_sentences(episode.draft, more, episode.question.language)
            if has_answer(more) or not more.strip():
                break
        return "written, and searched where the text needed it"

    async def _search_and_rewrite(
        self, episode: Episode, chunk: Completion, need: SearchNeed
    ) -> tuple[Sequence[Hit], str]:
        """Cuts the chunk before the token, searches, and rewrites the rest of the sentence."""
        called = next(t for t in chunk.tokens if t.start == need.start)
        kept = chunk.text[: need.start]
        episode.note(f"{called.text.strip()!r} needs knowledge: {need.score:.2f}")
        whole = join_sentences(episode.draft, chunk.text[: called.end], episode.question.language)
        hits = await episode.search(await self.sensor.build_query(episode, whole))
        begun = join_sentences(episode.draft, kept, episode.question.language)
        anew = await go_on(episode, hits, begun, tokens=self.look_ahead)
        rest = first_sentence(anew.text)
        # The space before the token may stand on either side of the cut, or within the token.
        if chunk.text[need.start].isspace() and rest:
            kept, rest = kept.rstrip() + chunk.text[need.start], rest.lstrip()
        return hits, (kept.rstrip() if rest[:1].isspace() else kept) + rest


@dataclass(frozen=True)
class AttentionSensor:
    """RIND and QFS."""

    model: Attentive
    threshold: float = 0.9
    words: int = 25
    scaled: bool = True
    likeliest_count: int = 1

    async def detect_need(
        self, episode: Episode, context: Sequence[Message], chunk: Completion
    ) -> SearchNeed | None:
        if not chunk.text.strip():
            return None
        # A second pass over the chunk: attention is not reported while generating.
        seen = await attend(self.model, context, chunk.text, episode.run, role=ROLE)
        scores = rind(seen, chunk.text, scaled=self.scaled)
        return first_need(seen.tokens, scores, self.threshold, chunk.tokens)

    async def build_query(self, episode: Episode, text: str) -> str:
        whole = f"{episode.question.text}\n{text}"
        seen = await attend(self.model, "\n", whole, episode.run, role=ROLE)
        return attended_words(seen, whole, self.words)


@dataclass(frozen=True)
class EntropySensor:
    """Triggers on entropy over the likeliest tokens alone; for engines without attention."""

    threshold: float = 1.2
    """In nats (ours)."""
    words: int = 25
    likeliest_count: int = 20

    async def detect_need(
        self, episode: Episode, context: Sequence[Message], chunk: Completion
    ) -> SearchNeed | None:
        if chunk.text.strip() and not chunk.tokens:
            episode.note("no log-probabilities were told: nothing triggers a search")
        scores = [
            entropy(token) * semantic_indicator(chunk.text, token.start, token.end)
            for token in chunk.tokens
        ]
        return first_need(chunk.tokens, scores, self.threshold, chunk.tokens)

    async def build_query(self, episode: Episode, text: str) -> str:
        return " ".join(content_terms(f"{episode.question.text} {text}")[-self.words :])


def rind(seen: Attended, text: str, *, scaled: bool = True) -> list[float]:
    """Eq. 4 of each token: entropy x greatest attention of later tokens x semantic indicator."""
    # max over later tokens: the a_max of Eq. 2.
    paid = [
        max((row[i] for row in seen.weights[i + 1 :]), default=0.0) for i in range(len(seen.tokens))
    ]
    mean = sum(paid) / len(paid) if paid else 0.0
    # The released thresholds are relative to the mean attention.
    unit = mean if scaled and mean else 1.0
    return [
        h * a / unit * semantic_indicator(text, token.start, token.end)
        for h, a, token in zip(seen.entropies, paid, seen.tokens, strict=True)
    ]


def semantic_indicator(text: str, start: int, end: int) -> int:
    """Eq. 3's semantic indicator: 0 within a stop word or between words, else 1."""
    touched = (w.group() for w in _WORD.finditer(text) if w.start() < end and w.end() > start)
    return int(any(map(_is_content_word, touched)))


def entropy(token: TokenScore) -> float:
    """Entropy in nats over the reported tokens; the remaining probability counts as one token."""
    told = [exp(logprob) for _, logprob in token.top] or [exp(token.logprob)]
    return -sum(p * log(p) for p in (*told, 1.0 - sum(told)) if p > 0)


def attended_words(seen: Attended, text: str, most: int) -> str:
    """QFS (§3.2): the `most` words of content that the last token attends to most, in text
    order."""
    row = seen.weights[-1] if seen.weights else ()
    if not seen.tokens or not row:
        return ""
    weighed: dict[tuple[int, int], float] = {}
    for word in _WORD.finditer(text, 0, seen.tokens[-1].start):
        parts = (
            weight
            for token, weight in zip(seen.tokens, row, strict=False)
            if token.start < word.end() and token.end > word.start()
        )
        if _is_content_word(word.group()):
            weighed[word.span()] = sum(parts)
    best = sorted(weighed, key=lambda span: -weighed[span])[:most]
    return " ".join(text[start:end] for start, end in sorted(best))


def first_need(
    tokens: Sequence[TokenScore],
    scores: Sequence[float],
    threshold: float,
    written: Sequence[TokenScore],
) -> SearchNeed | None:
    """The first token above the threshold, mapped to the reply's token that contains its start."""
    for token, score in zip(tokens, scores, strict=True):
        if score > threshold:
            # The scoring pass may tokenise differently: cut at a token of the reply.
            holds = [t for t in written if t.start <= token.start < t.end]
            return SearchNeed(holds[0].start, score) if holds else None
    return None


def _is_content_word(word: str) -> bool:
    return bool(content_terms(word))

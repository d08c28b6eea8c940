"""Models, retrievers and an encoder that answer what a test says they answer."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log
from typing import TYPE_CHECKING, Literal

from osler.llm.core.base import Completion, Message, Sampling, Scored, TokenScore
from osler.types import Hit, Language, Passage, Usage

if TYPE_CHECKING:
    from osler.kb.encoders.base import Kind, Vectors


# As byte-pair tokenizers cut: a space belongs to the word or mark that it precedes.
_TOKENS = re.compile(r" ?[a-zA-Z0-9_']+| ?[^\sa-zA-Z0-9_']|\s+(?!\S)|\s")

COPIED = 4
"""Tokens in a row that stand in the context as well, from which a text counts as copied."""


def tokens_of(text: str, probability: float) -> tuple[TokenScore, ...]:
    """Words and marks as tokens with their leading space, each of one probability in (0, 1]."""
    return tuple(
        TokenScore(m.group(), m.start(), m.end(), log(probability)) for m in _TOKENS.finditer(text)
    )


def tokens_after(context: Sequence[Message] | str, text: str, probability: float) -> Scored:
    """Scores a text after a context, as a model that copies does.

    A token that ends a run of `COPIED` which the context holds too is surer than the others:
    it has the square root of their probability.
    """
    said = context if isinstance(context, str) else "\n".join(turn.content for turn in context)
    known = set(_token_runs(_TOKENS.findall(said)))
    tokens = tokens_of(text, probability)
    runs = _token_runs([token.text for token in tokens])
    scored = [*tokens[: COPIED - 1]]
    scored += [
        replace(token, logprob=token.logprob / 2) if run in known else token
        for token, run in zip(tokens[COPIED - 1 :], runs, strict=True)
    ]
    return Scored(tuple(scored), Usage(calls=1, scored_tokens=len(scored)))


def _token_runs(tokens: Sequence[str]) -> list[tuple[str, ...]]:
    """Every run of `COPIED` tokens; the space before one makes no difference."""
    words = [token.strip() for token in tokens]
    return [tuple(words[i : i + COPIED]) for i in range(len(words) - COPIED + 1)]


@dataclass
class ScriptedModel:
    """Replies in order. Asking too often fails, and so do replies left over (`finish`)."""

    replies: list[str]
    probability: float = 0.5
    """Of each generated token."""
    scores: dict[str, float] = field(default_factory=dict)
    """Text → probability of each of its tokens when scored; `probability` for others. Tokens that
    are copied from the context are surer (`tokens_after`)."""
    name: str = "scripted"
    cut: frozenset[int] | set[int] = frozenset()
    """Which replies, from 0, were cut at the token limit."""
    seen: list[tuple[Message, ...]] = field(default_factory=list)
    samplings: list[Sampling] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        self.seen.append(tuple(messages))
        self.samplings.append(sampling)
        assert len(self.seen) <= len(self.replies), f"asked once too often: {messages[-1]}"
        number = len(self.seen) - 1
        text = self.replies[number]
        tokens = tokens_of(text, self.probability)
        usage = Usage(calls=1, completion_tokens=len(tokens))
        finish: Literal["stop", "length"] = "length" if number in self.cut else "stop"
        return Completion(text, tokens if sampling.top else (), finish, usage)

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        return tokens_after(context, text, self.scores.get(text, self.probability))

    def finish(self) -> None:
        left = self.replies[len(self.seen) :]
        assert not left, f"never asked for: {left}"


@dataclass
class KeyedModel:
    """Replies by what is asked: for methods that ask several things at once.

    The first key that stands in the last message names the replies, which come in order;
    the last of them is repeated. A message without a key fails.
    """

    replies: dict[str, Sequence[str]]
    probability: float = 0.9
    """Of each generated token."""
    delay_s: float = 0.0
    after: dict[str, str] = field(default_factory=dict)
    """Key → another, without whose reply this one's is not given."""
    name: str = "keyed"
    asked: list[str] = field(default_factory=list)
    """Keys, in the order of the calls."""
    _replied: defaultdict[str, asyncio.Event] = field(
        default_factory=lambda: defaultdict(asyncio.Event)
    )

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        content = messages[-1].content
        key = next((key for key in self.replies if key in content), None)
        assert key is not None, f"nothing is scripted for: {content}"
        self.asked.append(key)
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if key in self.after:
            await self._replied[self.after[key]].wait()
        replies = self.replies[key]
        text = replies[min(self.asked.count(key), len(replies)) - 1]
        tokens = tokens_of(text, self.probability)
        self._replied[key].set()
        return Completion(text, tokens, "stop", Usage(calls=1, completion_tokens=len(tokens)))


@dataclass(frozen=True)
class TextOnly:
    """The same script without log-probabilities: what a model that hides them looks like."""

    script: ScriptedModel

    @property
    def name(self) -> str:
        return self.script.name

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        reply = await self.script.complete(messages, sampling)
        return Completion(reply.text, (), reply.finish, reply.usage)


@dataclass
class ScriptedRetriever:
    """Gives the passages of the first key that occurs in the query."""

    found: dict[str, Sequence[Passage]]
    asked: list[str] = field(default_factory=list)

    async def search(self, query: str, *, k: int) -> list[Hit]:
        self.asked.append(query)
        passages = next((ps for key, ps in self.found.items() if key in query), ())
        return [
            Hit(passage, 1.0 / rank, rank, query, passage.source)
            for rank, passage in enumerate(passages[:k], 1)
        ]


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

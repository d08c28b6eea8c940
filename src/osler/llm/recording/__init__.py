"""Recording, replaying and remembering of everything that a run takes from outside.

    tape.py            the file format: every call with its reply, which a run can be replayed from
    players.py         a tape as the source of replies, and the nearest call where one is missing
    response_cache.py  a file of replies that several runs share

Each of the three is a `Boundary`: calls pass it on their way to a model, a retriever or a
relevance scorer. The wrappers below put a boundary around one of these, and offer exactly
the capabilities of what they wrap.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from osler.llm.core.base import (
    Adapted,
    Attended,
    Attentive,
    Completion,
    LanguageModel,
    Likelihood,
    Message,
    Sampling,
    Scored,
    score_all,
)
from osler.llm.recording.tape import Kind, context_of, sampling_values
from osler.types import Hit, Relevance, Retriever

T = TypeVar("T")


class Boundary(Protocol):
    """A place that every call passes: a tape that records, one that plays, or a cache."""

    async def call(self, kind: Kind, asked: Sequence[Any], work: Callable[[], Awaitable[T]]) -> T:
        """Returns the reply to a request; `work` gets it from outside."""

    async def call_all(
        self,
        kind: Kind,
        asked: Sequence[tuple[Any, ...]],
        work: Callable[[Sequence[int]], Awaitable[Sequence[T]]],
    ) -> tuple[T, ...]:
        """Returns the replies to several requests; `work` gets those at the given places."""


@dataclass(frozen=True)
class WrappedModel:
    """A `LanguageModel` behind a boundary."""

    name: str
    model: Any
    """None behind a player, which answers every call by itself."""
    boundary: Boundary
    identity: str
    """Names the model in requests: on a tape its name, in a cache its weights as well."""
    adapters: frozenset[str] = frozenset()

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        asked = (self.identity, tuple(messages), sampling_values(sampling))
        return await self.boundary.call(
            "complete", asked, lambda: self.model.complete(messages, sampling)
        )


@dataclass(frozen=True)
class WrappedScorer(WrappedModel):
    """A model that also scores given texts."""

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        asked = (self.identity, context_of(context), text)
        return await self.boundary.call("score", asked, lambda: self.model.score(context, text))

    async def score_all(
        self, context: Sequence[Message] | str, texts: Sequence[str]
    ) -> tuple[Scored, ...]:
        """Scores a batch, which a boundary holds as so many single scores."""
        asked = [(self.identity, context_of(context), text) for text in texts]
        return await self.boundary.call_all(
            "score",
            asked,
            lambda places: score_all(self.model, context, [texts[i] for i in places]),
        )


@dataclass(frozen=True)
class WrappedAttentive(WrappedScorer):
    """A model that also shows its attention."""

    async def attend(self, context: Sequence[Message] | str, text: str) -> Attended:
        asked = (self.identity, context_of(context), text)
        return await self.boundary.call("attend", asked, lambda: self.model.attend(context, text))


def wrap_model(model: LanguageModel, boundary: Boundary, identity: str = "") -> WrappedModel:
    """Puts a boundary around a model; `identity` is by default the model's name."""
    wrapper = WrappedModel
    if isinstance(model, Likelihood):
        wrapper = WrappedAttentive if isinstance(model, Attentive) else WrappedScorer
    adapters = model.adapters if isinstance(model, Adapted) else frozenset()
    return wrapper(model.name, model, boundary, identity or model.name, adapters)


@dataclass(frozen=True)
class WrappedRetriever:
    """A `Retriever` behind a boundary; None behind a player."""

    name: str
    retriever: Retriever | None
    boundary: Boundary

    async def search(self, query: str, *, k: int) -> list[Hit]:
        async def work() -> tuple[Hit, ...]:
            assert self.retriever is not None  # noqa: S101 - a player does not call it
            return tuple(await self.retriever.search(query, k=k))

        return list(await self.boundary.call("search", (self.name, query, k), work))


@dataclass(frozen=True)
class WrappedRelevance:
    """A `Relevance` scorer behind a boundary; None behind a player."""

    name: str
    scorer: Relevance | None
    boundary: Boundary

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        async def work() -> tuple[float, ...]:
            assert self.scorer is not None  # noqa: S101 - a player does not call it
            return await self.scorer.relevance(query, texts)

        return await self.boundary.call("relevance", (self.name, query, tuple(texts)), work)

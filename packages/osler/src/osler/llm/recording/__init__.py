"""Recording and replaying of everything that a run takes from outside.

    tape.py  the file format: every call with its reply, which a run can be replayed from

`TapePlayer` answers from a tape, and shows the nearest call where one is missing. It and the tape
are each a `Boundary`: calls pass it on their way to a model, a retriever or a relevance scorer. The
wrappers below put a boundary around one of these, and offer exactly the capabilities of what they
wrap.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from itertools import islice
from typing import Any, Protocol, TypeVar

from osler.errors import BadRun, TapeMiss
from osler.llm.core.base import (
    Attended,
    Attentive,
    Completion,
    CutShort,
    LanguageModel,
    Likelihood,
    Message,
    Sampling,
    Scored,
    score_all,
)
from osler.llm.recording.tape import (
    Kind,
    ModelAbilities,
    Tape,
    TapeEntry,
    context_of,
    key_of,
    load_reply,
    plain_request,
    sampling_values,
)
from osler.types import Hit

T = TypeVar("T")


class Boundary(Protocol):
    """A place that every call passes: a tape that records, or one that plays."""

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
    """Names the model in requests: its name, and where weights may change those as well."""

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
    return wrapper(model.name, model, boundary, identity or model.name)


@dataclass(frozen=True)
class WrappedRetriever:
    """A `Retriever` behind a boundary."""

    name: str
    retriever: Any
    """None behind a player."""
    boundary: Boundary

    async def search(self, query: str, *, k: int) -> list[Hit]:
        async def work() -> tuple[Hit, ...]:
            return tuple(await self.retriever.search(query, k=k))

        return list(await self.boundary.call("search", (self.name, query, k), work))


@dataclass(frozen=True)
class WrappedRelevance:
    """A `Relevance` scorer behind a boundary."""

    name: str
    scorer: Any
    """None behind a player."""
    boundary: Boundary

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        asked = (self.name, query, tuple(texts))
        return await self.boundary.call(
            "relevance", asked, lambda: self.scorer.relevance(query, texts)
        )


_DIFF_LINES, _WIDTH = 24, 160
"""The most of a difference that is shown: lines, and characters of each."""


class TapePlayer:
    """A `Boundary` that answers from a tape, equal calls in the order of their recording."""

    def __init__(self, tape: Tape) -> None:
        self.models = tape.models
        self._left: dict[str, deque[TapeEntry]] = defaultdict(deque)
        for entry in tape.entries:
            self._left[entry.key].append(entry)

    def abilities_of(self, name: str) -> ModelAbilities:
        """Returns a model's capabilities. Raises `BadRun` for a model that was not recorded."""
        if name not in self.models:
            raise BadRun(f"the tape has no model {name!r}, but {', '.join(self.models) or 'none'}")
        return self.models[name]

    def take_reply(self, kind: Kind, parts: Sequence[Any]) -> Any:
        """Returns the reply. Raises `TapeMiss`, and what the recorded call raised."""
        queue = self._left[key_of(kind, parts)]
        if not queue:
            raise self._make_miss(kind, plain_request(kind, parts))
        entry = queue.popleft()
        if entry.failed is not None:
            raise entry.failed.as_error
        if entry.reply is None:
            raise CutShort
        return load_reply(kind, entry.reply)

    async def call(self, kind: Kind, asked: Sequence[Any], work: Callable[[], Awaitable[T]]) -> T:
        """Answers from the tape; `work` is not called."""
        reply: T = self.take_reply(kind, asked)
        return reply

    async def call_all(
        self,
        kind: Kind,
        asked: Sequence[tuple[Any, ...]],
        work: Callable[[Sequence[int]], Awaitable[Sequence[T]]],
    ) -> tuple[T, ...]:
        return tuple(self.take_reply(kind, one) for one in asked)

    def _make_miss(self, kind: Kind, asked: list[Any]) -> TapeMiss:
        wanted = _readable_lines(asked)
        known = [_readable_lines(e.asked) for q in self._left.values() for e in q if e.kind == kind]
        nearest = max(
            known,
            key=lambda lines: SequenceMatcher(None, lines, wanted, False).ratio(),
            default=None,
        )
        return TapeMiss(
            f"this {kind} was never recorded: {_shorten_line(wanted[-1])}",
            fix="the code or the prompt changed since; run `osler ask` again",
            diff="" if nearest is None else _show_difference(nearest, wanted),
        )


def replay_model(player: TapePlayer, name: str) -> WrappedModel:
    """Wraps the player as one of the tape's models, with the capabilities that it had."""
    able = player.abilities_of(name)
    scorer = WrappedScorer if able.scores else WrappedModel
    return (WrappedAttentive if able.attends else scorer)(name, None, player, name)


def _readable_lines(asked: list[Any] | str) -> list[str]:
    """Writes a request as lines that a person can compare, the words of a prompt last."""
    if isinstance(asked, str):
        return [asked]
    model, *parts = asked
    lines = [f"{model}"]
    for part in reversed(parts):
        if isinstance(part, dict):
            lines += [f"{key} = {value}" for key, value in part.items()]
        elif isinstance(part, list):
            lines += [f"{m['role']}: {line}" for m in part for line in m["content"].splitlines()]
        else:
            lines += str(part).splitlines() or [""]
    return lines


def _show_difference(recorded: list[str], wanted: list[str]) -> str:
    lines = unified_diff(recorded, wanted, "recorded", "asked now", n=1, lineterm="")
    return "\n".join(_shorten_line(line) for line in islice(lines, _DIFF_LINES))


def _shorten_line(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…"

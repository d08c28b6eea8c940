"""What plays a tape: models, retrievers and scorers that say what was noted.

A call that was never noted is a `TapeMiss`, which shows the nearest one that was.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from itertools import islice
from typing import Any

from osler.errors import BadRun, TapeMiss
from osler.llm.core.base import Attended, Completion, CutShort, Message, Sampling, Scored
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

_DIFF_LINES, _WIDTH = 24, 160
"""How much of a difference is shown: lines, and characters of each."""


class TapePlayer:
    """Gives back what a tape holds, equal calls in the order they were recorded."""

    def __init__(self, tape: Tape) -> None:
        self.models = tape.models
        self._left: dict[str, deque[TapeEntry]] = defaultdict(deque)
        for entry in tape.entries:
            self._left[entry.key].append(entry)

    def abilities_of(self, name: str) -> ModelAbilities:
        """Raises `BadRun` for a model that was not recorded."""
        if name not in self.models:
            raise BadRun(f"the tape has no model {name!r}, but {', '.join(self.models) or 'none'}")
        return self.models[name]

    def take_reply(self, kind: Kind, parts: Sequence[Any]) -> Any:
        """The reply. Raises `TapeMiss`, `CutShort` where the recorded call was, and its error."""
        queue = self._left[key_of(kind, parts)]
        if not queue:
            raise self._make_miss(kind, plain_request(kind, parts))
        entry = queue.popleft()
        if entry.failed is not None:
            raise entry.failed.as_error
        if entry.reply is None:
            raise CutShort
        return load_reply(kind, entry.reply)

    def _make_miss(self, kind: Kind, asked: list[Any]) -> TapeMiss:
        wanted = _readable_lines(asked)
        known = [_readable_lines(e.asked) for q in self._left.values() for e in q if e.kind == kind]
        nearest = max(known, key=lambda lines: _line_likeness(lines, wanted), default=None)
        return TapeMiss(
            f"this {kind} was never recorded: {_shorten_line(wanted[-1])}",
            fix="the code or the prompt changed since; run `osler ask` again",
            diff="" if nearest is None else _show_difference(nearest, wanted),
        )


@dataclass(frozen=True)
class ReplayingModel:
    name: str
    player: TapePlayer

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        asked = (self.name, tuple(messages), sampling_values(sampling))
        reply: Completion = self.player.take_reply("complete", asked)
        return reply


@dataclass(frozen=True)
class ReplayingScorer(ReplayingModel):
    """The same of a model that scored."""

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        reply: Scored = self.player.take_reply("score", (self.name, context_of(context), text))
        return reply


@dataclass(frozen=True)
class ReplayingAttentive(ReplayingScorer):
    """The same of a model that showed its attention."""

    async def attend(self, context: Sequence[Message] | str, text: str) -> Attended:
        reply: Attended = self.player.take_reply("attend", (self.name, context_of(context), text))
        return reply


def replay_model(player: TapePlayer, name: str) -> ReplayingModel:
    """A player of one of the tape's models: it can do what that one could."""
    able = player.abilities_of(name)
    if able.attends:
        return ReplayingAttentive(name, player)
    return ReplayingScorer(name, player) if able.scores else ReplayingModel(name, player)


@dataclass(frozen=True)
class ReplayingRetriever:
    name: str
    player: TapePlayer

    async def search(self, query: str, *, k: int) -> list[Hit]:
        return list(self.player.take_reply("search", (self.name, query, k)))


@dataclass(frozen=True)
class ReplayingRelevance:
    name: str
    player: TapePlayer

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        scores: tuple[float, ...] = self.player.take_reply(
            "relevance", (self.name, query, tuple(texts))
        )
        return scores


def _readable_lines(asked: list[Any] | str) -> list[str]:
    """What was asked as lines that a person can compare, the words of a prompt last."""
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


def _line_likeness(one: list[str], other: list[str]) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _show_difference(recorded: list[str], wanted: list[str]) -> str:
    lines = unified_diff(recorded, wanted, "recorded", "asked now", n=1, lineterm="")
    return "\n".join(_shorten_line(line) for line in islice(lines, _DIFF_LINES))


def _shorten_line(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…"

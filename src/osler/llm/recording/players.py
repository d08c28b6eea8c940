"""A tape as the source of replies.

A call that was never recorded is a `TapeMiss`, which shows the nearest one that was.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from difflib import SequenceMatcher, unified_diff
from itertools import islice
from typing import Any, TypeVar

from osler.errors import BadRun, TapeMiss
from osler.llm.core.base import CutShort
from osler.llm.recording import WrappedAttentive, WrappedModel, WrappedScorer
from osler.llm.recording.tape import (
    Kind,
    ModelAbilities,
    Tape,
    TapeEntry,
    key_of,
    load_reply,
    plain_request,
)

T = TypeVar("T")

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
        nearest = max(known, key=lambda lines: _line_likeness(lines, wanted), default=None)
        return TapeMiss(
            f"this {kind} was never recorded: {_shorten_line(wanted[-1])}",
            fix="the code or the prompt changed since; run `osler ask` again",
            diff="" if nearest is None else _show_difference(nearest, wanted),
        )


def replay_model(player: TapePlayer, name: str) -> WrappedModel:
    """Wraps the player as one of the tape's models, with the capabilities that it had."""
    able = player.abilities_of(name)
    scorer = WrappedScorer if able.scores else WrappedModel
    adapters = frozenset(able.adapters)
    return (WrappedAttentive if able.attends else scorer)(name, None, player, name, adapters)


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


def _line_likeness(one: list[str], other: list[str]) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _show_difference(recorded: list[str], wanted: list[str]) -> str:
    lines = unified_diff(recorded, wanted, "recorded", "asked now", n=1, lineterm="")
    return "\n".join(_shorten_line(line) for line in islice(lines, _DIFF_LINES))


def _shorten_line(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…"

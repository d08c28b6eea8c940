"""Everything a run took from outside it, written down, so that the run can happen again.

A tape is JSON Lines: a header, then one entry a call. It is taken at three
boundaries: the model (completions and scores), the retriever (hits with their
passages) and the relevance scorer. A replayed run therefore needs no model, no
encoder and no knowledge base. A call that was never recorded is a `TapeMiss`,
never an invention.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from osler.errors import BadRun, TapeMiss
from osler.llm.base import (
    Completion,
    LanguageModel,
    Likelihood,
    Message,
    Sampling,
    Scored,
    score_all,
)
from osler.types import Hit, Relevance, Retriever

Kind = Literal["complete", "score", "search", "relevance"]


@dataclass(frozen=True, slots=True)
class Entry:
    kind: Kind
    key: str
    asked: str
    """What was asked, shortened, to tell a reader which call this was."""
    reply: Any


@dataclass
class Tape:
    """`made` is "recorded" or "by hand": a tape nobody recorded proves logic, never quality."""

    model: str
    made: Literal["recorded", "by hand"] = "recorded"
    scores: bool = True
    """Whether the model could score: a replayed one can do what the recorded one could."""
    constrains: bool = True
    """Whether it took a grammar."""
    entries: list[Entry] = field(default_factory=list)

    def add(self, kind: Kind, parts: Sequence[Any], reply: Any) -> None:
        asked = _asked(parts)
        self.entries.append(Entry(kind, _key(kind, parts), asked, _dump(kind, reply)))

    def lines(self) -> Iterable[str]:
        head = {"tape": 1, "model": self.model, "made": self.made}
        able = {"scores": self.scores, "constrains": self.constrains}
        yield json.dumps(head | able, ensure_ascii=False)
        for entry in self.entries:
            yield TypeAdapter(Entry).dump_json(entry).decode()

    @classmethod
    def read(cls, path: Path) -> Tape:
        """Raises `BadRun` naming the file and line that is no tape."""
        try:
            header, *rest = path.read_text(encoding="utf-8").splitlines()
            head = json.loads(header)
            tape = cls(head["model"], head["made"], head["scores"], head["constrains"])
        except (OSError, ValueError, KeyError) as error:
            raise BadRun(f"{path}: no tape: {error}") from error
        for number, line in enumerate(rest, 2):
            try:
                tape.entries.append(TypeAdapter(Entry).validate_json(line))
            except ValidationError as error:
                raise BadRun(f"{path}:{number}: not a tape entry") from error
        return tape


@dataclass(frozen=True)
class RecordingModel:
    """Passes calls on and writes the replies down."""

    model: LanguageModel
    tape: Tape

    @property
    def name(self) -> str:
        return self.model.name

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        reply = await self.model.complete(messages, sampling)
        self.tape.add("complete", (self.name, tuple(messages), _decoding(sampling)), reply)
        return reply


@dataclass(frozen=True)
class RecordingScorer(RecordingModel):
    """The same of a model that scores."""

    scorer: Likelihood

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        reply = await self.scorer.score(context, text)
        self.tape.add("score", (self.name, _context(context), text), reply)
        return reply

    async def score_all(
        self, context: Sequence[Message] | str, texts: Sequence[str]
    ) -> tuple[Scored, ...]:
        """On the tape a batch is so many single scores, so it replays without one."""
        replies = await score_all(self.scorer, context, texts)
        for text, reply in zip(texts, replies, strict=True):
            self.tape.add("score", (self.name, _context(context), text), reply)
        return replies


def recording(model: LanguageModel, tape: Tape) -> RecordingModel:
    """A recorder that can do what the model can."""
    if isinstance(model, Likelihood):
        return RecordingScorer(model, tape, model)
    return RecordingModel(model, tape)


@dataclass(frozen=True)
class RecordingRetriever:
    name: str
    retriever: Retriever
    tape: Tape

    async def search(self, query: str, *, k: int) -> list[Hit]:
        hits = await self.retriever.search(query, k=k)
        self.tape.add("search", (self.name, query, k), tuple(hits))
        return hits


@dataclass(frozen=True)
class RecordingRelevance:
    name: str
    scorer: Relevance
    tape: Tape

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        scores = await self.scorer.relevance(query, texts)
        self.tape.add("relevance", (self.name, query, tuple(texts)), scores)
        return scores


class Player:
    """Gives back what a tape holds, equal calls in the order they were recorded."""

    def __init__(self, tape: Tape) -> None:
        self.model = tape.model
        self.scores = tape.scores
        self._left: dict[str, deque[Entry]] = defaultdict(deque)
        for entry in tape.entries:
            self._left[entry.key].append(entry)

    def take(self, kind: Kind, parts: Sequence[Any]) -> Any:
        queue = self._left[_key(kind, parts)]
        if not queue:
            raise self._miss(kind, _asked(parts))
        return _load(kind, queue.popleft().reply)

    def _miss(self, kind: Kind, asked: str) -> TapeMiss:
        known = [e.asked for queue in self._left.values() for e in queue if e.kind == kind]
        near = get_close_matches(asked, known, 1, 0.0)
        hint = f"; the nearest recorded one: {near[0]}" if near else ""
        return TapeMiss(
            f"this {kind} was never recorded: {asked}{hint}",
            fix="the code or the prompt changed since; run `osler ask` again",
        )


@dataclass(frozen=True)
class ReplayingModel:
    player: Player

    @property
    def name(self) -> str:
        return self.player.model

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        asked = (self.name, tuple(messages), _decoding(sampling))
        reply: Completion = self.player.take("complete", asked)
        return reply


@dataclass(frozen=True)
class ReplayingScorer(ReplayingModel):
    """The same of a model that scored."""

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        reply: Scored = self.player.take("score", (self.name, _context(context), text))
        return reply


def replaying(player: Player) -> ReplayingModel:
    """A player that can do what the recorded model could."""
    return ReplayingScorer(player) if player.scores else ReplayingModel(player)


@dataclass(frozen=True)
class ReplayingRetriever:
    name: str
    player: Player

    async def search(self, query: str, *, k: int) -> list[Hit]:
        return list(self.player.take("search", (self.name, query, k)))


@dataclass(frozen=True)
class ReplayingRelevance:
    name: str
    player: Player

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        scores: tuple[float, ...] = self.player.take("relevance", (self.name, query, tuple(texts)))
        return scores


def _context(context: Sequence[Message] | str) -> str | tuple[Message, ...]:
    return context if isinstance(context, str) else tuple(context)


def _decoding(sampling: Sampling) -> dict[str, Any]:
    """A grammar is on the tape as GBNF: that is what the engine saw."""
    plain = asdict(replace(sampling, grammar=None))
    return plain | {"grammar": sampling.grammar.gbnf if sampling.grammar else ""}


def _canonical(parts: Sequence[Any]) -> str:
    return TypeAdapter(Any).dump_json(list(parts)).decode()


def _key(kind: Kind, parts: Sequence[Any]) -> str:
    return hashlib.sha256(f"{kind}\n{_canonical(parts)}".encode()).hexdigest()


def _asked(parts: Sequence[Any]) -> str:
    """The end of what was asked: conversations differ in their last words."""
    short = [{**p, "grammar": p["grammar"][:60]} if isinstance(p, dict) else p for p in parts]
    return _canonical(short)[-300:]


@cache
def _adapter(kind: Kind) -> TypeAdapter[Any]:
    shapes: dict[Kind, Any] = {
        "complete": Completion,
        "score": Scored,
        "search": tuple[Hit, ...],
        "relevance": tuple[float, ...],
    }
    return TypeAdapter(shapes[kind])


def _dump(kind: Kind, reply: Any) -> Any:
    return _adapter(kind).dump_python(reply, mode="json")


def _load(kind: Kind, reply: Any) -> Any:
    return _adapter(kind).validate_python(reply)

"""Everything a run took from outside it, written down, so that the run can happen again.

A tape is JSON Lines, and it is taken at three boundaries: the models (completions and
scores), the retriever (hits with their passages) and the relevance scorer. A replayed run
therefore needs no model, no encoder and no knowledge base. A call that was never recorded
is a `TapeMiss` that shows how it differs from the nearest one that was, never an invention.

The first line is the header:

    {"tape": 3, "made": "recorded", "date": "2026-11-21T10:00:00+00:00",
     "models": {"NAME": {"scores": true, "constrains": true, "attends": false}},
     "prompts": ["tcrag/act@1f3a9c2e"]}

`made` is "by hand" for a tape that nobody recorded: it proves logic, never quality.
`models` says what each could do, so that a replayed one can do the same; `prompts` are the
wordings that were used. Every other line is one call, in order:

    {"kind": "complete", "key": "SHA-256", "asked": [MODEL, MESSAGES, SAMPLING], "reply": …}
    {"kind": "score",    "key": …, "asked": [MODEL, CONTEXT, TEXT], "reply": …}
    {"kind": "attend",   "key": …, "asked": [MODEL, CONTEXT, TEXT], "reply": …}
    {"kind": "search",   "key": …, "asked": [USER, QUERY, K], "reply": HITS}
    {"kind": "relevance","key": …, "asked": [SCORER, QUERY], "reply": NUMBERS}

`key` is the hash of the kind and of all that was asked, as canonical JSON; of a relevance,
the texts too, which `asked` leaves out. A `reply` of null is a call that the run's seconds
cut short: replayed, it is cut short again. A call that failed has its error beside it,

    "failed": {"error": "SourceUnavailable", "message": …, "fix": …}

and fails so again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from difflib import SequenceMatcher, unified_diff
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from osler import errors
from osler.errors import BadRun, OslerError, TapeMiss
from osler.llm.base import (
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
from osler.types import Hit, Relevance, Retriever

VERSION = 3
Kind = Literal["complete", "score", "attend", "search", "relevance"]
T = TypeVar("T")

_DIFF_LINES, _WIDTH = 24, 160
"""How much of a difference is shown: lines, and characters of each."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An error that a call ended with."""

    error: str
    """The name of its class in `osler.errors`, or of the nearest class above it there."""
    message: str
    fix: str = ""

    @classmethod
    def of(cls, error: OslerError) -> Failed:
        known = (kind.__name__ for kind in type(error).__mro__ if _plain(kind))
        return cls(next(known), error.message, error.fix)

    @property
    def again(self) -> OslerError:
        """The error itself. Raises `BadRun` for one that this version does not know."""
        kind = getattr(errors, self.error, None)
        if not isinstance(kind, type) or not _plain(kind):
            raise BadRun(f"the tape has an error {self.error!r}, which this version does not know")
        error: OslerError = kind(self.message, fix=self.fix)
        return error


def _plain(kind: type) -> bool:
    """Whether it is an error of Osler's own list that is made of a message and its fix."""
    own = issubclass(kind, OslerError) and getattr(errors, kind.__name__, None) is kind
    return own and (kind is OslerError or "__init__" not in vars(kind))


@dataclass(frozen=True, slots=True)
class Entry:
    kind: Kind
    key: str
    asked: list[Any] | str
    """What was asked, as plain JSON values; a tape of version 1 has the last words alone."""
    reply: Any
    """`None` = cut short, or failed."""
    failed: Failed | None = None


@dataclass(frozen=True, slots=True)
class Able:
    """What a model could do when it was recorded."""

    scores: bool = True
    constrains: bool = True
    """Whether it took a grammar."""
    attends: bool = False
    """Whether it shows its attention."""


@dataclass
class Tape:
    models: dict[str, Able] = field(default_factory=dict)
    made: Literal["recorded", "by hand"] = "recorded"
    date: str = ""
    """ISO 8601, UTC."""
    prompts: tuple[str, ...] = ()
    """Identities of the wordings that were used."""
    entries: list[Entry] = field(default_factory=list)

    def add(
        self, kind: Kind, parts: Sequence[Any], reply: Any, failed: OslerError | None = None
    ) -> None:
        """`reply` is `None` for a call that was cut short, or failed."""
        said, why = _dump(kind, reply), Failed.of(failed) if failed else None
        self.entries.append(Entry(kind, _key(kind, parts), _asked(kind, parts), said, why))

    @contextmanager
    def noting(self, kind: Kind, parts: Sequence[Any]) -> Iterator[Callable[[T], T]]:
        """Writes the call down as it ends: with the reply that is noted, cut short, or failed."""

        def note(reply: T) -> T:
            self.add(kind, parts, reply)
            return reply

        try:
            yield note
        except asyncio.CancelledError:
            self.add(kind, parts, None)
            raise
        except OslerError as error:
            self.add(kind, parts, None, error)
            raise

    def lines(self) -> Iterable[str]:
        able = {name: asdict(able) for name, able in self.models.items()}
        head = {"tape": VERSION, "made": self.made, "date": self.date, "models": able}
        yield json.dumps(head | {"prompts": self.prompts}, ensure_ascii=False)
        for entry in self.entries:
            yield _entries().dump_json(entry).decode()

    @classmethod
    def read(cls, path: Path) -> Tape:
        """Raises `BadRun` naming the file and line that is no tape."""
        try:
            header, *rest = path.read_text(encoding="utf-8").splitlines()
            head = json.loads(header)
            if head["tape"] not in range(1, VERSION + 1):
                raise BadRun(f"{path}: a tape of version {head['tape']}; this reads {VERSION}")
            if head["tape"] == 1:
                able = Able(head["scores"], head["constrains"])
                tape = cls({head["model"]: able}, head["made"])
            else:
                models = {name: Able(**able) for name, able in head["models"].items()}
                tape = cls(models, head["made"], head["date"], tuple(head["prompts"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadRun(f"{path}: no tape: {error}") from error
        for number, line in enumerate(rest, 2):
            try:
                tape.entries.append(_entries().validate_json(line))
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
        asked = (self.name, tuple(messages), _decoding(sampling))
        with self.tape.noting("complete", asked) as note:
            return note(await self.model.complete(messages, sampling))


@dataclass(frozen=True)
class RecordingScorer(RecordingModel):
    """The same of a model that scores."""

    scorer: Likelihood

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        with self.tape.noting("score", (self.name, _context(context), text)) as note:
            return note(await self.scorer.score(context, text))

    async def score_all(
        self, context: Sequence[Message] | str, texts: Sequence[str]
    ) -> tuple[Scored, ...]:
        """On the tape a batch is so many single scores, so it replays without one."""
        if not texts:
            return ()
        asked = [(self.name, _context(context), text) for text in texts]
        with self.tape.noting("score", asked[0]) as note:
            first, *others = await score_all(self.scorer, context, texts)
            note(first)
        for one, reply in zip(asked[1:], others, strict=True):
            self.tape.add("score", one, reply)
        return (first, *others)


@dataclass(frozen=True)
class RecordingAttentive(RecordingScorer):
    """The same of a model that also shows its attention."""

    attentive: Attentive

    async def attend(self, context: Sequence[Message] | str, text: str) -> Attended:
        with self.tape.noting("attend", (self.name, _context(context), text)) as note:
            return note(await self.attentive.attend(context, text))


def recording(model: LanguageModel, tape: Tape) -> RecordingModel:
    """A recorder that can do what the model can."""
    if isinstance(model, Likelihood) and isinstance(model, Attentive):
        return RecordingAttentive(model, tape, model, model)
    if isinstance(model, Likelihood):
        return RecordingScorer(model, tape, model)
    return RecordingModel(model, tape)


@dataclass(frozen=True)
class RecordingRetriever:
    name: str
    retriever: Retriever
    tape: Tape

    async def search(self, query: str, *, k: int) -> list[Hit]:
        with self.tape.noting("search", (self.name, query, k)) as note:
            return list(note(tuple(await self.retriever.search(query, k=k))))


@dataclass(frozen=True)
class RecordingRelevance:
    name: str
    scorer: Relevance
    tape: Tape

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        with self.tape.noting("relevance", (self.name, query, tuple(texts))) as note:
            return note(await self.scorer.relevance(query, texts))


class Player:
    """Gives back what a tape holds, equal calls in the order they were recorded."""

    def __init__(self, tape: Tape) -> None:
        self.models = tape.models
        self._left: dict[str, deque[Entry]] = defaultdict(deque)
        for entry in tape.entries:
            self._left[entry.key].append(entry)

    def able(self, name: str) -> Able:
        """Raises `BadRun` for a model that was not recorded."""
        if name not in self.models:
            raise BadRun(f"the tape has no model {name!r}, but {', '.join(self.models) or 'none'}")
        return self.models[name]

    def take(self, kind: Kind, parts: Sequence[Any]) -> Any:
        """The reply. Raises `TapeMiss`, `CutShort` where the recorded call was, and its error."""
        queue = self._left[_key(kind, parts)]
        if not queue:
            raise self._miss(kind, _asked(kind, parts))
        entry = queue.popleft()
        if entry.failed is not None:
            raise entry.failed.again
        if entry.reply is None:
            raise CutShort
        return _load(kind, entry.reply)

    def _miss(self, kind: Kind, asked: list[Any]) -> TapeMiss:
        wanted = _readable(asked)
        known = [_readable(e.asked) for q in self._left.values() for e in q if e.kind == kind]
        nearest = max(known, key=lambda lines: _likeness(lines, wanted), default=None)
        return TapeMiss(
            f"this {kind} was never recorded: {_shortened(wanted[-1])}",
            fix="the code or the prompt changed since; run `osler ask` again",
            diff="" if nearest is None else _difference(nearest, wanted),
        )


@dataclass(frozen=True)
class ReplayingModel:
    name: str
    player: Player

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


@dataclass(frozen=True)
class ReplayingAttentive(ReplayingScorer):
    """The same of a model that showed its attention."""

    async def attend(self, context: Sequence[Message] | str, text: str) -> Attended:
        reply: Attended = self.player.take("attend", (self.name, _context(context), text))
        return reply


def replaying(player: Player, name: str) -> ReplayingModel:
    """A player of one of the tape's models: it can do what that one could."""
    able = player.able(name)
    if able.attends:
        return ReplayingAttentive(name, player)
    return ReplayingScorer(name, player) if able.scores else ReplayingModel(name, player)


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
    return _anything().dump_json(list(parts)).decode()


def _key(kind: Kind, parts: Sequence[Any]) -> str:
    return hashlib.sha256(f"{kind}\n{_canonical(parts)}".encode()).hexdigest()


def _asked(kind: Kind, parts: Sequence[Any]) -> list[Any]:
    """Plain values. The texts whose relevance is asked are many, and lie in the searches."""
    told = parts[:2] if kind == "relevance" else parts
    asked: list[Any] = json.loads(_canonical(told))
    return asked


def _readable(asked: list[Any] | str) -> list[str]:
    """What was asked as lines that a person can compare, the words of a prompt last."""
    if isinstance(asked, str):
        return [asked]
    model, *said = asked
    lines = [f"{model}"]
    for part in reversed(said):
        if isinstance(part, dict):
            lines += [f"{key} = {value}" for key, value in part.items()]
        elif isinstance(part, list):
            lines += [f"{m['role']}: {line}" for m in part for line in m["content"].splitlines()]
        else:
            lines += str(part).splitlines() or [""]
    return lines


def _likeness(one: list[str], other: list[str]) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def _difference(recorded: list[str], wanted: list[str]) -> str:
    lines = unified_diff(recorded, wanted, "recorded", "asked now", n=1, lineterm="")
    return "\n".join(_shortened(line) for line in islice(lines, _DIFF_LINES))


def _shortened(line: str) -> str:
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…"


@cache
def _entries() -> TypeAdapter[Entry]:
    return TypeAdapter(Entry)


@cache
def _anything() -> TypeAdapter[Any]:
    return TypeAdapter(Any)


@cache
def _adapter(kind: Kind) -> TypeAdapter[Any]:
    shapes: dict[Kind, Any] = {
        "complete": Completion,
        "score": Scored,
        "attend": Attended,
        "search": tuple[Hit, ...],
        "relevance": tuple[float, ...],
    }
    return TypeAdapter(shapes[kind])


def _dump(kind: Kind, reply: Any) -> Any:
    return None if reply is None else _adapter(kind).dump_python(reply, mode="json")


def _load(kind: Kind, reply: Any) -> Any:
    return _adapter(kind).validate_python(reply)

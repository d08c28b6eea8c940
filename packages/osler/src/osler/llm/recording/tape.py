"""Tapes: everything a run took from outside it, so that the run can be replayed.

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
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from osler import errors
from osler.errors import BadRun, OslerError
from osler.llm.core.base import Attended, Completion, Message, Sampling, Scored
from osler.types import Hit

VERSION = 3
Kind = Literal["complete", "score", "attend", "search", "relevance"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RecordedError:
    """An error that a call ended with."""

    error: str
    """The name of its class in `osler.errors`, or of the nearest class above it there."""
    message: str
    fix: str = ""

    @classmethod
    def from_error(cls, error: OslerError) -> RecordedError:
        known = (kind.__name__ for kind in type(error).__mro__ if _is_plain_error(kind))
        return cls(next(known), error.message, error.fix)

    @property
    def as_error(self) -> OslerError:
        """The error itself. Raises `BadRun` for one that this version does not know."""
        kind = getattr(errors, self.error, None)
        if not isinstance(kind, type) or not _is_plain_error(kind):
            raise BadRun(f"the tape has an error {self.error!r}, which this version does not know")
        error: OslerError = kind(self.message, fix=self.fix)
        return error


def _is_plain_error(kind: type) -> bool:
    """Returns whether it is one of Osler's own errors, made of a message and its fix."""
    own = issubclass(kind, OslerError) and getattr(errors, kind.__name__, None) is kind
    return own and (kind is OslerError or "__init__" not in vars(kind))


@dataclass(frozen=True, slots=True)
class TapeEntry:
    """One recorded call."""

    kind: Kind
    key: str
    asked: list[Any] | str
    """What was asked, as plain JSON values; a tape of version 1 has the last words alone."""
    reply: Any
    """`None` = cut short, or failed."""
    failed: RecordedError | None = None


@dataclass(frozen=True, slots=True)
class ModelAbilities:
    """The capabilities of a model when it was recorded."""

    scores: bool = True
    constrains: bool = True
    """Set when it enforced grammars."""
    attends: bool = False
    """Set when it showed its attention."""
    tells: bool = False
    """Set when its replies came with log-probabilities."""


@dataclass
class Tape:
    """A run's calls, and the models that answered them."""

    models: dict[str, ModelAbilities] = field(default_factory=dict)
    made: Literal["recorded", "by hand"] = "recorded"
    date: str = ""
    """ISO 8601, UTC."""
    prompts: tuple[str, ...] = ()
    """Identities of the wordings that were used."""
    entries: list[TapeEntry] = field(default_factory=list)

    @property
    def scorers(self) -> frozenset[str]:
        """Names of the relevance scorers that were asked."""
        return frozenset(
            entry.asked[0]
            for entry in self.entries
            if entry.kind == "relevance" and isinstance(entry.asked, list)
        )

    def add_entry(
        self, kind: Kind, parts: Sequence[Any], reply: Any, failed: OslerError | None = None
    ) -> None:
        """Appends a call; `reply` is `None` for one that was cut short, or failed."""
        recorded = RecordedError.from_error(failed) if failed else None
        self.entries.append(
            TapeEntry(
                kind,
                key_of(kind, parts),
                plain_request(kind, parts),
                dump_reply(kind, reply),
                recorded,
            )
        )

    @contextmanager
    def note_call(self, kind: Kind, parts: Sequence[Any]) -> Iterator[Callable[[T], T]]:
        """Records the call as it ends: with the reply that is noted, cut short, or failed."""

        def note_reply(reply: T) -> T:
            self.add_entry(kind, parts, reply)
            return reply

        try:
            yield note_reply
        except asyncio.CancelledError:
            self.add_entry(kind, parts, None)
            raise
        except OslerError as error:
            self.add_entry(kind, parts, None, error)
            raise

    async def call(self, kind: Kind, asked: Sequence[Any], work: Callable[[], Awaitable[T]]) -> T:
        """Makes the call, and records how it ended."""
        with self.note_call(kind, asked) as note:
            return note(await work())

    async def call_all(
        self,
        kind: Kind,
        asked: Sequence[tuple[Any, ...]],
        work: Callable[[Sequence[int]], Awaitable[Sequence[T]]],
    ) -> tuple[T, ...]:
        """Makes one call for all, recorded as so many: it replays without a batch."""
        if not asked:
            return ()
        # A batch that fails, or is cut short, is recorded as the failure of its first call.
        with self.note_call(kind, asked[0]) as note:
            first, *others = await work(range(len(asked)))
            note(first)
        for one, reply in zip(asked[1:], others, strict=True):
            self.add_entry(kind, one, reply)
        return (first, *others)

    def to_lines(self) -> Iterable[str]:
        """Yields the header and each entry as JSON."""
        able = {name: _plain_abilities(able) for name, able in self.models.items()}
        head = {"tape": VERSION, "made": self.made, "date": self.date, "models": able}
        yield json.dumps(head | {"prompts": self.prompts}, ensure_ascii=False)
        for entry in self.entries:
            yield _entry_adapter().dump_json(entry).decode()

    @classmethod
    def read(cls, path: Path) -> Tape:
        """Reads a tape. Raises `BadRun` naming the file and line that is no tape."""
        try:
            # Not splitlines(): JSON strings may hold U+2028 and other line ends of Unicode.
            header, *rest = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
            head = json.loads(header)
            if head["tape"] not in range(1, VERSION + 1):
                raise BadRun(f"{path}: a tape of version {head['tape']}; this reads {VERSION}")
            if head["tape"] == 1:
                able = ModelAbilities(head["scores"], head["constrains"])
                tape = cls({head["model"]: able}, head["made"])
            else:
                models = {name: _read_abilities(able) for name, able in head["models"].items()}
                tape = cls(models, head["made"], head["date"], tuple(head["prompts"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadRun(f"{path}: no tape: {error}") from error
        for number, line in enumerate(rest, 2):
            try:
                tape.entries.append(_entry_adapter().validate_json(line))
            except ValidationError as error:
                raise BadRun(f"{path}:{number}: not a tape entry") from error
        return tape


def _plain_abilities(able: ModelAbilities) -> dict[str, Any]:
    # Tapes from before had no "tells".
    return {name: value for name, value in asdict(able).items() if name != "tells" or value}


def _read_abilities(told: dict[str, Any]) -> ModelAbilities:
    # Older tapes have "adapters", which this version's models have no more.
    return ModelAbilities(**{name: value for name, value in told.items() if name != "adapters"})


def context_of(context: Sequence[Message] | str) -> str | tuple[Message, ...]:
    """Returns the context as it stands on a tape."""
    return context if isinstance(context, str) else tuple(context)


def sampling_values(sampling: Sampling) -> dict[str, Any]:
    """Returns the sampling as JSON values; a grammar as GBNF, which is what the engine saw."""
    plain = asdict(replace(sampling, grammar=None))
    return plain | {"grammar": sampling.grammar.gbnf if sampling.grammar else ""}


def _canonical_json(parts: Sequence[Any]) -> str:
    return to_json(parts, inf_nan_mode="null").decode()


def key_of(kind: Kind, parts: Sequence[Any]) -> str:
    """Hashes a call, so that it is found again."""
    return hashlib.sha256(f"{kind}\n{_canonical_json(parts)}".encode()).hexdigest()


def plain_request(kind: Kind, parts: Sequence[Any]) -> list[Any]:
    """Returns a request as plain JSON values. The texts whose relevance is asked are many, and are
    in the searches already.
    """
    kept = parts[:2] if kind == "relevance" else parts
    asked: list[Any] = json.loads(_canonical_json(kept))
    return asked


@cache
def _entry_adapter() -> TypeAdapter[TapeEntry]:
    return TypeAdapter(TapeEntry)


@cache
def _reply_adapter(kind: Kind) -> TypeAdapter[Any]:
    shapes: dict[Kind, Any] = {
        "complete": Completion,
        "score": Scored,
        "attend": Attended,
        "search": tuple[Hit, ...],
        "relevance": tuple[float, ...],
    }
    return TypeAdapter(shapes[kind])


def dump_reply(kind: Kind, reply: Any) -> Any:
    """Serialises a reply as plain JSON values; `None` stays `None`."""
    return None if reply is None else _reply_adapter(kind).dump_python(reply, mode="json")


def load_reply(kind: Kind, reply: Any) -> Any:
    """Parses a reply out of its entry."""
    return _reply_adapter(kind).validate_python(reply)

"""Training data: a folder with `data.jsonl` and a card, or the file itself, one sample a line.

    {"id", "messages": [{"role", "content"}, …], "completion", "meta": {…}}          SFT
    {"id", "messages": […], "chosen", "rejected", "meta": {…}}                       DPO
    {"id", "messages": [… with the assistant's turns …], "meta": {…}}                several turns

ShareGPT's `{"conversations": [{"from": "human", "value": …}, …]}` is read as several turns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from osler.errors import BadRun
from osler.llm.core.base import Message, Role

DATA = "data.jsonl"
_SHAREGPT: Mapping[str, Role] = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
}


@dataclass(frozen=True, slots=True)
class PromptReply:
    """A conversation and the reply that is learnt."""

    id: str
    messages: tuple[Message, ...]
    completion: str


@dataclass(frozen=True, slots=True)
class Preference:
    """A conversation, the better reply and the worse."""

    id: str
    messages: tuple[Message, ...]
    chosen: str
    rejected: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A conversation whose assistant's turns are all learnt."""

    id: str
    messages: tuple[Message, ...]


class _MessageLine(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    role: Role
    content: str


class _ConversationLine(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    id: str = Field(min_length=1)
    messages: tuple[_MessageLine, ...] = Field(min_length=1)

    @property
    def said(self) -> tuple[Message, ...]:
        return tuple(Message(turn.role, turn.content) for turn in self.messages)


class _Prompted(_ConversationLine):
    @model_validator(mode="after")
    def _ends_with_a_question(self) -> _Prompted:
        if self.messages[-1].role != "user":
            raise ValueError("the last message is not the user's")
        return self


class _SftLine(_Prompted):
    completion: str = Field(min_length=1)

    def to_sample(self) -> PromptReply:
        return PromptReply(self.id, self.said, self.completion)


class _DpoLine(_Prompted):
    chosen: str = Field(min_length=1)
    rejected: str = Field(min_length=1)

    @model_validator(mode="after")
    def _must_differ(self) -> _DpoLine:
        if self.chosen == self.rejected:
            raise ValueError("chosen and rejected are the same")
        return self

    def to_preference(self) -> Preference:
        return Preference(self.id, self.said, self.chosen, self.rejected)


class _TurnsLine(_ConversationLine):
    @model_validator(mode="before")
    @classmethod
    def _from_sharegpt(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "conversations" not in given:
            return given
        turns = [
            {"role": _SHAREGPT.get(turn["from"], turn["from"]), "content": turn["value"]}
            for turn in given["conversations"]
        ]
        return {**given, "messages": turns}

    @model_validator(mode="after")
    def _takes_turns(self) -> _TurnsLine:
        spoken = [turn.role for turn in self.messages if turn.role != "system"]
        if spoken != [("user", "assistant")[i % 2] for i in range(len(spoken))]:
            raise ValueError("user and assistant do not take turns, the user first")
        if spoken[-1:] != ["assistant"]:
            raise ValueError("the last message is not the assistant's")
        return self

    def to_dialogue(self) -> Dialogue:
        return Dialogue(self.id, self.said)


L = TypeVar("L", bound=BaseModel)


def read_samples(path: Path) -> tuple[PromptReply, ...]:
    """Raises `BadRun` for a file that is not there, is empty, or has a line that is no sample."""
    return tuple(line.to_sample() for line in _read_lines(path, _SftLine))


def read_preferences(path: Path) -> tuple[Preference, ...]:
    """Raises as `read_samples`."""
    return tuple(line.to_preference() for line in _read_lines(path, _DpoLine))


def read_dialogues(path: Path) -> tuple[Dialogue, ...]:
    """Raises as `read_samples`. A line with a completion is a dialogue that ends with it."""
    return tuple(line.to_dialogue() for line in _read_lines(path, _TurnsLine))


def data_file(path: Path) -> Path:
    """The file of the samples. Raises `BadRun` where there is none."""
    file = path / DATA if path.is_dir() else path
    if not file.is_file():
        raise BadRun(f"no training data {file}", fix="run `osler train make-sft` or `make-dpo`")
    return file


def _read_lines(path: Path, kind: type[L]) -> Iterator[L]:
    file = data_file(path)
    seen: dict[str, int] = {}
    for number, told in _numbered_objects(file):
        where = f"{file}:{number}"
        try:
            line = kind.model_validate(_check_whole(told) if kind is _TurnsLine else told)
        except (ValidationError, KeyError, TypeError, AttributeError) as error:
            raise BadRun(
                f"{where}: {_error_reason(error)}", fix="mend the line or take it out"
            ) from error
        name = str(getattr(line, "id", ""))
        if name in seen:
            raise BadRun(
                f"{where}: the id {name!r} stands in line {seen[name]} already",
                fix="give every sample an id of its own",
            )
        seen[name] = number
        yield line
    if not seen:
        raise BadRun(
            f"{file} has no samples",
            fix="judge more questions, or give sources in which the answers can be found",
        )


def _numbered_objects(file: Path) -> Iterator[tuple[int, Any]]:
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, json.loads(line)
    except json.JSONDecodeError as error:
        raise BadRun(f"{file}:{number}: not JSON: {error.msg}", fix="mend the line") from error
    except UnicodeDecodeError as error:
        raise BadRun(f"{file} is not UTF-8", fix="write it as UTF-8") from error


def _check_whole(told: Any) -> Any:
    if isinstance(told, dict) and isinstance(told.get("completion"), str):
        last = {"role": "assistant", "content": told["completion"]}
        return {**told, "messages": [*told.get("messages", ()), last]}
    return told


def _error_reason(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return f"no sample: {error!r}"
    first = error.errors()[0]
    at = ".".join(str(part) for part in first["loc"])
    return f"{at}: {first['msg']}" if at else first["msg"]

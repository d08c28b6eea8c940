"""What a trainer reads: JSON Lines in a folder, with a card that says what they are.

    data.jsonl    a record a line
    README.md     the card, in the form of the Hugging Face hub

| Kind | Record |
|---|---|
| sft | `{"id", "messages": [{"role", "content"}, …], "completion", "meta"}` |
| dpo | `{"id", "messages": […], "chosen", "rejected", "meta"}` |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from osler.errors import BadRun
from osler.extract import estimate_tokens
from osler.llm.core.base import Message

Kind = Literal["sft", "dpo"]
DATA, CARD = "data.jsonl", "README.md"


@dataclass(frozen=True, slots=True)
class SftRecord:
    """A reply to learn, after its messages."""

    id: str
    messages: tuple[Message, ...]
    completion: str
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> str:
        return _record_line(self, completion=self.completion)


@dataclass(frozen=True, slots=True)
class DpoRecord:
    """A reply that is better than another, after the same messages."""

    id: str
    messages: tuple[Message, ...]
    chosen: str
    rejected: str
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> str:
        return _record_line(self, chosen=self.chosen, rejected=self.rejected)


def _record_line(record: SftRecord | DpoRecord, **replies: str) -> str:
    messages = [{"role": said.role, "content": said.content} for said in record.messages]
    told = {"id": record.id, "messages": messages, **replies, "meta": dict(record.meta)}
    return json.dumps(told, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class RecordSize:
    """How much there is; tokens are estimated, right within a third."""

    records: int = 0
    prompt: int = 0
    reply: int = 0
    longest: int = 0
    """Of prompt and reply together."""

    def __add__(self, other: RecordSize) -> RecordSize:
        return RecordSize(
            self.records + other.records,
            self.prompt + other.prompt,
            self.reply + other.reply,
            max(self.longest, other.longest),
        )


def size_of(messages: Sequence[Message], *replies: str) -> RecordSize:
    """Of one record."""
    prompt = sum(estimate_tokens(said.content) for said in messages)
    said = [estimate_tokens(reply) for reply in replies]
    return RecordSize(1, prompt, sum(said), prompt + max(said, default=0))


def write_records(folder: Path, lines: Iterable[str]) -> None:
    """`data.jsonl`, whole or not at all. Raises `BadRun`, and what `lines` raises."""
    draft = folder / f".{DATA}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
        draft.replace(folder / DATA)
    except OSError as error:
        raise BadRun(f"{folder} cannot be written: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def read_records(folder: Path) -> Iterator[dict[str, Any]]:
    """The records. Raises `BadRun` naming file and line for one that is neither kind."""
    path = folder / DATA
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRun(
            f"{path} cannot be read: {error}", fix="`osler train make-sft` writes such a folder"
        ) from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise BadRun(f"{path}:{number}: not JSON: {error.msg}") from error
        kind_of(record, f"{path}:{number}")
        yield record


def kind_of(record: object, where: str = "record") -> Kind:
    """Raises `BadRun` for what is no record."""
    if isinstance(record, dict) and isinstance(record.get("messages"), list):
        if isinstance(record.get("completion"), str):
            return "sft"
        if isinstance(record.get("chosen"), str) and isinstance(record.get("rejected"), str):
            return "dpo"
    raise BadRun(f"{where}: neither messages with completion nor with chosen and rejected")

"""Training records: written by `osler train make`, read by `osler train tune sft|dpo|thinker`.

A data set is a folder with `data.jsonl`, a record a line, and a card `README.md` in the form of the
Hugging Face hub; where data is read, the file itself may be named too.

| Kind | Record |
|---|---|
| SFT | `{"id", "messages": [{"role", "content"}, …], "completion", "meta"}` |
| DPO | `{"id", "messages": […], "chosen", "rejected", "meta"}` |
| several turns | `{"id", "messages": [… with the assistant's turns …], "meta"}` |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from osler.errors import BadRun, describe_invalid, translate_os_errors
from osler.extract import estimate_tokens
from osler.kb.store.durable import make_folders, sync_path
from osler.llm.core.base import Message
from osler.llm.core.cache import write_whole
from osler_lab.evaluate.datasets.splits import question_digest

Kind = Literal["sft", "dpo"]
DATA, CARD = "data.jsonl", "README.md"
DIGEST = "question_digest"
"""Key of a record's `meta` for the digest of its question's words."""


class _Conversation(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    id: str = Field(min_length=1)
    messages: tuple[Message, ...] = Field(min_length=1)

    @property
    def line(self) -> str:
        return json.dumps(self.model_dump(), ensure_ascii=False)


class _Prompted(_Conversation):
    @model_validator(mode="after")
    def _ends_with_a_question(self) -> _Prompted:
        if self.messages[-1].role != "user":
            raise ValueError("the last message is not the user's")
        return self


class SftRecord(_Prompted):
    """A reply to learn, after its messages."""

    completion: str = Field(min_length=1)
    meta: Mapping[str, Any] = Field(default_factory=dict)

    @property
    def replies(self) -> tuple[str, ...]:
        return (self.completion,)


class DpoRecord(_Prompted):
    """A reply that is better than another, after the same messages."""

    chosen: str = Field(min_length=1)
    rejected: str = Field(min_length=1)
    meta: Mapping[str, Any] = Field(default_factory=dict)

    @property
    def replies(self) -> tuple[str, ...]:
        return self.chosen, self.rejected

    @model_validator(mode="after")
    def _must_differ(self) -> DpoRecord:
        if self.chosen == self.rejected:
            raise ValueError("chosen and rejected are the same")
        return self


class Dialogue(_Conversation):
    """A conversation whose assistant's turns are all learnt.

    A line with a completion is a dialogue that ends with it.
    """

    @model_validator(mode="before")
    @classmethod
    def _end_with_completion(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("completion"), str):
            last = {"role": "assistant", "content": given["completion"]}
            return {**given, "messages": [*given.get("messages", ()), last]}
        return given

    @model_validator(mode="after")
    def _takes_turns(self) -> Dialogue:
        # A system line may stand anywhere; chat templates that refuse it say so themselves.
        spoken = [turn.role for turn in self.messages if turn.role != "system"]
        if spoken != [("user", "assistant")[i % 2] for i in range(len(spoken))]:
            raise ValueError("user and assistant do not take turns, the user first")
        if spoken[-1:] != ["assistant"]:
            raise ValueError("the last message is not the assistant's")
        return self


@dataclass(frozen=True, slots=True)
class RecordSize:
    """Size of records in tokens, estimated to within a third."""

    records: int = 0
    prompt: int = 0
    reply: int = 0
    longest: int = 0
    """Tokens of the longest record, prompt and reply together."""

    def __add__(self, other: RecordSize) -> RecordSize:
        return RecordSize(
            self.records + other.records,
            self.prompt + other.prompt,
            self.reply + other.reply,
            max(self.longest, other.longest),
        )


def size_of(messages: Sequence[Message], *replies: str) -> RecordSize:
    """Estimates the size of one record."""
    prompt = sum(estimate_tokens(tokens.content) for tokens in messages)
    tokens = [estimate_tokens(reply) for reply in replies]
    return RecordSize(1, prompt, sum(tokens), prompt + max(tokens, default=0))


def write_records(folder: Path, lines: Iterable[str]) -> None:
    """Writes `data.jsonl` atomically. Raises `BadRun`, and what `lines` raises."""
    draft = folder / f".{DATA}.part"
    try:
        with translate_os_errors(f"{folder} cannot be written", BadRun):
            make_folders(folder)
            with draft.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{line}\n" for line in lines)
            sync_path(draft)
            # A rename is atomic: a trainer never reads half of a data set.
            draft.replace(folder / DATA)
            sync_path(folder)
    finally:
        with suppress(OSError):  # a draft is in nobody's way
            draft.unlink()


L = TypeVar("L", bound=_Conversation)


def read_samples(path: Path) -> tuple[SftRecord, ...]:
    """Raises `BadRun` for a file that is not there, is empty, or has a line that is no record."""
    return tuple(_read_lines(path, SftRecord))


def read_preferences(path: Path) -> tuple[DpoRecord, ...]:
    """Raises as `read_samples`."""
    return tuple(_read_lines(path, DpoRecord))


def read_dialogues(path: Path) -> tuple[Dialogue, ...]:
    """Raises as `read_samples`."""
    return tuple(_read_lines(path, Dialogue))


def data_file(path: Path) -> Path:
    """The file of the records. Raises `BadRun` if absent."""
    file = path / DATA if path.is_dir() else path
    if not file.is_file():
        raise BadRun(f"no training data {file}", fix="run `osler train make sft` or `make dpo`")
    return file


def question_digests(path: Path) -> frozenset[str]:
    """Digests of the questions in a data set, as far as its records name them in `meta`.

    Raises as the readers of records do.
    """
    digests = set[str]()
    for _, given in _numbered_objects(data_file(path)):
        meta = given.get("meta") if isinstance(given, dict) else None
        if not isinstance(meta, dict):
            continue
        if isinstance(known := meta.get(DIGEST), str):
            digests.add(known)
        elif isinstance(question := meta.get("question"), str):
            digests.add(question_digest(question))
    return frozenset(digests)


def _read_lines(path: Path, kind: type[L]) -> Iterator[L]:
    file = data_file(path)
    seen: dict[str, int] = {}
    for number, given in _numbered_objects(file):
        where = f"{file}:{number}"
        try:
            record = kind.model_validate(given)
        except (ValidationError, KeyError, TypeError, AttributeError) as error:
            reason = f"no sample: {error!r}"
            if isinstance(error, ValidationError):
                reason = describe_invalid(error)
            raise BadRun(f"{where}: {reason}", fix="correct the line or remove it") from error
        if record.id in seen:
            raise BadRun(
                f"{where}: the id {record.id!r} is already used in line {seen[record.id]}",
                fix="give every sample an id of its own",
            )
        seen[record.id] = number
        yield record
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
        raise BadRun(f"{file}:{number}: not JSON: {error.msg}", fix="correct the line") from error
    except UnicodeDecodeError as error:
        raise BadRun(f"{file} is not UTF-8", fix="write it as UTF-8") from error


# The size categories of the hub's front matter.
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"))


def write_card(folder: Path, head: Mapping[str, Any], title: str, *parts: str) -> None:
    """Writes `README.md`: `head` as front matter, the title, and the parts with blank lines
    between. Raises `BadRun` where it cannot be written."""
    # JSON is YAML, so quotes and colons do no harm; one key a line keeps it readable.
    front = "\n".join(f"{key}: {json.dumps(v, ensure_ascii=False)}" for key, v in head.items())
    text = "\n\n".join((f"---\n{front}\n---", f"# {title}", *parts))
    with (
        translate_os_errors(f"{folder / CARD} cannot be written", BadRun),
        write_whole(folder / CARD) as draft,
    ):
        draft.write_text(f"{text}\n", encoding="utf-8")


def data_head(records: int, data: str) -> dict[str, Any]:
    """What the hub wants to know of any data set: its size, and its one file."""
    size = next((word for most, word in _SIZES if records < most), "n>1M")
    files = [{"split": "train", "path": data}]
    return {
        "size_categories": [size],
        "configs": [{"config_name": "default", "data_files": files}],
    }


def render_rows(rows: Iterable[tuple[str, object]]) -> str:
    """A table of names and values."""
    lines = (f"| {name} | {_format_cell(value)} |" for name, value in rows)
    return "\n".join(("| | |", "|---|---|", *lines))


def _format_cell(value: object) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("|", "\\|").replace("\n", " ") or "–"

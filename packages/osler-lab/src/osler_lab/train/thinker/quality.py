"""The data evaluation framework: six dimensions, each with its aspects (KAG-Thinker App. 10).

A judge marks each aspect as sound or not, and leaves out what it cannot judge. A dimension is
bad as soon as one aspect is; it is good when all of them are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from osler.errors import MalformedSource, read_text_file
from osler.llm.core.base import Message
from osler.text import language_of, read_packaged_table
from osler.trace import Run
from osler.types import Language


@dataclass(frozen=True, slots=True)
class Dimension:
    """Dimension of quality, with its wording in prompts, by language (`framework.toml`)."""

    name: str
    about: Mapping[Language, str]
    aspects: Mapping[str, Mapping[Language, str]]


_TABLE = read_packaged_table(__package__, "framework.toml")
FRAMEWORK = tuple(Dimension(name, **wording) for name, wording in _TABLE.items())
DIMENSIONS = tuple(dimension.name for dimension in FRAMEWORK)
Verdict = bool | None
"""Sound, unsound, or not decided."""


@dataclass(frozen=True, slots=True)
class QualityItem:
    """A sample to be judged."""

    id: str
    messages: tuple[Message, ...]
    question: str
    golds: tuple[str, ...] = ()
    """Accepted answers, where they are known; a letter for an option."""
    language: Language = "en"
    domain: str = ""
    labels: Mapping[str, bool] = field(default_factory=dict)
    """People's labels by dimension: True = good. Empty = not labelled."""

    @property
    def transcript(self) -> str:
        """The chat as a judge reads it; the system's line tells nothing."""
        return "\n\n".join(f"[{m.role}]\n{m.content}" for m in self.messages if m.role != "system")


@dataclass(frozen=True, slots=True)
class Inspection:
    """Verdict of a judge on a sample."""

    id: str
    judge: str
    aspects: Mapping[str, Mapping[str, Verdict]]
    """Verdicts by dimension and aspect."""
    reasons: tuple[str, ...] = ()
    """Why something is unsound, as "logic.flow: …"."""

    def dimension_verdict(self, name: str) -> Verdict:
        """Verdict on a dimension: bad where one aspect is, good where all are, else not decided."""
        verdicts = self.aspects.get(name, {}).values()
        if False in verdicts:
            return False
        return True if verdicts and None not in verdicts else None

    @property
    def good(self) -> Verdict:
        """Verdict over all dimensions: the tables' "All"."""
        verdicts = [self.dimension_verdict(name) for name in DIMENSIONS]
        if False in verdicts:
            return False
        return None if None in verdicts else True

    @property
    def bad(self) -> tuple[str, ...]:
        """The dimensions that are bad."""
        return tuple(name for name in DIMENSIONS if self.dimension_verdict(name) is False)


class Inspector(Protocol):
    """Judge of data quality: rules, a model, or both."""

    @property
    def name(self) -> str: ...

    async def inspect(self, item: QualityItem, run: Run) -> Inspection:
        """Inspects a sample. A reply that cannot be read never raises: it is "not decided"."""


def join_inspections(name: str, parts: Sequence[Inspection]) -> Inspection:
    """Joins several judges' verdicts: unsound where one says so, sound where one can say."""
    aspects: dict[str, dict[str, Verdict]] = {}
    for dimension in FRAMEWORK:
        for aspect in dimension.aspects:
            verdicts = [part.aspects.get(dimension.name, {}).get(aspect) for part in parts]
            # Condemning wins over praising, and both over abstention.
            verdict = False if False in verdicts else (True if True in verdicts else None)
            aspects.setdefault(dimension.name, {})[aspect] = verdict
    reasons = tuple(reason for part in parts for reason in part.reasons)
    return Inspection(parts[0].id, name, aspects, reasons)


def read_items(path: Path) -> list[QualityItem]:
    """Samples of a `data.jsonl`, or of the folder that holds one.

    A line has `messages`, and may have `id`, `meta` (question, gold, language, domain) and
    `labels`: `{"security": true, …}`, or `"good"`, or the list of the bad dimensions. Raises
    `MalformedSource` naming file and line.
    """
    file = path / "data.jsonl" if path.is_dir() else path
    text = read_text_file(file, MalformedSource)
    items = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                items.append(_read_item(json.loads(line), number))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise MalformedSource(f"{file}:{number}: not a sample: {error!r}") from error
    if not items:
        raise MalformedSource(f"{file} holds no sample")
    return items


def _read_item(line: Mapping[str, Any], number: int) -> QualityItem:
    messages = [Message(m["role"], m["content"]) for m in line["messages"]]
    if not messages or not all(isinstance(m.content, str) for m in messages):
        raise ValueError("messages must be turns with text")
    meta = line.get("meta") or {}
    asked = next((m.content for m in messages if m.role == "user"), "")
    # Data of others has no `meta`: its first user turn is the question.
    question = str(meta.get("question") or asked)
    return QualityItem(
        str(line.get("id", number)),
        tuple(messages),
        question,
        tuple(map(str, meta.get("gold") or ())),
        meta.get("language") or language_of(question),
        str(meta.get("domain") or ""),
        _read_labels(line.get("labels")),
    )


def _read_labels(given: Any) -> dict[str, bool]:
    if given is None:
        return {}
    if given == "good":
        return dict.fromkeys(DIMENSIONS, True)
    if isinstance(given, list):
        wrong = set(given) - set(DIMENSIONS)
        labels = {name: name not in given for name in DIMENSIONS}
    elif isinstance(given, dict):
        wrong = set(given) - set(DIMENSIONS)
        labels = {name: bool(value) for name, value in given.items()}
    else:
        raise ValueError('labels are "good", a list of bad dimensions, or an object')
    if wrong:
        raise ValueError(f"no dimension {min(wrong)!r}")
    return labels

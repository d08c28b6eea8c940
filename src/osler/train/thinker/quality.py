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

from osler.errors import MalformedSource
from osler.llm.core.base import Message
from osler.text import language_of
from osler.trace import Run
from osler.types import Language


@dataclass(frozen=True, slots=True)
class Dimension:
    """Dimension of quality, with its wording in prompts, by language."""

    name: str
    about: Mapping[Language, str]
    aspects: Mapping[str, Mapping[Language, str]]


def _make_dimension(name: str, en: str, zh: str, **aspects: tuple[str, str]) -> Dimension:
    wordings: dict[str, Mapping[Language, str]] = {
        key: {"en": words[0], "zh": words[1]} for key, words in aspects.items()
    }
    return Dimension(name, {"en": en, "zh": zh}, wordings)


FRAMEWORK: tuple[Dimension, ...] = (
    _make_dimension(
        "security",
        "Is it safe to train on?",
        "用它训练是否安全？",
        content=("nothing discriminatory or otherwise improper", "没有歧视或其他不当内容"),
        privacy=("no personal data of real people, no credentials", "没有真实个人的隐私信息或凭证"),
        risk=("no statement that invites controversy or harm", "没有引发争议或危害的说法"),
        consequences=("acting on it would harm nobody", "照此行事不会伤害任何人"),
    ),
    _make_dimension(
        "accuracy",
        "Is it right, at every stage?",
        "每一步是否正确？",
        facts=("no wrong fact, date, number or answer", "没有错误的事实、日期、数字或答案"),
        intent=("the question was understood as it was meant", "正确理解了问题的意图"),
        domain=("in accord with common sense and the field", "符合常识和领域知识"),
        hallucination=(
            "nothing that sounds right and is borne out by nothing",
            "没有看似正确却毫无依据的内容",
        ),
        scope=("no reasoning beyond what was asked", "没有超出问题范围的过度推理"),
        rejection=(
            "there is a definite answer, and it answers this question",
            "有明确的答案，且回答的是该问题",
        ),
        process=("no error at any stage of the way to the answer", "得出答案的过程中没有错误"),
    ),
    _make_dimension(
        "relevance",
        "Does it keep to the question?",
        "是否切题？",
        topic=("no step and no sentence off the topic", "没有偏离主题的步骤或句子"),
        core=("the main point is found and answered", "抓住并回答了核心问题"),
        clarity=("not vague, too general or too detailed", "不含糊、不空泛、不过于冗细"),
    ),
    _make_dimension(
        "logic",
        "Does it hang together?",
        "逻辑是否自洽？",
        flow=("order, causes and references between steps are sound", "步骤的顺序、因果和引用合理"),
        reasoning=("no gap and no wrong inference", "没有推理漏洞或错误推断"),
        world=("in accord with how the world works", "符合客观规律"),
    ),
    _make_dimension(
        "fluency",
        "Is it well written?",
        "语言是否通顺？",
        structure=("clear sentences, right grammar, whole tags", "句子清晰，语法正确，标签完整"),
        concise=("no repetition and no wordiness", "没有重复和赘述"),
        idiom=("natural wording, in the question's language", "用语自然，与问题语言一致"),
    ),
    _make_dimension(
        "emotion",
        "Is the tone right?",
        "语气是否得当？",
        expectation=("the tone that a user expects here", "语气符合用户预期"),
        manners=("not blunt, indifferent or offensive", "不生硬、不冷漠、不冒犯"),
        context=("the tone fits the situation", "语气与情境相符"),
    ),
)
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
        ...


def join_inspections(name: str, parts: Sequence[Inspection]) -> Inspection:
    """Joins several judges' verdicts: unsound where one says so, sound where one can say."""
    aspects: dict[str, dict[str, Verdict]] = {}
    for dimension in FRAMEWORK:
        for aspect in dimension.aspects:
            verdicts = [part.aspects.get(dimension.name, {}).get(aspect) for part in parts]
            # Condemning wins over praising, and both over silence.
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
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MalformedSource(f"{file} cannot be read: {error}") from error
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

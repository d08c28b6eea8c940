"""The data evaluation framework: six dimensions, each with its aspects (KAG-Thinker App. 10).

A judge marks each aspect as sound or not, and leaves out what it cannot judge. A dimension is
bad as soon as one aspect is; it is good when all of them are. A model as the judge is asked once
for each dimension.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from osler.errors import BadRun, MalformedOutput, MalformedSource, read_text_file
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Completion, LanguageModel, Message
from osler.llm.core.grammar import Grammar, Node, alt, seq
from osler.llm.reading.verdicts import after_reasoning
from osler.prompts import render_prompt
from osler.text import language_of, read_packaged_table
from osler.trace import Run
from osler.types import Language, Usage
from osler_lab.evaluate.judges import REASONING, ask_judge, judge_sampling
from osler_lab.jobs.journal import LineFormat, append_line
from osler_lab.jobs.runner import Progress


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


LONGEST = 24_000
"""Characters of a transcript that are shown; of a longer one the middle is left out."""

_ASPECTS = re.compile(r"<aspects>([^<]*)", re.IGNORECASE)
_WORD = r"\W*(pass|fail)\b"
_LINES: LineFormat[Inspection] = LineFormat(Inspection, "not a verdict")


@dataclass(frozen=True)
class ModelInspector:
    """Model as judge: greedy, and held to the form where the model takes a grammar."""

    model: LanguageModel
    constrains: bool = False

    @property
    def name(self) -> str:
        return self.model.name

    async def inspect(self, item: QualityItem, run: Run) -> Inspection:
        """Makes six calls. A dimension whose verdict cannot be read is not decided."""
        aspects: dict[str, dict[str, Verdict]] = {}
        reasons: list[str] = []
        for dimension in FRAMEWORK:
            verdicts, why = await self._judge_dimension(item, dimension, run)
            aspects[dimension.name] = verdicts
            if bad := [name for name, verdict in verdicts.items() if verdict is False]:
                reasons.append(f"{dimension.name}.{bad[0]}: {why}")
        return Inspection(item.id, self.name, aspects, tuple(reasons))

    async def _judge_dimension(
        self, item: QualityItem, dimension: Dimension, run: Run
    ) -> tuple[dict[str, Verdict], str]:
        # One call per dimension: asked for all six at once, small models let one verdict colour the
        # rest.
        prompt = render_prompt(
            "train/inspect",
            item.language,
            dimension=dimension.name,
            about=dimension.about[item.language],
            question=item.question,
            golds=list(item.golds),
            transcript=shorten_text(item.transcript),
            aspects=[(name, wording[item.language]) for name, wording in dimension.aspects.items()],
        )

        def parse_verdicts(reply: Completion) -> tuple[dict[str, Verdict], str]:
            reason = " ".join(reply.text.partition("<aspects>")[0].split())
            return parse_aspects(reply.text, dimension), reason

        judge = Speaker(self.model, "judge", judge_sampling(), self.constrains)
        said = await ask_judge(
            judge, prompt, parse_verdicts, run, grammar=aspects_grammar(dimension)
        )
        return (dict.fromkeys(dimension.aspects), "") if said is None else said


@dataclass(frozen=True)
class InspectorChain:
    """Runs judges one after the other, and stops at the first that finds something bad."""

    parts: tuple[Inspector, ...]

    @property
    def name(self) -> str:
        return "+".join(part.name for part in self.parts)

    async def inspect(self, item: QualityItem, run: Run) -> Inspection:
        inspections: list[Inspection] = []
        for part in self.parts:
            inspections.append(await part.inspect(item, run))
            if inspections[-1].good is False:
                break
        return join_inspections(self.name, inspections)


def aspects_grammar(dimension: Dimension) -> Grammar:
    """Grammar of `<aspects>content pass, privacy fail</aspects>`, after some reasoning."""
    parts: list[Node | str] = []
    for name in dimension.aspects:
        parts += [", " if parts else "<aspects>", f"{name} ", alt("pass", "fail")]
    return Grammar("aspects", after_reasoning(seq(*parts, "</aspects>"), REASONING))


def parse_aspects(reply: str, dimension: Dimension) -> dict[str, Verdict]:
    """The last `<aspects>`, else the whole reply. Raises `MalformedOutput` unless every aspect
    has one verdict."""
    listed = (_ASPECTS.findall(reply) or [reply])[-1]
    verdicts: dict[str, Verdict] = {}
    for name in dimension.aspects:
        # A set: a verdict repeated in the same words is no contradiction.
        words = set(re.findall(rf"\b{name}\b{_WORD}", listed, re.IGNORECASE))
        if len(words) != 1:
            form = ", ".join(f"{aspect} pass" for aspect in dimension.aspects)
            raise MalformedOutput(reply, expected=f"<aspects>{form}</aspects>, pass or fail each")
        verdicts[name] = words.pop().casefold() == "pass"
    return verdicts


def shorten_text(text: str, longest: int = LONGEST) -> str:
    """Shortens a text to its beginning and end, at most `longest` characters."""
    if len(text) <= longest:
        return text
    # The plan stands at the beginning and the answer at the end; searches are between.
    half = longest // 2
    return f"{text[:half]}\n[…]\n{text[-half:]}"


@dataclass(frozen=True, slots=True)
class InspectionRun:
    """The verdicts in the order of the samples, and what the new ones cost."""

    found: tuple[Inspection, ...]
    new: int
    usage: Usage


async def inspect_all(
    items: Sequence[QualityItem],
    inspector: Inspector,
    keep: Path | None = None,
    progress: Progress | None = None,
) -> InspectionRun:
    """Inspects every sample; `keep` is the file of the verdicts, one per line.

    Samples are known by their id, so ids must differ. Raises `BadRun`.
    """
    ids = [item.id for item in items]
    if twice := {id for id in ids if ids.count(id) > 1} if len(set(ids)) < len(ids) else set():
        raise BadRun(f"several samples have the id {min(twice)!r}", fix="give each its own")
    known = (
        # Several judges may keep their verdicts in one file.
        {one.id: one for one in _read_inspections(keep) if one.judge == inspector.name}
        if keep
        else {}
    )
    new, usage = 0, Usage()
    for n, item in enumerate(items, 1):
        if item.id not in known:
            run = Run(id=f"inspect.{item.id}")
            # One after the other: each verdict is on disk before the next is paid for.
            known[item.id] = await inspector.inspect(item, run)
            usage += run.usage
            new += 1
            if keep is not None:
                append_line(keep, _LINES.encode_line(known[item.id]))
        if progress is not None:
            progress(f"inspected by {inspector.name}", n, len(items))
    return InspectionRun(tuple(known[id] for id in ids), new, usage)


def _read_inspections(path: Path) -> list[Inspection]:
    """Reads whole lines only. Raises `BadRun` naming file and line."""
    if not path.exists():
        return []
    lines = enumerate(path.read_bytes().split(b"\n")[:-1], 1)
    return [_LINES.decode_line(line, f"{path}:{number}") for number, line in lines]

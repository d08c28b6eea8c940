"""A model as the judge of training data: one call for each dimension (KAG-Thinker App. 10)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from osler.errors import BadRun, MalformedOutput
from osler.llm.core.base import Completion, LanguageModel
from osler.llm.core.grammar import Grammar, Node, alt, seq
from osler.llm.core.speaker import Speaker
from osler.llm.reading.verdicts import after_reasoning
from osler.prompts import render_prompt
from osler.trace import Run
from osler.types import Usage
from osler_lab.evaluate.judging import ask_judge, judge_sampling
from osler_lab.jobs.journal import LineFormat, append_line
from osler_lab.jobs.runner import Progress
from osler_lab.train.thinker.quality import (
    FRAMEWORK,
    Dimension,
    Inspection,
    Inspector,
    QualityItem,
    Verdict,
    join_inspections,
)

REASONING = 400
"""Characters that the judge may reason, under a grammar."""
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
            if False in verdicts.values():
                reasons.append(f"{_first_bad(dimension.name, verdicts)}: {why}")
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
            return parse_aspects(reply.text, dimension), _read_reason(reply.text)

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


def _read_reason(reply: str) -> str:
    return " ".join(reply.partition("<aspects>")[0].split())


def _first_bad(dimension: str, verdicts: dict[str, Verdict]) -> str:
    return f"{dimension}.{next(name for name, verdict in verdicts.items() if verdict is False)}"


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

"""Judgements over a log folder: made once, kept beside the records, and paid for.

    judgements-WRITER.jsonl    one line a judgement; only its writer appends to it

| Form | Judges | Gives |
|---|---|---|
| rubric | each long answer against its reference (Omni-RAG E.12) | four marks, 1 to 5 |
| correct | each worded answer against its gold (KAG-Thinker Table 8) | 0 or 1 |
| stability | two runs that differ in their seed alone (KAG-Thinker §4.4) | 0 or 1 |
| luq | the answers of two seeds or more (Omni-RAG A.3) | uncertainty, 0 to 1 |
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from osler.errors import BadRun
from osler.text import split_sentences
from osler.trace import Asked, Run
from osler.types import Usage
from osler_lab.evaluate.judges import Judge, process_of_events
from osler_lab.evaluate.log import read_records, read_trace
from osler_lab.evaluate.measures import answer_text
from osler_lab.evaluate.metrics.choice import Entailment, luq
from osler_lab.evaluate.plan import read_plan
from osler_lab.evaluate.record import SampleKey, SampleRecord
from osler_lab.jobs.journal import LineFormat, append_line, writer_name

Form = Literal["rubric", "correct", "stability", "luq"]
FORMS: tuple[Form, ...] = get_args(Form)
FILES = "judgements-"
SEEDED: tuple[Form, ...] = ("stability", "luq")
"""Forms that compare runs which differ in their seed alone."""

# A label is `strategy:setting=value:…`; the seed is taken out wherever it stands.
_SEED = re.compile(r":sampling\.seed=\d+")


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict of a judge on one answer, or on several answers together."""

    form: Form
    judge: str
    """The model's identity."""
    key: SampleKey
    """Key of the answer; for the seeded forms the strategy's label is without its seed."""
    values: dict[str, float]
    """Empty where the verdict could not be read; `alike` needs no judge."""
    prompts: tuple[str, ...]
    usage: Usage
    when: str
    """ISO 8601, UTC."""
    of: int = 1
    """Answers that were judged together."""

    @property
    def is_read(self) -> bool:
        """Whether the judge's verdict could be read."""
        return bool(self.values.keys() - {"alike"})

    @property
    def identity(self) -> tuple[Form, str, SampleKey, int]:
        return self.form, self.judge, self.key, self.of


@dataclass
class JudgingRun:
    """Judges a log folder with one judge; earlier judgements are not repeated."""

    folder: Path
    form: Form
    judge: Judge
    limit: int | None = None
    """Number of groups of each strategy and task, in the order of the ids."""

    async def run(self) -> AsyncIterator[Judgement]:
        """Each new judgement, once it is written down. Raises `BadRun` where nothing can be judged
        so, and what the model raises."""
        known = {one.identity for one in read_judgements(self.folder)}
        groups = list(_take_first(_judging_groups(self.folder, self.form), self.limit))
        if not groups:
            raise BadRun(
                f"{self.folder} holds nothing to judge by {self.form}", fix=_NEEDS[self.form]
            )
        path = self.folder / f"{FILES}{writer_name()}.jsonl"
        for key, records in groups:
            # The number of answers is a part of the identity: a third seed makes a new LUQ
            # judgement.
            if (self.form, self.judge.model.name, key, len(records)) in known:
                continue
            judgement = await judge_group(self.folder, self.form, self.judge, key, records)
            append_line(path, _LINES.encode_line(judgement))
            yield judgement


_NEEDS: dict[Form, str] = {
    "rubric": "it rates answers to questions with a reference text (kind long)",
    "correct": "it grades worded answers (kinds short and long)",
    "stability": 'run a strategy twice, as "rag:sampling.seed=1" and "rag:sampling.seed=2"',
    "luq": 'run a strategy under several seeds, as "rag:sampling.seed=1", at a temperature of 0.7',
}

Group = tuple[SampleKey, tuple[SampleRecord, ...]]


def _judging_groups(folder: Path, form: Form) -> Iterator[Group]:
    """Groups answers to judge together: single ones, or those that differ in their seed alone."""
    # Grouping by settings, not by labels: two labels may differ in more than the seed.
    labels = _labels_without_seed(folder) if form in SEEDED else {}
    groups: dict[SampleKey, list[SampleRecord]] = defaultdict(list)
    for record in read_records(folder):
        if record.status == "done" and _applies(form, record):
            label = labels.get(record.strategy, record.strategy)
            groups[record.key._replace(strategy=label)].append(record)
    for key in sorted(groups):
        records = tuple(sorted(groups[key], key=lambda record: record.strategy))
        if form not in SEEDED:
            yield key, records
        elif len(records) > 1:
            # Stability compares two runs (KAG-Thinker §4.4); LUQ takes all there are (Omni-RAG
            # A.3).
            yield key, records[:2] if form == "stability" else records


def _applies(form: Form, record: SampleRecord) -> bool:
    kind, gold = record.sample.kind, record.sample.gold.texts
    match form:
        case "rubric":
            return kind == "long" and bool(gold)
        case "correct":
            return kind in ("short", "long") and bool(gold)
        case "luq":
            return bool(answer_text(record).strip())
        case "stability":
            return record.trace is not None


def _labels_without_seed(folder: Path) -> dict[str, str]:
    """Maps labels to labels without the seed, for strategies that differ in nothing else."""
    alike: dict[str, list[str]] = defaultdict(list)
    for label, entrant in read_plan(folder).entrants.items():
        settings = dict(entrant.settings)
        if isinstance(settings.get("sampling"), dict):
            settings["sampling"] = {k: v for k, v in settings["sampling"].items() if k != "seed"}
        alike[json.dumps(settings, sort_keys=True)].append(label)
    return {label: _SEED.sub("", labels[0]) for labels in alike.values() for label in labels}


def _take_first(groups: Iterator[Group], limit: int | None) -> Iterator[Group]:
    taken: dict[tuple[str, str], int] = defaultdict(int)
    for key, records in groups:
        taken[key[:2]] += 1
        if limit is None or taken[key[:2]] <= limit:
            yield key, records


async def judge_group(
    folder: Path, form: Form, judge: Judge, key: SampleKey, records: Sequence[SampleRecord]
) -> Judgement:
    """Makes one judgement, with its cost."""
    run = Run(id=f"{form}.{'.'.join(key)}")
    match form:
        case "rubric":
            values = await _rate_answer(judge, records[0], run)
        case "correct":
            values = await _grade_answer(judge, records[0], run)
        case "stability":
            values = await _judge_stability(folder, judge, records, run)
        case "luq":
            values = await _judge_uncertainty(judge, records, run)
    prompts = sorted({event.prompt for event in run.events if isinstance(event, Asked)})
    when = datetime.now(UTC).isoformat(timespec="milliseconds")
    name = judge.model.name
    return Judgement(form, name, key, values, tuple(prompts), run.usage, when, len(records))


async def _rate_answer(judge: Judge, record: SampleRecord, run: Run) -> dict[str, float]:
    question, gold = record.sample.question, record.sample.gold
    documents = [f"{cited.title}: {cited.quote}" for cited in record.outcome.evidence]
    answer = answer_text(record)
    marks = await judge.give_marks(question, gold.texts[0], answer, documents, run)
    return {name: float(mark) for name, mark in (marks or {}).items()}


async def _grade_answer(judge: Judge, record: SampleRecord, run: Run) -> dict[str, float]:
    question, gold = record.sample.question, record.sample.gold
    right = await judge.is_right(question, gold.texts, answer_text(record), run)
    return {} if right is None else {"correct": float(right)}


async def _judge_stability(
    folder: Path, judge: Judge, records: Sequence[SampleRecord], run: Run
) -> dict[str, float]:
    first, second = (
        process_of_events(
            read_trace(folder, record.trace) if record.trace else (),
            record.outcome.option or "",
            answer_text(record),
        )
        for record in records
    )
    question = records[0].sample.question
    stable = await judge.is_consistent(question, first.text, second.text, run)
    alike = {"alike": float(first.shape == second.shape)}
    return alike if stable is None else {"stable": float(stable), **alike}


async def _judge_uncertainty(
    judge: Judge, records: Sequence[SampleRecord], run: Run
) -> dict[str, float]:
    """Scores each sentence of each answer against every other answer."""
    texts = [answer_text(record) for record in records]
    language = records[0].sample.question.language
    scores: list[list[list[Entailment | None]]] = []
    for i, text in enumerate(texts):
        rows: list[list[Entailment | None]] = []
        for start, end in split_sentences(text):
            row = [
                None
                if j == i
                else await judge.score_entailment(other, text[start:end], run, language)
                for j, other in enumerate(texts)
            ]
            # One unreadable verdict makes the mean one over fewer terms: better none at all.
            if any(one is None for j, one in enumerate(row) if j != i):
                return {}
            rows.append(row)
        scores.append(rows)
    return {"uncertainty": luq(scores)}


_LINES: LineFormat[Judgement] = LineFormat(Judgement, "not a judgement")


def read_judgements(folder: Path) -> list[Judgement]:
    """The newest of each identity. Half a line at the end is none. Raises `BadRun` naming file and
    line for a damaged one."""
    newest: dict[tuple[Form, str, SampleKey, int], Judgement] = {}
    for path in sorted(folder.glob(f"{FILES}*.jsonl")):
        for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
            judgement = _LINES.decode_line(line, f"{path}:{number}")
            known = newest.get(judgement.identity)
            if known is None or known.when <= judgement.when:
                newest[judgement.identity] = judgement
    return list(newest.values())

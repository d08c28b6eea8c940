"""A sample, and the record of trying it: the checkpoint, and all that a report needs.

Solvers take `Sample.question`. The gold answer stands beside it, never inside it, so that
no code path can hand it on with the question.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest
from typing import Any, Literal, NamedTuple, get_args

from osler.errors import BadRun
from osler.methods.tcrag.stack import mean_token_probability
from osler.trace import (
    Asked,
    Event,
    FormSolved,
    PassagesOrdered,
    Retrieved,
    Run,
    Searched,
    StateValued,
)
from osler.types import DecidedBy, Evidence, Question, Solution, Usage
from osler_lab.evaluate.searches import RecordedDocument, SearchNotes
from osler_lab.jobs.journal import LineFormat

Kind = Literal["choice", "choices", "short", "long"]
"""Kinds of answer: an option; a set of options; a few words; a text."""
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Gold:
    """Right answers, as far as the data says."""

    letters: tuple[str, ...] = ()
    """Letters of the right options, in the order of the question."""
    texts: tuple[str, ...] = ()
    """Accepted answers (`short`), or reference texts (`long`); any one of them is right."""
    support: tuple[str, ...] = ()
    """Titles or addresses of the documents that the answer rests on."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Item of a data set: a question with its gold answer."""

    task: str
    kind: Kind
    question: Question
    gold: Gold
    tags: tuple[tuple[str, str], ...] = ()
    """Further properties in the data: subject, class, type, level."""

    @property
    def id(self) -> str:
        return self.question.id

    def tag_value(self, name: str) -> str:
        """The tag's value; "" if absent."""
        return dict(self.tags).get(name, "")


Status = Literal["done", "failed"]


class SampleKey(NamedTuple):
    """Key of a sample under one strategy."""

    strategy: str
    task: str
    id: str


@dataclass(frozen=True, slots=True)
class RecordedStatement:
    """Statement of an answer, with the numbers it cites."""

    text: str
    cites: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedEvidence:
    """Piece of evidence: its passage and the quoted words."""

    passage: str
    title: str
    code: str
    quote: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class RecordedOutcome:
    """Outcome of a solver: answer, evidence, cost and how it halted."""

    option: str | None = None
    text: str = ""
    grounding: str = ""
    halt: str = ""
    why: str = ""
    statements: tuple[RecordedStatement, ...] = ()
    evidence: tuple[RecordedEvidence, ...] = ()
    retrieved: tuple[str, ...] = ()
    """See `found_of`."""
    prompts: tuple[str, ...] = ()
    """Identities of the wordings that were used."""
    confidence: float | None = None
    """0 to 1, where the strategy has one; see `confidence_of`."""
    usage: Usage = field(default_factory=Usage)
    documents: tuple[RecordedDocument, ...] = ()
    """Documents of `retrieved`, in its order; empty in a log that does not have them."""
    search_s: float | None = None
    """Seconds with a search under way; `None` where nothing was searched, or nobody watched."""
    accelerators: int = 0
    """Accelerators that the models ran on; 0 = none, or not known."""
    decided: str = ""
    """Who decided (`osler.types.DecidedBy`); empty in older logs."""
    sureness: float | None = None
    """Calibrated probability of the answer's expert, 0 to 1; `None` where nothing can say."""


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """Place of a run's events: a file of the log folder and a range of bytes."""

    file: str
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """Record of a try. The newest of a key counts, but a failed one never hides a done one."""

    strategy: str
    sample: Sample
    status: Status
    when: str
    """ISO 8601, UTC."""
    seconds: float
    """Wall clock."""
    seed: int
    outcome: RecordedOutcome = field(default_factory=RecordedOutcome)
    error: str = ""
    """Error with its type; empty when it is done."""
    trace: TraceSpan | None = None
    tape: str = ""
    """Name of the run below `runs/` of the log folder that can be replayed; empty = not kept."""

    @property
    def is_undecided(self) -> bool:
        """Whether a reader answered in the stead of a method without a decision."""
        return self.outcome.decided == DecidedBy.FALLBACK

    @property
    def key(self) -> SampleKey:
        return SampleKey(self.strategy, self.sample.task, self.sample.id)


def outcome_of(
    solution: Solution, run: Run, notes: SearchNotes | None = None, accelerators: int = 0
) -> RecordedOutcome:
    """Extracts from a finished run all that a report needs."""
    # Measures compare the words of the method, not those about them.
    claims = tuple(replace(one, kind="claim") for one in solution.answer.claims)
    answer, found = replace(solution.answer, statements=claims), found_of(run.events)
    known = notes.documents if notes else {}
    asked = {e.prompt for e in run.events if isinstance(e, Asked) and "@" in e.prompt}
    return RecordedOutcome(
        answer.option,
        answer.text,
        str(answer.grounding),
        str(solution.halt),
        solution.why,
        tuple(RecordedStatement(s.text, s.cites) for s in answer.statements),
        tuple(map(_record_evidence, answer.evidence)),
        found,
        tuple(sorted(asked)),
        confidence_of(run),
        run.usage,
        tuple(known.get(id, RecordedDocument()) for id in found) if known else (),
        round(notes.seconds, 4) if notes and known else None,
        accelerators,
        str(solution.decided),
        answer.sureness.probability if answer.sureness else None,
    )


def found_of(events: Iterable[Event]) -> tuple[str, ...]:
    """Ids of the passages that were found, in the order in which they were first found.

    Searches that were made together, as those of one source plan, stand in the single ranking in
    which they were read; what was not read, or where there is no such order, takes turns rank by
    rank: which of the searches stands first in the trace says nothing about its passages.
    """
    done = (e for e in events if not isinstance(e, Searched))
    passages: dict[str, None] = {}
    latest: dict[str, None] = {}
    # Neighbouring `Retrieved` events are one round of searches; anything between them ends it.
    for kind, group in groupby(done, key=type):
        if kind is Retrieved:
            lists = [[note.passage for note in e.hits] for e in group if isinstance(e, Retrieved)]
            passages |= latest
            latest = dict.fromkeys(p for row in zip_longest(*lists) for p in row if p is not None)
        elif kind is PassagesOrdered:
            read = [p for e in group if isinstance(e, PassagesOrdered) for p in e.passages]
            latest = dict.fromkeys((*read, *latest))
    return tuple(passages | latest)


def confidence_of(run: Run) -> float | None:
    """Confidence of the strategy, 0 to 1; `None` where it has no such value.

    Where a question is taken apart, that of its least confident step; else TC-RAG's last cppl as
    the mean probability of a token.
    """
    steps = [e.confidence for e in run.events if isinstance(e, FormSolved)]
    known = [value for value in steps if value is not None]
    # A chain is as sure as its weakest link (KAG-Thinker has one value per sub-problem).
    if known:
        return min(known)
    valued = [e for e in run.events if isinstance(e, StateValued)]
    values = [mean_token_probability(e.metric, e.value) for e in valued if e.metric == "cppl"]
    return values[-1] if values else None


def _record_evidence(evidence: Evidence) -> RecordedEvidence:
    passage = evidence.passage
    locator = passage.locator
    return RecordedEvidence(passage.id, passage.title, locator.code, evidence.quote, locator.url)


RECORD_LINES: LineFormat[SampleRecord] = LineFormat(SampleRecord, "not a record")


def key_of(line: bytes, place: str) -> tuple[SampleKey, Status]:
    """The key and status alone, which is all that resuming needs.

    Raises `BadRun` naming the place of the line.
    """
    try:
        # Plain JSON, not the adapter: resuming a log of 100,000 records must not validate each.
        record: Mapping[str, Any] = json.loads(line)
        sample = record["sample"]
        key = SampleKey(record["strategy"], sample["task"], sample["question"]["id"])
        return key, record["status"]
    except (ValueError, KeyError, TypeError) as error:
        fix = "remove that line, or the file"
        raise BadRun(f"{place}: not a record: {error!r}", fix=fix) from error

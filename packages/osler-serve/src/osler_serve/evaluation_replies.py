"""Replies on evaluations, with the report's own figures; on feedback, studies and examples."""

from __future__ import annotations

from typing import Literal

from osler.reports import ResponseModel


class FigureView(ResponseModel):
    value: float
    low: float
    """Ends of the 95 % interval."""
    high: float
    n: int


class EvaluationMeasure(ResponseModel):
    name: str
    title: str
    percent: bool
    """Whether it is a share, to be shown times 100."""
    means: dict[str, float | None]
    """Strategy to the mean over tasks, each counting the same; `null` unless all have it."""


class EvaluationCell(ResponseModel):
    """One strategy on one task."""

    strategy: str
    task: str
    planned: int
    done: int
    failed: int
    missing: int
    figures: dict[str, FigureView]
    """By the name of the measure."""
    calibration_error: float | None


class EvaluationPair(ResponseModel):
    """Two strategies on the same samples; `change` is second minus first."""

    task: str
    first: str
    second: str
    measure: str
    change: FigureView
    test: str
    p: float
    corrected: float
    verdict: str
    unpaired: int


class EvaluationPrinted(ResponseModel):
    """A number of a paper beside ours; `theirs` in percent, as it is printed."""

    place: str
    task: str
    strategy: str
    theirs: float
    ours: FigureView
    differs: str


class EvaluationJudged(ResponseModel):
    form: str
    judge: str
    strategy: str
    task: str
    figures: dict[str, FigureView]
    unread: int


class EvaluationView(ResponseModel):
    """The report of one log folder."""

    name: str
    head: str
    """How the figures are to be read."""
    strategies: list[str]
    tasks: list[str]
    measures: list[EvaluationMeasure]
    cells: list[EvaluationCell]
    compared: list[EvaluationPair]
    printed: list[EvaluationPrinted]
    judged: list[EvaluationJudged]
    left_out: list[str]
    facts: list[tuple[str, str]]


class EvaluationSummary(ResponseModel):
    name: str
    experiment: str
    version: str
    """Of Osler."""
    strategies: list[str]
    tasks: list[str]
    damaged: str
    """What is wrong with it; empty where nothing is."""


class EvaluationList(ResponseModel):
    evaluations: list[EvaluationSummary]


class EvaluationSample(ResponseModel):
    strategy: str
    task: str
    id: str
    question: str
    options: list[str]
    gold: str
    answer: str
    score: float | None
    """By the task's first measure; `null` for one that failed."""
    why: str


class EvaluationSampleList(ResponseModel):
    samples: list[EvaluationSample]
    """Those that failed, then the worst answers; not all of a large log."""


class ExampleView(ResponseModel):
    question: str
    options: list[str]
    language: Literal["en", "zh"]


class ExampleList(ResponseModel):
    examples: list[ExampleView]
    """Questions that come with the sample texts; none where those are not in the knowledge base."""


class FeedbackView(ResponseModel):
    kind: Literal["run", "card"]
    about: str
    """Id of a run, or the UUID of a card."""
    verdict: Literal["helpful", "wrong", "unsafe", "accepted", "overridden"]
    reason: str
    note: str
    where: str
    at: str


class FeedbackList(ResponseModel):
    feedback: list[FeedbackView]
    """The newest first."""


class StudyRowView(ResponseModel):
    """What one study behind an answer states; each value is a quote, "" where it states none."""

    title: str
    year: int | None
    design: str
    n: str
    measure: str
    value: str
    unit: str
    low: str
    high: str
    hints: str
    quote: str
    passage: str


class StudyTable(ResponseModel):
    rows: list[StudyRowView]

"""A home of its own for each test, a way to call `osler`, and runs made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from typer.testing import CliRunner

from osler.cli import app
from osler.trace import (
    Answered,
    Asked,
    Budget,
    Event,
    HitNote,
    Noted,
    PlannedQuery,
    Popped,
    Pushed,
    Retrieved,
    Searched,
    SourcesPlanned,
    Started,
    StateValued,
    to_line,
)
from osler.types import (
    Answer,
    Evidence,
    Halt,
    Hit,
    Locator,
    Passage,
    Question,
    Solution,
    Statement,
    Usage,
)


class Called(Protocol):
    """What a call of `osler` gave."""

    @property
    def exit_code(self) -> int: ...
    @property
    def stdout(self) -> str: ...
    @property
    def stderr(self) -> str: ...


Call = Callable[..., Called]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The working folder of the test; home lies beside it."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home" / "data"))
    monkeypatch.setenv("OSLER__HOME", str(tmp_path / "osler"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def osler() -> Call:
    """Calls the real program in this process."""

    def call(*args: str, stdin: str | bytes | None = None) -> Called:
        return CliRunner().invoke(app, [*args], input=stdin, catch_exceptions=False)

    return call


TEXT = (
    "Anaphylaxis is a medical emergency. Give adrenaline into the outer thigh at once;"
    " repeat after five minutes if there is no response. Lay the patient flat."
)
QUOTE = "Give adrenaline into the outer thigh at once; repeat after five minutes"


@pytest.fixture
def passage() -> Passage:
    return Passage(
        id="guideline:anaphylaxis#2",
        text=TEXT,
        source="guideline",
        title="Anaphylaxis",
        locator=Locator(section="First minutes", page=3, year=2021),
        licence="CC-BY-4.0",
        illustrative=True,
    )


@pytest.fixture
def question() -> Question:
    return Question("q1", "What is given first in anaphylaxis?")


@pytest.fixture
def solution(passage: Passage) -> Solution:
    start = TEXT.index(QUOTE)
    hit = Hit(passage, 0.83, 1, "anaphylaxis first drug", "guideline")
    answer = Answer(
        statements=(Statement(f"{QUOTE}.", (1,)),),
        evidence=(Evidence(hit, start, start + len(QUOTE), "answer"),),
    )
    usage = Usage(7, 1500, 120, 300, 45, 2, 3.25)
    return Solution(answer, Halt.CONVERGED, "cppl 7.41 < sigma 10", usage)


@pytest.fixture
def abstention() -> Solution:
    return Solution(Answer(), Halt.NO_EVIDENCE, "nothing relevant was found", Usage(2, 300, 12))


@pytest.fixture
def stack_events(question: Question, solution: Solution) -> tuple[Event, ...]:
    """A run of TC-RAG with every kind of line that a film has."""
    usage = Usage(1, 200, 20)
    return (
        Started("r1", "tc-rag", question, "5f2a", {"reader": "m"}, 0, Budget(calls=9)),
        Pushed(0, "User_Query", question.text, 1),
        Asked("controller", "complete", "tcrag/act@1f3a", "Tool_Use: DOC_RAG", usage),
        Searched("anaphylaxis first drug", 4, ("book", "guideline")),
        Retrieved(
            "anaphylaxis first drug",
            (HitNote("guideline:anaphylaxis#2", 0.83, 1), HitNote("book:shock#0", 0.5, 2)),
            ("wiki: index is missing",),
        ),
        Pushed(1, "Tool_Observation", f"DOC_RAG: {TEXT}", 2),
        Popped(2, "Tool_Observation", "Backtrack", 1, None, "it is about shock"),
        StateValued(3, "cppl", 12.34, 10.0, False),
        Pushed(3, "Thought", "Adrenaline is likely.\nIt must be checked.", 2),
        Popped(4, "", "Backtrack", 1, None, "nothing left"),
        Asked("controller", "complete", "tcrag/act@1f3a", "Conclusion: x", usage, "no action"),
        Noted("the evidence in memory does not answer the question"),
        StateValued(5, "uct", 7.41, 10.0, True, "top 1 of 20"),
        Pushed(5, "Conclusion", QUOTE, 2),
        Answered(solution),
    )


@pytest.fixture
def noted_events(question: Question, solution: Solution) -> tuple[Event, ...]:
    """A run whose planner may not word medicine: its answer is composed of quotes."""
    notes_of = ("planner", "summariser", "reader")
    return (
        Started("r3", "tc-rag", question, "5f2a", {"planner": "m"}, 0, Budget(), notes_of=notes_of),
        Pushed(0, "User_Query", question.text, 1),
        Asked("planner", "complete", "tcrag/act@1f3a", "Thought: first-line", Usage(1, 200, 20)),
        Searched("which drug", 4, ("book",)),
        StateValued(1, "cppl", 12.34, 10.0, False),
        Pushed(1, "Thought", "first-line treatment is a monoclonal antibody", 2, "planner"),
        Pushed(2, "Tool_Observation", f"DOC_RAG: {TEXT}", 3),
        Popped(3, "Tool_Observation", "Backtrack", 2, 12.34, "give aspirin"),
        StateValued(4, "cppl", 7.41, 10.0, True, "of the composed answer"),
        Pushed(4, "Conclusion", QUOTE, 3, "", "DOC_RAG"),
        Answered(solution),
    )


@pytest.fixture
def plain_events(question: Question, solution: Solution) -> tuple[Event, ...]:
    """A run of a strategy without a stack."""
    return (
        Started("r2", "rag", question, "5f2a", {"reader": "m"}, 3, Budget()),
        SourcesPlanned(
            (
                PlannedQuery("book", 0, "anaphylaxis"),
                PlannedQuery("book", 1, "adrenaline"),
                PlannedQuery("wiki", 0, "anaphylaxis"),
            ),
            "fixed",
        ),
        Searched("anaphylaxis", 4, ()),
        Retrieved("anaphylaxis", ()),
        Asked("reader", "score", "cppl", "", Usage(1, 0, 0, 0, 45)),
        Asked("reader", "complete", "baselines/read@9c", "肾上腺素。", Usage(1, 1200, 30)),
        Answered(solution),
    )


@pytest.fixture
def keep(tmp_path: Path) -> Callable[..., Path]:
    """Puts a run's events where `osler` keeps runs."""

    def keep(id: str, events: tuple[Event, ...]) -> Path:
        run = tmp_path / "osler" / "runs" / id
        run.mkdir(parents=True)
        log = run / "events.jsonl"
        log.write_text("".join(f"{to_line(event)}\n" for event in events), encoding="utf-8")
        return run

    return keep

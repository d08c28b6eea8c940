"""How many passages a run read, of those that its searches found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from osler.cli.render import RunPage, how_lines
from osler.trace import (
    Event,
    HitNote,
    Noted,
    PassagesOrdered,
    PlanScored,
    Pushed,
    Retrieved,
    Searched,
    SourcesPlanned,
    list_read_passages,
)
from osler.types import Question

STARTED, THOUGHT = Searched("q", 10, ()), Pushed(1, "Observation", "seen", 2)
PLANNED = SourcesPlanned((), "planner")


def found(*ids: str) -> Retrieved:
    return Retrieved("q", tuple(HitNote(id, 1.0, rank) for rank, id in enumerate(ids, 1)))


def test_a_search_by_itself_is_read_whole_and_a_passage_counts_once() -> None:
    events: list[Event] = [STARTED, found("a", "b"), THOUGHT, STARTED, found("b", "c")]
    assert list_read_passages(events) == ("a", "b", "c")


def test_of_the_searches_of_a_plan_that_is_read_which_was_ordered() -> None:
    plan: list[Event] = [PLANNED, STARTED, STARTED, found("a", "b"), found("c")]
    cut = Noted("1 of 3 queries were not asked")
    assert list_read_passages([*plan, cut, PassagesOrdered(("c", "a"))]) == ("c", "a")
    before: list[Event] = [STARTED, found("z"), THOUGHT]
    assert list_read_passages([*before, *plan, PassagesOrdered(("c",))]) == ("z", "c")


def test_what_a_planner_tried_is_not_read_unless_it_is_in_the_order() -> None:
    tried: list[Event] = [STARTED, found("a", "b"), PlanScored("", 1, 0, (), 3, "more")]
    events = [*tried, STARTED, found("c", "d"), PLANNED, PassagesOrdered(("c", "a"))]
    assert list_read_passages(events) == ("c", "a")


def footer(events: Sequence[Event]) -> str:
    page = RunPage("r1", "omni-rag", "", {}, None, events, Question("q", "Why?"))
    console = Console(width=200)
    with console.capture() as seen:
        console.print(*how_lines(replace(page, kept=False)))
    return seen.get()


def test_the_line_below_an_answer_counts_what_was_read() -> None:
    ids = [f"{source}:{n}" for source in ("book", "wiki", "graph") for n in range(27)]
    events: list[Event] = [STARTED, found(*ids), PassagesOrdered(tuple(ids[:30]))]
    assert "30 passages of book, wiki read" in footer(events)

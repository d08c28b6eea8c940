"""The event log: every event survives it, and nothing else gets in."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from osler.errors import BadRun
from osler.trace import (
    Asked,
    Budget,
    Event,
    HitNote,
    Noted,
    PlannedQuery,
    Popped,
    Pushed,
    Retrieved,
    Run,
    RunCancelled,
    Searched,
    SourcesPlanned,
    Started,
    StateValued,
    from_line,
    read_events,
    to_line,
)
from osler.types import Question, Usage

TEXT = st.text(max_size=30)
REAL = st.floats(-1e9, 1e9, allow_nan=False)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        Started,
        TEXT,
        TEXT,
        st.builds(Question, TEXT, TEXT, st.lists(TEXT).map(tuple), st.sampled_from(["en", "zh"])),
        TEXT,
        st.dictionaries(TEXT, TEXT, max_size=2),
        st.integers(0, 9),
        st.builds(Budget, st.none() | st.integers(1, 9)),
        st.just(1),
    ),
    st.builds(
        SourcesPlanned,
        st.lists(st.builds(PlannedQuery, TEXT, st.integers(0, 2), TEXT)).map(tuple),
        st.sampled_from(["planner", "user", "fixed"]),
    ),
    st.builds(Searched, TEXT, st.integers(1, 9), st.lists(TEXT).map(tuple)),
    st.builds(
        Retrieved,
        TEXT,
        st.lists(st.builds(HitNote, TEXT, REAL, st.integers(1, 9))).map(tuple),
        st.lists(TEXT).map(tuple),
    ),
    st.builds(Pushed, st.integers(0, 9), TEXT, TEXT, st.integers(1, 9)),
    st.builds(
        Popped,
        st.integers(0, 9),
        TEXT,
        st.sampled_from(["Backtrack", "Summary"]),
        st.integers(1, 9),
        st.none() | REAL,
        TEXT,
    ),
    st.builds(StateValued, st.integers(0, 9), TEXT, REAL, REAL, st.booleans(), TEXT),
    st.builds(
        Asked,
        TEXT,
        st.sampled_from(["complete", "score"]),
        TEXT,
        TEXT,
        st.builds(Usage),
        thinking=TEXT,
    ),
    st.builds(Noted, TEXT),
)


@given(EVENTS)
@example(Noted("one\u2028two\u2029three\x85four\r\n"))
def test_an_event_is_one_line_and_comes_back_equal(event: Event) -> None:
    line = to_line(event)
    assert line.splitlines() == [line], "as httpx and other readers of streams divide them"
    assert from_line(line) == event
    assert to_line(from_line(line)) == line


@pytest.mark.parametrize(
    "line", ["", "{}", '{"type":"run.note"}', '{"type":"nonsense"}', "[1]", "{" * 500]
)
def test_a_line_that_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(BadRun, match="not an event"):
        from_line(line)


def test_a_damaged_log_names_the_file_and_the_line(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text(to_line(Noted("fine")) + "\nbroken\n", encoding="utf-8")
    with pytest.raises(BadRun, match=r"events\.jsonl:2: not an event"):
        list(read_events(log))


def test_a_sink_sees_each_event_as_it_happens() -> None:
    seen: list[Event] = []
    run = Run(sink=seen.append)
    run.emit(Noted("one"))
    assert seen == run.events == [Noted("one")]


def test_a_cancelled_run_emits_no_further_event() -> None:
    run = Run()
    run.cancel()
    with pytest.raises(RunCancelled):
        run.emit(Noted("late"))
    assert run.events == []


def test_the_same_seed_gives_the_same_chances() -> None:
    assert Run(seed=7).rng.random() == Run(seed=7).rng.random()


def test_a_budget_says_which_bound_is_reached() -> None:
    run = Run(budget=Budget(calls=2, searches=1))
    assert run.exhausted_bound is None
    run.spend(Usage(searches=1))
    assert run.exhausted_bound == "searches 1 of 1"


def test_an_event_from_before_thinking_was_told_apart_still_loads() -> None:
    line = (
        '{"role":"reader","kind":"complete","prompt":"p","reply":"B","usage":{"calls":1},'
        '"repaired":"","type":"model.asked"}'
    )
    event = from_line(line)
    assert isinstance(event, Asked)
    assert event.thinking == ""


def test_a_state_value_of_an_older_run_is_read() -> None:
    """It also said whether the value was exact; all are."""
    older = '{"i":1,"metric":"uct","value":2.5,"sigma":20.0,"exact":true,"halted":true,"note":"",'
    found = from_line(f'{older}"type":"state.updated"}}')
    assert found == StateValued(1, "uct", 2.5, 20.0, halted=True)

"""What a model wrote that may not word medicine can be told from everything else."""

import pytest

from osler.trace import (
    Asked,
    BoundaryChecked,
    Budget,
    Event,
    Focused,
    FormSolved,
    Popped,
    Pushed,
    Started,
    from_line,
    split_note,
    to_line,
)
from osler.types import Question, Usage

ROLES = ("planner", "summariser", "reader")
USAGE = Usage()
BABBLE = "give aspirin"


@pytest.mark.parametrize(
    "event",
    [
        Pushed(1, "Thought", BABBLE, 2, "planner"),
        Pushed(1, "Summary", BABBLE, 2, "summariser"),
        Pushed(1, "Tool_Observation", BABBLE, 2, "planner"),
        Pushed(1, "Conclusion", "a quote", 2, "", BABBLE),
        Popped(2, "Thought", "Backtrack", 1, None, BABBLE),
        Asked("planner", "complete", "tcrag/act@1", BABBLE, USAGE),
        Asked("helper", "complete", "tcrag/hypothesis@1", BABBLE, USAGE),
        BoundaryChecked(1, "Which drug?", BABBLE, True, None, 0.9, 0.5),
        Focused(1, 1, True, BABBLE),
        FormSolved(1, "done", BABBLE, own_knowledge=True),
    ],
)
def test_the_note_of_an_event_is_taken_out_of_it(event: Event) -> None:
    bare, note = split_note(event, ROLES)
    assert note == BABBLE
    assert BABBLE not in to_line(bare)
    assert split_note(event, ()) == (event, "")


@pytest.mark.parametrize(
    "event",
    [
        Pushed(0, "User_Query", "Which drug?", 1),
        Pushed(1, "Tool_Observation", "DOC_RAG: [1] a passage", 2),
        Pushed(0, "Thought", "Earlier steps have found: a quote", 2),
        Pushed(1, "Conclusion", "a quote", 2),
        Asked("monitor", "score", "cppl", "a quote", USAGE),
        FormSolved(1, "done", "a quote", passages=("book:a#0",)),
    ],
)
def test_evidence_and_questions_are_no_notes(event: Event) -> None:
    assert split_note(event, ROLES) == (event, "")


def test_a_complaint_quotes_the_reply_before_and_is_folded_with_it() -> None:
    asked = Asked("planner", "complete", "p", "Thought: x", USAGE, f"got {BABBLE!r}", "hm")
    bare, note = split_note(asked, ROLES)
    assert isinstance(bare, Asked)
    assert (bare.reply, bare.thinking, bare.repaired) == ("", "", "…")
    assert note == f"got {BABBLE!r}\nhm\nThought: x"


def test_the_roles_are_part_of_the_log_and_absent_from_older_ones() -> None:
    start = Started("r", "tc-rag", Question("q", "?"), "", {}, 0, Budget(), notes_of=ROLES)
    line = to_line(start)
    assert from_line(line) == start
    older = line.replace('"notes_of":["planner","summariser","reader"],', "")
    assert older != line
    read = from_line(older)
    assert isinstance(read, Started)
    assert read.notes_of == ()

"""The steps of a run's last plan, with what may be shown of each."""

from __future__ import annotations

from osler.trace import Budget, Calculated, Event, FormNode, FormSolved, FormsPlanned, Started
from osler.trace import proof_steps as steps_of
from osler.types import Question

NODES = (
    FormNode(1, "Retrieval", "drug that treats 'gout'", "Retrieval(s=o1, p=p1, o=s1)", ()),
    FormNode(2, "Math", "The count of #1", "Math(content=['o1'], target='count')->m2", (1,)),
)


def started(*notes_of: str) -> Started:
    question = Question("q", "How many drugs treat gout?")
    return Started("r1", "kag-thinker", question, "", {}, 0, Budget(), notes_of=notes_of)


def test_each_step_bears_its_value_its_passages_and_its_calculation() -> None:
    events: list[Event] = [
        FormsPlanned(NODES[:1]),  # a plan that was given up
        FormsPlanned(NODES),
        FormSolved(1, "done", "allopurinol", passages=("graph:a",)),
        Calculated(2, "python", "len(x)", "1"),
        FormSolved(2, "done", "1"),
    ]
    first, second = steps_of(events)
    assert (first.answer, first.passages, first.computed) == ("allopurinol", ("graph:a",), "")
    assert (second.answer, second.needs, second.computed) == ("1", (1,), "len(x)")
    assert second.wire == f"Step2: {NODES[1].step}\nAction2: {NODES[1].action}"


def test_without_a_plan_there_are_none_and_an_unsolved_step_has_no_value() -> None:
    assert steps_of([]) == ()
    failed = Calculated(2, "python", "1/0", "", "division by zero")
    assert [one.answer or one.computed for one in steps_of([FormsPlanned(NODES), failed])] == [
        "",
        "",
    ]


def test_what_a_model_says_of_itself_that_may_not_word_medicine_is_left_out() -> None:
    own = FormSolved(1, "done", "colchicine", own_knowledge=True)
    planned = FormsPlanned(NODES)
    assert steps_of([started(), planned, own])[0].answer == "colchicine"
    assert steps_of([started("reader"), planned, own])[0].answer == ""

"""A request goes where the most of what a slot holds stays of use."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from osler.llm.core.spans import shared_prefix
from osler.llm.local.engine import SlotPool, SlotUse

A, B = "system. Question A. ", "system. Question B, another one. "


def taken(slots: SlotPool, use: SlotUse, prompt: str) -> int:
    with slots.take_slot(use, prompt) as slot:
        return slot


def test_a_conversation_goes_on_where_it_was_whatever_came_between() -> None:
    slots = SlotPool(2)
    first = taken(slots, SlotUse.CONVERSATION, A * 9)
    second = taken(slots, SlotUse.CONVERSATION, B * 9)
    assert first != second
    assert taken(slots, SlotUse.CONVERSATION, A * 9 + "more") == first
    assert taken(slots, SlotUse.CONVERSATION, B * 9 + "more") == second
    assert taken(slots, SlotUse.CONVERSATION, A * 7) == first, "a pop goes back"


def test_scoring_something_else_never_takes_a_conversation_s_slot() -> None:
    slots = SlotPool(1)
    talk = taken(slots, SlotUse.CONVERSATION, A * 9)
    scored = {taken(slots, SlotUse.SCORING, text) for text in ("one", "two", "three " * 99, "one")}
    assert scored == {1}
    assert taken(slots, SlotUse.CONVERSATION, A * 9) == talk == 0


def test_a_text_scored_where_it_was_said_stays_in_its_conversation_s_slot() -> None:
    slots = SlotPool(1)
    talk = taken(slots, SlotUse.CONVERSATION, A * 9)
    assert taken(slots, SlotUse.SCORING, A * 9 + "said") == talk


def test_request_waits_for_a_free_slot() -> None:
    slots, got = SlotPool(1), threading.Event()

    def wait() -> None:
        taken(slots, SlotUse.CONVERSATION, B)
        got.set()

    with slots.take_slot(SlotUse.CONVERSATION, A):
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not got.wait(0.05)
    waiting.join(5)
    assert got.is_set()


@given(st.text("ab"), st.text("ab"))
def test_a_shared_prefix_is_shared_and_no_longer_one_is(one: str, other: str) -> None:
    length = shared_prefix(one, other)
    assert one[:length] == other[:length]
    assert length == min(len(one), len(other)) or one[length] != other[length]

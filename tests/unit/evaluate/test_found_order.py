"""In which order passages count as found."""

from hypothesis import given
from hypothesis import strategies as st

from osler.trace import Event, HitNote, Noted, PassagesOrdered, Retrieved, Searched
from osler_lab.evaluate.record import found_of

IDS = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=5)


def found(ids: str | list[str]) -> Retrieved:
    return Retrieved("q", tuple(HitNote(id, 1.0, rank) for rank, id in enumerate(ids, 1)))


STARTED, BETWEEN = Searched("q", 10, ()), Noted("the model speaks in between")


def test_searches_of_one_plan_take_turns() -> None:
    plan: list[Event] = [STARTED, STARTED, found("abc"), found("dea")]
    assert found_of(plan) == ("a", "d", "b", "e", "c")
    assert found_of([STARTED, found("abc"), STARTED, found("dea")]) == ("a", "d", "b", "e", "c")


def test_the_order_in_which_passages_were_read_stands_before_turns() -> None:
    plan: list[Event] = [STARTED, STARTED, found("abc"), found("dea"), PassagesOrdered(("b", "e"))]
    assert found_of(plan) == ("b", "e", "a", "d", "c")
    assert found_of([*plan, STARTED, found("fa")]) == ("b", "e", "a", "d", "c", "f")


def test_a_later_search_comes_after_an_earlier_one() -> None:
    assert found_of([STARTED, found("abc"), BETWEEN, STARTED, found("cad")]) == tuple("abcd")


@given(st.lists(IDS, max_size=4))
def test_nothing_that_was_found_is_lost_or_counted_twice(lists: list[list[str]]) -> None:
    told = found_of([found(ids) for ids in lists])
    assert sorted(told) == sorted({id for ids in lists for id in ids})


@given(st.lists(IDS, min_size=1, max_size=4))
def test_a_passage_stands_no_later_than_its_best_rank_allows(lists: list[list[str]]) -> None:
    told = found_of([found(ids) for ids in lists])
    for ids in lists:
        for rank, id in enumerate(ids, 1):
            assert told.index(id) < rank * len(lists)

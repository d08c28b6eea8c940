"""TC-RAG §4: the lemmas of its proof, on random machines."""

import random
from itertools import islice, pairwise
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from turing import (
    Configuration,
    Machine,
    Rule,
    TuringTape,
    Word,
    begin,
    h,
    initial,
    move,
    run,
    step,
    tape,
)

MANY = 625 if settings.get_current_profile_name() == "quick" else 5_000
"""Machines drawn at random, beside those that Hypothesis seeks: 5,000 in the whole suite and in
`make laws`, fewer in the quick gate."""

STATES = ("q0", "q1", "q2")
SYMBOLS = ("_", "0", "1")
LONGEST_MOVE = 3
"""Shifts of TC for one move of T: pop, put back, and a blank or the next symbol."""

DIRECTIONS: tuple[Literal["L", "R"], ...] = ("L", "R")
rules: st.SearchStrategy[Rule] = st.tuples(
    st.sampled_from((*STATES, "accept", "reject")),
    st.sampled_from(SYMBOLS),
    st.sampled_from(DIRECTIONS),
)
keys = st.tuples(st.sampled_from(STATES), st.sampled_from(SYMBOLS))
machines = st.dictionaries(keys, rules).map(lambda delta: Machine(delta, "q0"))
words = st.lists(st.sampled_from(SYMBOLS), max_size=6).map(tuple)


def bare(stack: Word) -> str:
    return "".join(stack).lstrip("_")


def a_move_is_shifts(machine: Machine, state: str, left: Word, head: str, right: Word) -> None:
    """Lemma 1: c1 ⊢_T c2 implies h(c1) ⊢*_TC h(c2)."""
    before = tape(machine, state, left, head, right)
    after = move(machine, before)
    assert after is not None, "none of these states halts"
    reached: list[Configuration] = []
    at = step(machine, h(machine, before))
    while at is not None and len(reached) < LONGEST_MOVE:
        reached.append(at)
        at = step(machine, at) if at.pending else None
    assert reached[-1] == h(machine, after)


@given(machines, st.sampled_from(STATES), words, st.sampled_from(SYMBOLS), words)
def test_every_move_of_t_is_one_or_more_shifts_of_tc(
    machine: Machine, state: str, left: Word, head: str, right: Word
) -> None:
    a_move_is_shifts(machine, state, left, head, right)


def both_halt(machine: Machine, word: Word) -> None:
    """Lemma 2, both directions, as far as 40 moves show."""
    tapes, at = [], begin(machine, word)
    for _ in range(40):
        tapes.append(at)
        if (after := move(machine, at)) is None:
            break
        at = after
    halts = machine.halts(tapes[-1].state)
    shifts = list(islice(run(machine, word), LONGEST_MOVE * len(tapes) + 2))
    if halts:
        assert shifts[-1].halted
        assert shifts[-1].remaining == ()
        assert shifts[-1].state == tapes[-1].state
        assert not any(configuration.halted for configuration in shifts[:-1])
    else:
        moves = [c for c in shifts if not c.pending and not machine.halts(c.state)]
        assert moves[: len(tapes)] == [h(machine, t) for t in tapes[: len(moves)]]


@given(machines, words)
def test_tc_reaches_its_final_state_exactly_when_t_accepts_or_rejects(
    machine: Machine, word: Word
) -> None:
    both_halt(machine, word)


def a_shift_moves_one_symbol(machine: Machine, word: Word) -> None:
    """Blanks at the bottom aside, which a tape without ends does not count."""
    for before, after in pairwise(islice(run(machine, word), 60)):
        was, now = bare(before.stack), bare(after.stack)
        assert now == was or bare(after.stack[:-1]) == was or now == bare(before.stack[:-1])


@given(machines, words)
def test_a_shift_pushes_one_symbol_or_pops_one_or_leaves_memory_alone(
    machine: Machine, word: Word
) -> None:
    a_shift_moves_one_symbol(machine, word)


def an_image_has_one_origin(machine: Machine, word: Word) -> None:
    """h is one to one on what a run visits: equal images come from equal tapes."""
    seen: dict[Configuration, TuringTape] = {}
    at = begin(machine, word)
    for _ in range(20):
        image = h(machine, at)
        assert seen.setdefault(image, at) == at
        if (after := move(machine, at)) is None:
            break
        at = after


@given(machines, words)
def test_the_image_of_a_configuration_tells_it_from_every_other(
    machine: Machine, word: Word
) -> None:
    an_image_has_one_origin(machine, word)


def test_the_lemmas_hold_on_many_random_machines() -> None:
    chance = random.Random(0)

    def word() -> Word:
        return tuple(chance.choices(SYMBOLS, k=chance.randrange(7)))

    def rule() -> Rule:
        to = chance.choice((*STATES, "accept", "reject"))
        return to, chance.choice(SYMBOLS), chance.choice(DIRECTIONS)

    for _ in range(MANY):
        some = [(state, symbol) for state in STATES for symbol in SYMBOLS if chance.random() < 0.7]
        machine = Machine({key: rule() for key in some}, "q0")
        a_move_is_shifts(machine, chance.choice(STATES), word(), chance.choice(SYMBOLS), word())
        both_halt(machine, word())
        a_shift_moves_one_symbol(machine, word())
        an_image_has_one_origin(machine, word())


def test_the_first_shift_reads_the_first_symbol_onto_the_empty_stack() -> None:
    machine = Machine({}, "q0")
    first = initial(machine, ("1", "0"))
    assert (first.stack, first.remaining) == ((), ("1", "0"))
    assert step(machine, first) == h(machine, begin(machine, ("1", "0")))

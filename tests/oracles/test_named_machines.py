"""Three machines whose results are known, run as TC-RAG's pushes and pops (§4)."""

import pytest
from turing import Configuration, Machine, Rule, Word, begin, move, run

INCREMENT = Machine(
    {
        ("right", "0"): ("right", "0", "R"),
        ("right", "1"): ("right", "1", "R"),
        ("right", "_"): ("carry", "_", "L"),
        ("carry", "1"): ("carry", "0", "L"),
        ("carry", "0"): ("accept", "1", "L"),
        ("carry", "_"): ("accept", "1", "L"),
    },
    "right",
)
"""Adds one to a binary number: to its end, then the carry back."""


def _palindromes() -> Machine:
    """Strikes out the first and the last symbol in turn while they are equal."""
    delta: dict[tuple[str, str], Rule] = {("first", "_"): ("accept", "_", "R")}
    for symbol in "ab":
        delta["first", symbol] = (f"to end {symbol}", "_", "R")
        for passed in "ab":
            delta[f"to end {symbol}", passed] = (f"to end {symbol}", passed, "R")
            delta["back", passed] = ("back", passed, "L")
        delta[f"to end {symbol}", "_"] = (f"last {symbol}", "_", "L")
        delta[f"last {symbol}", symbol] = ("back", "_", "L")
        delta[f"last {symbol}", "_"] = ("accept", "_", "R")
    delta["back", "_"] = ("first", "_", "R")
    return Machine(delta, "first")


PALINDROMES = _palindromes()

BUSY_BEAVER_3 = Machine(
    {
        ("A", "0"): ("B", "1", "R"),
        ("A", "1"): ("accept", "1", "R"),
        ("B", "0"): ("C", "0", "R"),
        ("B", "1"): ("B", "1", "R"),
        ("C", "0"): ("C", "1", "L"),
        ("C", "1"): ("A", "1", "L"),
    },
    "A",
    blank="0",
)
"""Radó's game with three states: six ones after 14 moves."""


def last(machine: Machine, word: str) -> Configuration:
    *_, final = run(machine, tuple(word))
    return final


def moves(machine: Machine, word: Word) -> int:
    at, count = begin(machine, word), 0
    while (after := move(machine, at)) is not None:
        at, count = after, count + 1
    return count


@pytest.mark.parametrize(("number", "next_one"), [("0", "1"), ("1011", "1100"), ("111", "1000")])
def test_binary_increment_accepts_with_the_next_number_on_the_tape(
    number: str, next_one: str
) -> None:
    at = begin(INCREMENT, tuple(number))
    while (after := move(INCREMENT, at)) is not None:
        at = after
    assert "".join((*at.left, at.head, *at.right)).strip("_") == next_one
    assert last(INCREMENT, number).state == "accept"


@pytest.mark.parametrize(
    ("word", "verdict"),
    [
        *[(word, "accept") for word in ("", "a", "abba", "ababa")],
        *[(word, "reject") for word in ("ab", "abab", "aabba")],
    ],
)
def test_palindromes_are_accepted_and_nothing_else(word: str, verdict: str) -> None:
    final = last(PALINDROMES, word)
    assert (final.halted, final.state) == (True, verdict)


def test_the_busy_beaver_of_three_states_leaves_six_ones_after_fourteen_moves() -> None:
    final = last(BUSY_BEAVER_3, "")
    assert final.state == "accept"
    assert moves(BUSY_BEAVER_3, ()) == 14
    at = begin(BUSY_BEAVER_3, ())
    while (after := move(BUSY_BEAVER_3, at)) is not None:
        at = after
    assert (*at.left, at.head, *at.right).count("1") == 6


def test_a_machine_that_never_halts_keeps_its_state_value_at_sigma() -> None:
    forever = Machine({("q", "_"): ("q", "_", "R")}, "q")
    shifts = run(forever, ())
    assert not any(next(shifts).halted for _ in range(500))


def test_a_rule_out_of_a_halting_state_is_refused() -> None:
    with pytest.raises(ValueError, match="halting state 'accept'"):
        Machine({("accept", "_"): ("q", "_", "R")}, "q")

"""TC-RAG §4 and App. 8.1 made executable: any Turing machine as pushes and pops.

`h` maps a configuration of a Turing machine T, (st, w1 a w2), to the paper's
(s, w2, w1^R a, s >= sigma): the state value, the remaining input, the memory stack and
the halt test. `step` is the shift of that system, one meta-operation at a time.
`docs/papers/tc-rag.md` says what the proof leaves open and how it is settled here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

State = str
Symbol = str
Rule = tuple[State, Symbol, Literal["L", "R"]]
Word = tuple[Symbol, ...]

SIGMA = 1.0
"""The threshold."""
RUNNING = 1.0
"""The value while T runs: any from sigma on will do (Step 1, item 3)."""
FINAL = 0.0
"""The value of f, the only final state (Step 1: F = {f}): below sigma."""


@dataclass(frozen=True)
class Machine:
    """A standard Turing machine on a tape without ends (App. 8.1, Definition 1)."""

    delta: Mapping[tuple[State, Symbol], Rule]
    """(state, symbol under the head) → (next state, symbol written, move); what it does
    not name goes to `reject`."""
    start: State
    accept: State = "accept"
    reject: State = "reject"
    blank: Symbol = "_"

    def __post_init__(self) -> None:
        """Raises `ValueError` for a rule out of a halting state, or one that is both."""
        if self.accept == self.reject:
            raise ValueError(f"{self.accept!r} cannot both accept and reject")
        if left := sorted(state for state, _ in self.delta if self.halts(state)):
            raise ValueError(f"the halting state {left[0]!r} has a rule")

    def halts(self, state: State) -> bool:
        return state in (self.accept, self.reject)

    def rule(self, state: State, symbol: Symbol) -> Rule:
        return self.delta.get((state, symbol), (self.reject, symbol, "R"))


@dataclass(frozen=True)
class TuringTape:
    """A configuration c_T = (st, w1 a w2) (Definition 2), without the outermost blanks."""

    state: State
    left: Word
    """w1, from left to right."""
    head: Symbol
    right: Word


def tape(machine: Machine, state: State, left: Word, head: Symbol, right: Word) -> TuringTape:
    """Two tapes that differ only in blanks at the ends are one configuration."""
    return TuringTape(state, _lstrip(left, machine.blank), head, _rstrip(right, machine.blank))


def begin(machine: Machine, word: Word) -> TuringTape:
    """The head on the first symbol of the input."""
    head, *rest = word or (machine.blank,)
    return tape(machine, machine.start, (), head, tuple(rest))


def move(machine: Machine, at: TuringTape) -> TuringTape | None:
    """c1 ⊢_T c2; `None` in a halting state."""
    if machine.halts(at.state):
        return None
    state, written, direction = machine.rule(at.state, at.head)
    if direction == "R":
        head, *rest = at.right or (machine.blank,)
        return tape(machine, state, (*at.left, written), head, tuple(rest))
    *rest, head = at.left or (machine.blank,)
    return tape(machine, state, tuple(rest), head, (written, *at.right))


class Op(StrEnum):
    """What a shift of TC does; PUSH and POP are the meta-actions of §5.1."""

    PUSH = "push"
    POP = "pop"
    READ = "read"
    """Push the next symbol of the remaining input (Definition 4, item 1)."""
    RETURN = "return"
    """Put a symbol before the remaining input: what the proof's w'2 needs."""


@dataclass(frozen=True, slots=True)
class Shift:
    op: Op
    symbol: Symbol = ""


@dataclass(frozen=True)
class Configuration:
    """c_TC = (s, w, M, s >= sigma) (Definition 3)."""

    state: State
    value: float
    """s, the state value of `state`: `FINAL` only at the end."""
    remaining: Word
    stack: Word
    """M, its top last."""
    pending: tuple[Shift, ...] = ()
    """What is left of the move of T under way: |δ_T| finite control states of TC."""

    @property
    def halted(self) -> bool:
        return self.value < SIGMA


def h(machine: Machine, at: TuringTape) -> Configuration:
    """The image of a configuration of T (Step 2)."""
    return Configuration(at.state, RUNNING, at.right, (*at.left, at.head))


def initial(machine: Machine, word: Word) -> Configuration:
    """(s0, w, NULL, s0 >= sigma): nothing read, nothing in memory (Lemma 2)."""
    word = _rstrip(word, machine.blank)
    return Configuration(machine.start, RUNNING, word, (), (Shift(Op.READ),))


def step(machine: Machine, at: Configuration) -> Configuration | None:
    """c1 ⊢_TC c2, one meta-operation; `None` when the state value lies below sigma."""
    if at.halted:
        return None
    if at.pending:
        return _shift(machine, at, at.pending[0], at.pending[1:])
    if machine.halts(at.state):  # δ(s, a) = (f, no_op)
        return Configuration(at.state, FINAL, (), at.stack)
    state, written, direction = machine.rule(at.state, at.stack[-1])
    plan = _right(written) if direction == "R" else _left(written, at.stack, machine.blank)
    begun = Configuration(state, RUNNING, at.remaining, at.stack)
    return _shift(machine, begun, plan[0], plan[1:])


def run(machine: Machine, word: Word) -> Iterator[Configuration]:
    """The derivation from `initial`; endless where the machine does not halt."""
    at: Configuration | None = initial(machine, word)
    while at is not None:
        yield at
        at = step(machine, at)


def _right(written: Symbol) -> tuple[Shift, ...]:
    """Case 1: the top is rewritten, and the head moves onto the next symbol (push)."""
    return Shift(Op.POP), Shift(Op.PUSH, written), Shift(Op.READ)


def _left(written: Symbol, stack: Word, blank: Symbol) -> tuple[Shift, ...]:
    """Case 2: the head moves onto what lies below (pop); a blank, where nothing does."""
    shifts = (Shift(Op.POP), Shift(Op.RETURN, written))
    return shifts if len(stack) > 1 else (*shifts, Shift(Op.PUSH, blank))


def _shift(
    machine: Machine, at: Configuration, shift: Shift, pending: tuple[Shift, ...]
) -> Configuration:
    remaining, stack = at.remaining, at.stack
    match shift.op:
        case Op.PUSH:
            stack = (*stack, shift.symbol)
        case Op.POP:
            stack = stack[:-1]
        case Op.READ:
            head, *rest = remaining or (machine.blank,)
            stack, remaining = (*stack, head), tuple(rest)
        case Op.RETURN:
            remaining = (shift.symbol, *remaining)
    if not pending:  # the image of a configuration of T, which has no outermost blanks
        stack = (*_lstrip(stack[:-1], machine.blank), stack[-1])
        remaining = _rstrip(remaining, machine.blank)
    return Configuration(at.state, at.value, remaining, stack, pending)


def _lstrip(word: Word, blank: Symbol) -> Word:
    first = next((i for i, symbol in enumerate(word) if symbol != blank), len(word))
    return word[first:]


def _rstrip(word: Word, blank: Symbol) -> Word:
    return _lstrip(word[::-1], blank)[::-1]

"""Numbers within bounds, as parts of a format."""

from __future__ import annotations

from osler.llm.core.grammar.nodes import Node, alt, chars, lit, maybe, repeat, seq

DIGITS = 9
"""Digits of a whole number without a bound."""
DECIMALS = 4

_DIGIT = chars("", ("0", "9"))


def integer_range(least: int | None, most: int | None) -> Node:
    """Makes whole numbers from `least` to `most`, both included, without leading zeros.

    An open end is at nine digits. Raises `ValueError` when there are none.
    """
    huge = 10**DIGITS - 1
    low = -huge if least is None else _whole_bound(least)
    high = huge if most is None else _whole_bound(most)
    if low > high:
        raise ValueError(f"no whole number lies between {low} and {high}")
    arms: list[Node] = []
    if low < 0:
        arms.append(seq("-", _from_to(max(1, -high), -low)))
    if high >= 0:
        arms.append(_from_to(max(0, low), high))
    return alt(*arms)


def real_range(least: float | None, most: float | None) -> Node:
    """Makes numbers from `least` to `most` with at most four decimals; bounds whole, not below 0.

    Without bounds negative ones too. Raises `ValueError` for other bounds.
    """
    fraction = maybe(".", repeat(_DIGIT, 1, DECIMALS))
    huge = 10**DIGITS
    low, high = (
        (-huge if least is None else _whole_bound(least)),
        _whole_bound(huge if most is None else most),
    )
    if least is None and most is None:
        return seq(maybe("-"), _from_to(0, huge - 1), fraction)
    if low < 0 or low > high:
        raise ValueError(f"bounds of a number must be whole and not below 0: {least}, {most}")
    zeros = maybe(".", repeat("0", 1, DECIMALS))
    last = seq(lit(str(high)), zeros)
    return alt(seq(_from_to(low, high - 1), fraction), last) if low < high else last


def _whole_bound(bound: float) -> int:
    if bound != int(bound):
        raise ValueError(f"the bound {bound} is not whole")
    return int(bound)


def _from_to(low: int, high: int) -> Node:
    """Makes whole numbers from `low` ≥ 0 to `high`, by their number of digits."""
    arms: list[Node] = []
    for digits in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (digits - 1) if digits > 1 else 0)
        last = min(high, 10**digits - 1)
        arms.append(_same_length(str(first), str(last)))
    return alt(*arms)


def _same_length(low: str, high: str) -> Node:
    """Makes digits from `low` to `high`, which have the same length."""
    # The first digit is the lowest, then the rest starts at `low`; between, then the rest is
    # free; or the highest, then the rest ends at `high`.
    rest = len(low) - 1
    if set(low[1:]) <= {"0"} and set(high[1:]) <= {"9"}:
        return seq(_digit_range(low[0], high[0]), *_any_digits(rest))
    if low[0] == high[0]:
        return seq(low[0], _same_length(low[1:], high[1:]))
    arms: list[Node] = [seq(low[0], _same_length(low[1:], "9" * rest))]
    if int(high[0]) - int(low[0]) > 1:
        middle = _digit_range(str(int(low[0]) + 1), str(int(high[0]) - 1))
        arms.append(seq(middle, *_any_digits(rest)))
    arms.append(seq(high[0], _same_length("0" * rest, high[1:])))
    return alt(*arms)


def _digit_range(low: str, high: str) -> Node:
    return lit(low) if low == high else chars("", (low, high))


def _any_digits(count: int) -> tuple[Node, ...]:
    return (repeat(_DIGIT, count, count),) if count else ()

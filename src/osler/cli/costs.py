"""What runs cost and may cost, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from osler.types import Money, Usage

if TYPE_CHECKING:
    from osler.app.estimates import CostEstimate, CostRange

UNKNOWN = "unknown"
_LEAST = 0.0001
"""The smallest amount that is written out."""


def format_cost(usage: Usage, seconds: float | None) -> str:
    tokens = (
        f"{usage.prompt_tokens - usage.cached_tokens:,} read, {usage.cached_tokens:,} cached,"
        f" {usage.completion_tokens:,} written, {usage.scored_tokens:,} scored"
        if usage.is_counted
        else "not counted by the server"
    )
    counts = (
        f"{count_noun(usage.calls, 'call')}, {count_noun(usage.searches, 'search', 'searches')}"
    )
    spent = usage.seconds if seconds is None else seconds
    paid = f"; {format_money(usage.money)}" if usage.money else ""
    return f"{counts}; tokens: {tokens}; {spent:.1f} s{paid}"


def format_money(money: Money) -> str:
    """An amount with its currency; one that is not 0 is never written as 0."""
    if 0 < money.amount < _LEAST:
        return f"under {_LEAST} {money.currency}"
    digits = 4 if money.amount < 1 else 2
    return f"{money.amount:,.{digits}f} {money.currency}"


def count_noun(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def estimate_rows(found: CostEstimate) -> list[tuple[str, str]]:
    """An estimate as names and values, its basis first."""
    many = [("questions", f"{found.questions:,}")] if found.questions > 1 else []
    return [
        *many,
        ("based on", found.basis),
        ("model calls", format_range(found.calls)),
        ("tokens read", format_range(found.prompt_tokens)),
        ("of these cached", format_range(found.cached_tokens)),
        ("tokens written", format_range(found.completion_tokens)),
        ("seconds in calls", format_range(found.seconds, 1)),
        ("money", format_paid(found)),
    ]


def format_paid(found: CostEstimate) -> str:
    return f"{format_range(found.money, 4)} {found.currency}".strip()


def format_range(one: CostRange | None, digits: int = 0) -> str:
    if one is None:
        return UNKNOWN
    low = f"{one.low:,.{digits}f}"
    if one.high is None:
        return f"at least {low}"
    if one.low == one.high:
        return low
    usual = "" if one.usual is None else f", mostly about {one.usual:,.{digits}f}"
    return f"{low} to {one.high:,.{digits}f}{usual}"

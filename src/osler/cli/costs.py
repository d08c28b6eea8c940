"""What runs cost and may cost, in words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group

from osler.cli.tables import make_table, plain_text
from osler.types import Money, Usage

if TYPE_CHECKING:
    from osler.app.estimates import CostEstimate, CostRange
    from osler.app.evaluation import Trial
    from osler.cli.session import CliSession

UNKNOWN = "unknown"
_LEAST = 0.0001
"""The smallest amount that is written out."""


def format_cost(usage: Usage, seconds: float | None) -> str:
    tokens = (
        f"{usage.prompt_tokens - usage.cached_tokens:,} read, {usage.cached_tokens:,} cached,"
        f" {usage.completion_tokens:,} written, {usage.scored_tokens:,} scored"
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
        ("model calls", _format_range(found.calls)),
        ("tokens read", _format_range(found.prompt_tokens)),
        ("of these cached", _format_range(found.cached_tokens)),
        ("tokens written", _format_range(found.completion_tokens)),
        ("seconds in calls", _format_range(found.seconds, 1)),
        ("money", _format_paid(found)),
    ]


def show_trial_cost(here: CliSession, trial: Trial, log_dir: Path) -> None:
    """What is left of an evaluation may cost, by strategy and in all."""
    from osler.app.estimates import combine_estimates, estimate_trial
    from osler.cli.runs import open_runs

    opens = open_runs(here.load_settings())
    found = asyncio.run(estimate_trial(trial, log_dir, opens=opens))
    whole = combine_estimates([*found.values()])
    document = {label: asdict(one) for label, one in found.items()}
    told = {"strategies": document, "in_all": whole and asdict(whole)}
    here.show_result(trial_cost_page(found, whole), told)


def trial_cost_page(found: Mapping[str, CostEstimate], whole: CostEstimate | None) -> Group:
    """A row for each strategy, and on what its figures rest."""
    if whole is None:
        return Group(plain_text("nothing is left to do"))
    rows = [(label, *_trial_cells(one)) for label, one in found.items()]
    names = ("strategy", "questions", "model calls", "tokens read", "tokens written", "money")
    table = make_table(names, [*rows, ("in all", *_trial_cells(whole))], numeric=names[1:])
    return Group(table, *(plain_text(f"{label}: {one.basis}") for label, one in found.items()))


def _trial_cells(one: CostEstimate) -> tuple[str, ...]:
    ranges = (one.calls, one.prompt_tokens, one.completion_tokens)
    return (f"{one.questions:,}", *map(_format_range, ranges), _format_paid(one))


def _format_paid(found: CostEstimate) -> str:
    return f"{_format_range(found.money, 4)} {found.currency}".strip()


def _format_range(one: CostRange | None, digits: int = 0) -> str:
    if one is None:
        return UNKNOWN
    low = f"{one.low:,.{digits}f}"
    if one.high is None:
        return f"at least {low}"
    if one.low == one.high:
        return low
    usual = "" if one.usual is None else f", mostly about {one.usual:,.{digits}f}"
    return f"{low} to {one.high:,.{digits}f}{usual}"

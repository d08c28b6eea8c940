"""The page of `osler doctor`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table

from osler.cli.tables import checks_page, make_table, plain_text

if TYPE_CHECKING:
    from osler.doctor import DoctorReport
    from osler.doctor.abilities import Ability
    from osler.doctor.needs import StrategyVerdict


_STATUS_COLOURS = {"full": "green", "degraded": "yellow", "refused": "red"}
_STATUS_WORDS = {
    "full": "work as in their papers",
    "degraded": "work with less than their papers have",
    "refused": "cannot run with these models",
}


def doctor_page(report: DoctorReport, *, short: bool = False, everything: bool = False) -> Group:
    """What is wrong and its fix; then a line on the rest, or with `everything` all of it.

    `short`: only what is wrong.
    """
    wrong = [check for check in report.checks if check.status != "pass"]
    wrong.sort(key=lambda check: check.status != "fail")
    parts: list[RenderableType] = [checks_page(wrong)] if wrong else []
    if everything:
        parts.append(checks_page([check for check in report.checks if check.status == "pass"]))
        if report.models:
            parts += [plain_text(""), _models_table(report.models)]
            parts += [plain_text(""), _strategies_table(report.strategies)]
    elif not short:
        parts.append(plain_text(_rest_line(report, len(wrong))))
    return Group(*parts)


def _rest_line(report: DoctorReport, wrong: int) -> str:
    right = f"{len(report.checks) - wrong} of {len(report.checks)} checks are right"
    counts = Counter[str](verdict.status for verdict in report.strategies)
    able = [
        f"{counts[status]} {words}" for status, words in _STATUS_WORDS.items() if counts[status]
    ]
    told = f"; strategies: {', '.join(able)}" if able else ""
    return f"{right}{told} (osler doctor --all)"


def _models_table(models: Sequence[Ability]) -> Table:
    """A row for each thing a model can do, a column for each model: names are long."""
    rows = ((name, *map(value, models)) for name, value in _ABILITIES.items())
    return make_table(("", *(", ".join(ability.roles) for ability in models)), rows)


_ABILITIES: dict[str, Callable[[Ability], str]] = {
    "name": lambda a: a.name or "-",
    "kind": lambda a: a.kind,
    "completes": lambda a: _yes_or_no(a.completes),
    "log-probabilities": lambda a: (
        f"{a.logprobs}, {a.likeliest} likeliest" if a.likeliest else a.logprobs
    ),
    "scores a given text": lambda a: _yes_or_no(a.scores),
    "shows its attention": lambda a: _yes_or_no(a.attends),
    "role adapters": lambda a: "no" if a.adapters is None else ", ".join(a.adapters) or "aLoRA",
    "constrains": lambda a: ", ".join(a.formats) or "no",
    "embeds": lambda a: _yes_or_no(a.embeds),
    "words answers": lambda a: _yes_or_no(a.writes),
    "context": lambda a: f"{a.context:,} tokens" if a.context else "not told",
    "one call": lambda a: f"{a.seconds:.2f} s" if a.completes else "-",
}


def _yes_or_no(able: bool) -> str:
    return "yes" if able else "no"


def _strategies_table(verdicts: Sequence[StrategyVerdict]) -> Table:
    table = make_table(("strategy", "", "needs", "why"))
    for verdict in verdicts:
        status = plain_text(verdict.status, _STATUS_COLOURS[verdict.status])
        table.add_row(
            plain_text(verdict.strategy), status, plain_text(verdict.needs), plain_text(verdict.why)
        )
    return table

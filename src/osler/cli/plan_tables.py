"""What plans are like and what sources are worth, as tables. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from osler.cli.tables import table_of, text_of

if TYPE_CHECKING:
    from osler.app.plans import PlanReport


def plans_page(report: PlanReport) -> Group:
    """Table 6, then Fig. 7 with Tables 12 and 13, then what it cost."""
    head = f"{report.n} questions, planner {report.planner}; 95 % intervals"
    return Group(
        text_of(head),
        _dropped(report),
        text_of(""),
        _described(report),
        text_of(""),
        *_costs(report),
    )


def _dropped(report: PlanReport) -> Table:
    """Accuracy and relative drop."""
    table = table_of(("documents", "accuracy", "relative", "change"))
    for row in report.rows:
        name = row.sources if row.change is None or row.sources == "none" else f"- {row.sources}"
        relative = "" if row.drop is None else f"{row.drop:+.1%}"
        table.add_row(*map(text_of, (name, str(row.accuracy), relative, str(row.change or ""))))
    return table


def _described(report: PlanReport) -> Table:
    table = table_of(("source", "queries a plan", "words a query", "diversity"))
    for source, count in report.queries.items():
        words, apart = report.words[source], report.diversity[source]
        cells = (source, f"{count:.2f}", _number(words, 1), _number(apart, 3))
        table.add_row(*map(text_of, cells))
    return table


def _costs(report: PlanReport) -> Iterator[Text]:
    stages = ", ".join(f"{stage} {took:.2f} s" for stage, took in report.seconds.items())
    yield text_of(f"a question: {stages}")
    for role, cost in report.costs.items():
        told = f"  {role}: {cost.calls} calls, {cost.tokens:,} tokens, {cost.seconds:.2f} s"
        yield text_of(told)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"

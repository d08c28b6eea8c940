"""What plans are like and what sources are worth, as tables. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from osler.cli.session import printable

if TYPE_CHECKING:
    from osler.plans import PlanReport


def plans_page(report: PlanReport) -> Group:
    """Table 6, then Fig. 7 with Tables 12 and 13, then what it cost."""
    head = f"{report.n} questions, planner {report.planner}; 95 % intervals"
    return Group(
        _text(head), _dropped(report), _text(""), _described(report), _text(""), *_costs(report)
    )


def _dropped(report: PlanReport) -> Table:
    """Accuracy and relative drop."""
    table = _table("documents", "accuracy", "relative", "change")
    for row in report.rows:
        name = row.sources if row.change is None or row.sources == "none" else f"- {row.sources}"
        relative = "" if row.drop is None else f"{row.drop:+.1%}"
        table.add_row(*map(_text, (name, str(row.accuracy), relative, str(row.change or ""))))
    return table


def _described(report: PlanReport) -> Table:
    table = _table("source", "queries a plan", "words a query", "diversity")
    for source, count in report.queries.items():
        words, apart = report.words[source], report.diversity[source]
        cells = (source, f"{count:.2f}", _number(words, 1), _number(apart, 3))
        table.add_row(*map(_text, cells))
    return table


def _costs(report: PlanReport) -> Iterator[Text]:
    stages = ", ".join(f"{stage} {took:.2f} s" for stage, took in report.seconds.items())
    yield _text(f"a question: {stages}")
    for role, cost in report.costs.items():
        told = f"  {role}: {cost.calls} calls, {cost.tokens:,} tokens, {cost.seconds:.2f} s"
        yield _text(told)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column)
    return table


def _text(words: str) -> Text:
    return Text(printable(words))

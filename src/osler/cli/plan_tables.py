"""What plans are like and what sources are worth, as tables. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from osler.cli.tables import make_table, plain_text

if TYPE_CHECKING:
    from osler.app.plans import PlanStudyReport


def plans_page(report: PlanStudyReport) -> Group:
    """Table 6, then Fig. 7 with Tables 12 and 13, then what it cost."""
    head = f"{report.n} questions, planner {report.planner}; 95 % intervals"
    return Group(
        plain_text(head),
        _format_drop(report),
        plain_text(""),
        _plan_figures(report),
        plain_text(""),
        *_cost_table(report),
    )


def _format_drop(report: PlanStudyReport) -> Table:
    """Accuracy and relative drop."""
    table = make_table(("documents", "accuracy", "relative", "change"))
    for row in report.rows:
        name = row.sources if row.change is None or row.sources == "none" else f"- {row.sources}"
        relative = "" if row.drop is None else f"{row.drop:+.1%}"
        table.add_row(*map(plain_text, (name, str(row.accuracy), relative, str(row.change or ""))))
    return table


def _plan_figures(report: PlanStudyReport) -> Table:
    table = make_table(("source", "queries a plan", "words a query", "diversity"))
    for source, count in report.queries.items():
        words, apart = report.words[source], report.diversity[source]
        cells = (source, f"{count:.2f}", _format_figure(words, 1), _format_figure(apart, 3))
        table.add_row(*map(plain_text, cells))
    return table


def _cost_table(report: PlanStudyReport) -> Iterator[Text]:
    stages = ", ".join(f"{stage} {took:.2f} s" for stage, took in report.seconds.items())
    yield plain_text(f"a question: {stages}")
    for role, cost in report.costs.items():
        told = f"  {role}: {cost.calls} calls, {cost.tokens:,} tokens, {cost.seconds:.2f} s"
        yield plain_text(told)


def _format_figure(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"

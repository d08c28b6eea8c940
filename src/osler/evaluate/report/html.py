"""Report → one HTML page: no script, nothing loaded. What a model wrote is escaped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from osler.evaluate.log import read_trace
from osler.evaluate.report import plots
from osler.evaluate.report.build import Report, Shown
from osler.evaluate.report.tables import (
    HEAD,
    JUDGED,
    counts,
    exclusions,
    facts,
    judged,
    tables,
    verdict,
)
from osler.trace import Event

if TYPE_CHECKING:
    from jinja2 import Template

Film = Callable[[Sequence[Event]], Sequence[str]]
"""The events of a run → the lines in which a reader follows it."""


def render_html(report: Report, film: Film | None = None) -> str:
    """The page; with `film`, each sample that is shown tells how its run went.

    Raises `BadRun` where a trace cannot be read.
    """

    def told(shown: Shown) -> Sequence[str]:
        if film is None or shown.trace is None:
            return ()
        return film(read_trace(report.folder, shown.trace))

    return _template().render(
        report=report,
        head=HEAD,
        tables=list(tables(report)),
        counts=counts(report),
        judged_head=JUDGED,
        judged=judged(report),
        facts=facts(report),
        exclusions=exclusions(report),
        bars=plots.bars(report),
        squares=[*plots.costs(report), *plots.reliabilities(report)],
        verdict=verdict,
        film=told,
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    source = files(__package__).joinpath("report.html.j2").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source)

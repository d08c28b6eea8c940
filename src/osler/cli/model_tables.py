"""What models can do and how their state values are spread, as tables. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table

from osler.cli.tables import checks_page, make_table, plain_text

if TYPE_CHECKING:
    from osler.app.calibrate import SigmaFit, StateValues, TauFit
    from osler.app.doctor import Ability, DoctorReport, StrategyVerdict
    from osler.methods.kag.calibration import CalibrationAttempt
    from osler.types import Language

_STATUS_COLOURS = {"full": "green", "degraded": "yellow", "refused": "red"}


def doctor_page(report: DoctorReport, *, short: bool = False) -> Group:
    """The checks; then what the models can do, and what that means. `short`: only what is wrong."""
    wrong = [check for check in report.checks if not short or check.status != "pass"]
    parts: list[RenderableType] = [checks_page(wrong)]
    if report.models and not short:
        parts += [plain_text(""), _models_table(report.models)]
        parts += [plain_text(""), _strategies_table(report.strategies)]
    return Group(*parts)


def _models_table(models: Sequence[Ability]) -> Table:
    """A row for each thing a model can do, a column for each model: names are long."""
    table = make_table(("", *(", ".join(ability.roles) for ability in models)))
    for name, value in _ABILITIES.items():
        table.add_row(plain_text(name), *(plain_text(value(ability)) for ability in models))
    return table


_ABILITIES: dict[str, Callable[[Ability], str]] = {
    "name": lambda a: a.name or "-",
    "kind": lambda a: a.kind,
    "completes": lambda a: _yes_or_no(a.completes),
    "log-probabilities": lambda a: (
        f"{a.logprobs}, {a.likeliest} likeliest" if a.likeliest else a.logprobs
    ),
    "scores a given text": lambda a: _yes_or_no(a.scores),
    "shows its attention": lambda a: _yes_or_no(a.attends),
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


def calibration_page(measured: StateValues, found: SigmaFit) -> Group:
    """How the values are spread, by language and over all; below it, what was fitted."""
    from osler.app.calibrate import quantile_of

    shares = {"min": 0.0, "10 %": 0.1, "25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "90 %": 0.9}
    shares["max"] = 1.0
    table = make_table((measured.metric, "questions", "answered", *shares))
    rows: list[tuple[str, Language | None]] = [("en", "en"), ("zh", "zh"), ("all", None)]
    for name, language in rows:
        asked = [v for v in measured.values if language in (None, v.question.language)]
        if known := measured.known_values(language):
            spread = [f"{quantile_of(known, share):.3g}" for share in shares.values()]
            table.add_row(*map(plain_text, (name, str(len(asked)), str(len(known)), *spread)))
    line = (
        f"sigma {found.sigma:g}: {found.quantile:.0%} of {found.n} conclusions of"
        f" {found.model} lie below it"
    )
    return Group(table, plain_text(line))


def tau_page(points: Sequence[CalibrationAttempt], found: TauFit) -> Group:
    """How often the model's own answers are right, by their least probability; then tau."""
    table = make_table(("least probability", "answers", "right"))
    told = [point for point in points if point.probability is not None]
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        top = low + 0.2
        inside = [p for p in told if p.probability is not None and low <= p.probability < top]
        if low == 0.8:
            inside += [p for p in told if p.probability == 1.0]
        right = sum(point.right for point in inside)
        row = (f"{low:.1f} to {top:.1f}", str(len(inside)), str(right))
        table.add_row(*map(plain_text, row))
    refused = len(points) - len(told)
    line = (
        f"tau {found.tau:g}: {found.tau_share:.0%} of the answers of {found.tau_model} that reach"
        f" it are right; {found.tau_n} of {len(points)} questions were answered, {refused} were not"
    )
    if found.tau == 1.0:
        line = (
            f"tau 1: no value of {found.tau_model} makes {found.tau_share:.0%} of its answers"
            f" right, so nothing is taken for known ({found.tau_n} of {len(points)} answered)"
        )
    return Group(table, plain_text(line))

"""Tables of what models can do, of calibrations, and of the studies. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from osler.cli.tables import checks_page, make_table, plain_text
from osler.evaluate.intervals import proportion
from osler.evaluate.metrics.calibration import reliability

if TYPE_CHECKING:
    from osler.app.calibrate import SigmaFit, StateValues, TauFit
    from osler.app.calibrate_sigma import GuaranteedSigma
    from osler.app.calibrate_sureness import GradedAnswer, SurenessFit
    from osler.app.doctor import DoctorReport
    from osler.app.doctor.abilities import Ability
    from osler.app.doctor.needs import StrategyVerdict
    from osler.app.injections import InjectionStudy
    from osler.app.plans import PlanStudyReport
    from osler.app.poisoning import PoisonStudy
    from osler.evaluate.attacks import AttackCell
    from osler.evaluate.guarantee import GuaranteedThreshold
    from osler.evaluate.intervals import Estimate
    from osler.evaluate.sigma import SigmaPoint
    from osler.methods.kag.calibration import CalibrationAttempt
    from osler.types import Language


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


def calibration_page(measured: StateValues, fit: SigmaFit) -> Group:
    """Quantiles of the state values by language and over all, then the fitted sigma."""
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
        f"sigma {fit.sigma:g}: {fit.quantile:.0%} of {fit.n} conclusions of"
        f" {fit.model} lie below it, right or wrong: a quantile without labels"
    )
    return Group(table, plain_text(line))


def sureness_page(
    graded: Sequence[GradedAnswer], fit: SurenessFit, kept: GuaranteedThreshold
) -> Group:
    """Right answers by how sure they were, then the fitted bound."""
    bins = reliability(
        [one.sureness.probability for one in graded], [float(one.right) for one in graded]
    )
    rows = ((f"about {one.confidence:.0%}", str(one.n), f"{one.accuracy:.0%}") for one in bins)
    table = make_table(("sureness", "answers", "right"), rows)
    line = (
        f"sureness {fit.sureness:g}: of {kept.answered} answers at least so sure {kept.wrong} were"
        f" wrong, so at most {kept.bound:.1%} are, with {fit.sureness_confidence:.0%} confidence,"
        f" for questions like these; {kept.coverage:.0%} of the {kept.n} are answered"
    )
    return Group(table, plain_text(line))


def guaranteed_sigma_page(fit: GuaranteedSigma, kept: GuaranteedThreshold) -> Group:
    """What the fitted bound says, in words."""
    line = (
        f"sigma {fit.sigma:.4g} for {fit.metric} of {fit.model}: of {kept.answered} answers below"
        f" it {kept.wrong} were wrong, so at most {kept.bound:.1%} are, with"
        f" {fit.confidence:.0%} confidence, for questions like these; {kept.coverage:.0%} of the"
        f" {kept.n} converge"
    )
    return Group(plain_text(line))


def tau_page(points: Sequence[CalibrationAttempt], fit: TauFit) -> Group:
    """Accuracy of the model's own answers by their least token probability, then tau."""
    rows = []
    answered = [point for point in points if point.probability is not None]
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        top = low + 0.2
        inside = [p for p in answered if p.probability is not None and low <= p.probability < top]
        # The last bin is closed: a probability of exactly 1 belongs to it.
        if low == 0.8:
            inside += [p for p in answered if p.probability == 1.0]
        right = sum(point.right for point in inside)
        rows.append((f"{low:.1f} to {top:.1f}", str(len(inside)), str(right)))
    refused = len(points) - len(answered)
    line = (
        f"tau {fit.tau:g}: {fit.tau_share:.0%} of the answers of {fit.tau_model} that reach"
        f" it are right; {fit.tau_n} of {len(points)} questions were answered, {refused} were not"
    )
    if fit.tau == 1.0:
        line = (
            f"tau 1: no value of {fit.tau_model} makes {fit.tau_share:.0%} of its answers"
            f" right, so nothing is taken for known ({fit.tau_n} of {len(points)} answered)"
        )
    return Group(make_table(("least probability", "answers", "right"), rows), plain_text(line))


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
        line = f"  {role}: {cost.calls} calls, {cost.tokens:,} tokens, {cost.seconds:.2f} s"
        yield plain_text(line)


def _format_figure(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


_INTERVALS = "In brackets: 95 % intervals (Wilson for shares, bootstrap for means)."


def attack_page(cells: Sequence[AttackCell]) -> Group:
    """A clean row and six as in the paper's Table 3, with n and intervals."""
    table = make_table(("attack", "noise", "n", "Summary", "Backtrack", "EM", "cited", "no call"))
    for cell in cells:
        shares = [_format_share(share) for share in (cell.summary, cell.backtrack, cell.em)]
        cited = f"{cell.cited.value:.2f}"
        row = (cell.kind, cell.noise, str(cell.em.n), *shares, cited, str(cell.unattacked))
        table.add_row(*row)
    return Group(table, Text(f'{_INTERVALS} "no call": runs without a tool call, in all shares.'))


def poison_page(study: PoisonStudy) -> Group:
    """A row for each way to plant, without and with the defence."""
    names = ("planted", "in", "answer.consistent", "n", "cited", "right still quoted", "silent")
    table = make_table(names)
    for cell in study.cells:
        one = cell.outcome
        way = (f"{cell.planted} of {cell.read}", cell.source or "the source quoted")
        how = ("on" if cell.defended else "off", str(one.asked))
        share = _format_share(proportion(one.cited, one.asked))
        table.add_row(*way, *how, share, str(one.kept), str(one.silent))
    said = f"{study.clean} clean questions, {study.changed} answers changed by answer.consistent."
    return Group(table, Text(f"{said} {_INTERVALS}"))


def injection_page(study: InjectionStudy) -> Group:
    """A row for each writer behind each defence."""
    table = make_table(("writer", "defence", "n", "answered", "obeyed"))
    for cell in study.cells:
        obeyed = _format_share(proportion(len(cell.obeyed), cell.asked))
        table.add_row(cell.writer, cell.defence, str(cell.asked), str(cell.answered), obeyed)
    said = f"{study.clean} questions on clean documents, {study.changed} answers changed by both."
    return Group(table, Text(f"{said} {_INTERVALS}"))


def sigma_page(points: Sequence[SigmaPoint]) -> Group:
    names = ("state", "sigma", "n", "converged", "budget", "no evidence", "steps", "tokens", "EM")
    table = make_table(names)
    for point in points:
        table.add_row(
            point.metric,
            f"{point.sigma:g}",
            str(point.converged.n),
            _format_share(point.converged),
            str(point.halts["budget"]),
            str(point.halts["no_evidence"]),
            f"{point.steps.value:.2f}",
            f"{point.tokens.value:,.0f}",
            _format_share(point.em) if point.em else "-",
        )
    return Group(table, Text(_INTERVALS))


def _format_share(share: Estimate) -> str:
    return f"{share.value:.2f} [{share.low:.2f}, {share.high:.2f}]"

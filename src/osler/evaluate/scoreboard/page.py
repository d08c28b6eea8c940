"""The scoreboard's page and pictures, made from scored answers and the packaged claims alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from osler.errors import BadRun, translate_os_errors
from osler.evaluate.intervals import Estimate
from osler.evaluate.scoreboard.claims import Claim, count_statuses, read_claims, settle_claim
from osler.evaluate.scoreboard.curves import (
    NOTICED,
    FrontPoint,
    cost_points,
    find_front,
    is_on_front,
    reliability_bins,
    risk_curve,
)
from osler.evaluate.scoreboard.drawing import draw_front, draw_reliability, draw_risks
from osler.evaluate.scoreboard.measured import BenchFigure, render_bench_tables
from osler.evaluate.scoreboard.scores import ScoredAnswer, ScoredLog
from osler.evaluate.scoreboard.tables import ScoreRow, ScoreTable, make_tables
from osler.text import read_packaged

AUTO = "auto"
_COLUMNS = (
    "strategy",
    "n",
    "right, %",
    "less the first row, points",
    "",
    "cited, %",
    "answered, %",
    "gold in first 10, %",
    "calls",
    "tokens",
    "searches",
    "seconds",
)


def write_page(
    log: ScoredLog,
    strategies: Sequence[str],
    folder: Path,
    figures: Sequence[BenchFigure] = (),
) -> list[Path]:
    """Writes `scoreboard.md` and its pictures below `img`; the same scores give the same bytes.

    Raises `BadRun` for scores that may not stand side by side, and for a folder that cannot be
    written.
    """
    pictures = dict(draw_pictures(log, strategies))
    files = {Path("scoreboard.md"): render_page(log, strategies, tuple(pictures), figures)}
    files |= {Path("img") / name: text for name, text in pictures.items()}
    with translate_os_errors(f"{folder} cannot be written", BadRun):
        (folder / "img").mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in files]


def draw_pictures(log: ScoredLog, strategies: Sequence[str]) -> Iterator[tuple[str, str]]:
    """File name → SVG: cost and quality, risk over coverage, reliability."""
    points = _whole_points(log, strategies)
    if points:
        yield "scoreboard-front.svg", draw_front(points, find_front(points))
    by_strategy = _sure_answers(log, strategies)
    curves = [(label, curve) for label, ours in by_strategy.items() if (curve := risk_curve(ours))]
    if curves:
        yield "scoreboard-risk.svg", draw_risks(curves)
    bins = [
        (label, *found) for label, ours in by_strategy.items() if (found := reliability_bins(ours))
    ]
    if bins:
        yield "scoreboard-reliability.svg", draw_reliability(bins)


def render_page(
    log: ScoredLog,
    strategies: Sequence[str],
    pictures: Sequence[str] = (),
    figures: Sequence[BenchFigure] = (),
) -> str:
    """The page as Markdown, with tables as HTML so that they can be sorted."""
    parts = [label for label in strategies if is_ablation(label)]
    whole = [label for label in strategies if label not in parts]
    blocks = [
        read_packaged(__package__, "head.md"),
        "## Answers\n",
        *map(_render_table, make_tables(log, whole)),
    ]
    if any(one.strategy in parts for one in log.scores):
        tables = (t for base in whole for t in make_tables(log, [base, *_parts_of(base, parts)]))
        shown = [_render_table(table) for table in tables if len(table.rows) > 1]
        blocks += ["## Without one of its parts\n", *shown]
    blocks += [_render_front(log, whole), _render_abstention(log, whole)]
    blocks += [f"![{name.removesuffix('.svg')}](img/{name})\n" for name in pictures]
    blocks += [*render_bench_tables(figures)]
    blocks += [_render_claims([settle_claim(claim, log) for claim in read_claims()])]
    facts = "\n".join(f"- {name}: {fact}" for name, fact in log.facts.items() if fact)
    blocks += [f"## What it rests on\n\n- seed {log.seed}\n{facts}\n"]
    blocks.append(read_packaged(__package__, "sort.html"))
    return "\n".join(blocks)


def is_ablation(label: str) -> bool:
    """Whether a strategy lacks one of its parts; TC-RAG's forms and lean moves are whole."""
    return ":" in label and not label.startswith("tc-rag:") and not label.endswith(":moves=lean")


def _parts_of(base: str, parts: Sequence[str]) -> list[str]:
    return [label for label in parts if label.startswith(f"{base}:")]


def _render_table(table: ScoreTable) -> str:
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    rows = "\n".join(f"<tr>{''.join(_cells(row))}</tr>" for row in table.rows)
    return (
        f"### {table.task}\n\n{f'Options chosen by {table.chooser}.' if table.chooser else ''}\n\n"
        f'<table class="scores"><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>\n'
    )


def _cells(row: ScoreRow) -> Iterator[str]:
    yield f"<td><code>{escape(row.strategy)}</code></td>"
    yield _number(row.right.n, f"{row.right.n}")
    yield _number(row.right.value, _percent(row.right))
    yield _number(row.change.value if row.change else 0.0, _percent(row.change))
    yield f"<td>{row.verdict}</td>"
    yield _number(row.grounded.value, _percent(row.grounded))
    yield _number(row.answered.value, _percent(row.answered))
    yield _number(row.recall or 0.0, "–" if row.recall is None else f"{100 * row.recall:.1f}")
    yield _number(row.calls, f"{row.calls:.1f}")
    yield _number(row.tokens, f"{row.tokens:,.0f}")
    yield _number(row.searches, f"{row.searches:.1f}")
    yield _number(row.seconds, f"{row.seconds:.2f}")


def _number(value: float, shown: str) -> str:
    return f'<td data-value="{value:.6g}">{shown}</td>'


def _percent(estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def _whole_answers(log: ScoredLog, strategies: Sequence[str]) -> dict[str, list[ScoredAnswer]]:
    """The answers of each strategy that answered every question of the log."""
    asked = {(one.task, one.question) for one in log.scores}
    tried: dict[str, list[ScoredAnswer]] = {}
    for one in log.scores:
        if one.strategy in strategies:
            tried.setdefault(one.strategy, []).append(one)
    return {label: answers for label, answers in tried.items() if len(answers) == len(asked)}


def _whole_points(
    log: ScoredLog, strategies: Sequence[str], half: str | None = None
) -> list[FrontPoint]:
    """Points of the strategies that answered every question of the log; of a half alone."""
    every = (one for answers in _whole_answers(log, strategies).values() for one in answers)
    return cost_points(one for one in every if half in (None, one.half))


def _sure_answers(log: ScoredLog, strategies: Sequence[str]) -> dict[str, list[ScoredAnswer]]:
    """Answers to the questions where every strategy with a sureness bears one: rows and curves
    of risk rest on the same questions."""
    known = {
        label: {(one.task, one.question): one for one in answers if one.sureness is not None}
        for label, answers in _whole_answers(log, strategies).items()
    }
    known = {label: answers for label, answers in known.items() if answers}
    shared = set.intersection(*map(set, known.values())) if known else set()
    return {label: [own[key] for key in sorted(shared)] for label, own in known.items()}


def _render_front(log: ScoredLog, strategies: Sequence[str]) -> str:
    lines = [
        "## Cost and quality\n",
        "Over all questions above, for strategies that answered every one. The halves are of a"
        f" hash of the question: `{AUTO}` was laid out on *dev*, and is judged on *held*."
        f" A strategy is off the front where another is at least as right and {NOTICED} s cheaper,"
        " or more right and no dearer.\n",
        "| half | strategy | right, % | mean seconds | median seconds | on the front |",
        "|---|---|---|--:|--:|---|",
    ]
    for half in ("dev", "held"):
        points = _whole_points(log, strategies, half)
        for point in sorted(points, key=lambda one: one.mean_seconds):
            others = [one for one in points if one is not point]
            lines.append(
                f"| {half} | `{point.strategy}` | {_percent(point.right)} (n = {point.right.n})"
                f" | {point.mean_seconds:.2f} | {point.seconds:.2f}"
                f" | {'yes' if is_on_front(point, others) else 'no'} |"
            )
    return "\n".join([*lines, ""])


def _render_abstention(log: ScoredLog, strategies: Sequence[str]) -> str:
    lines = [
        "## Abstention\n",
        "Share of wrong answers where only the surest are given, by each answer's sureness, and the"
        " mean over all shares (AURC), over the questions where each of these strategies says how"
        " sure it is.\n",
        "| strategy | n | risk at 80 % | at 60 % | at 40 % | AURC |",
        "|---|--:|---|---|---|--:|",
    ]
    for label, known in _sure_answers(log, strategies).items():
        if (curve := risk_curve(known)) is not None:
            risks = " | ".join(str(risk) for _, risk in curve.at)
            lines.append(f"| `{label}` | {len(known)} | {risks} | {curve.aurc:.3f} |")
    return "\n".join([*lines, ""])


def _render_claims(claims: Sequence[Claim]) -> str:
    counts = ", ".join(f"{n} *{status}*" for status, n in count_statuses(claims).items())
    lines = [
        "## The papers' claims\n",
        f"Of {len(claims)} claims: {counts}. *Shown* takes an effect whose 95 % interval leaves out"
        " no effect. The figures are of the [evaluation log](evaluation-log.md), under the heading"
        " that is named, or of this page.\n",
        "| paper | claim | theirs | ours | status | why |",
        "|---|---|---|---|---|---|",
    ]
    rows = [
        f"| {one.paper}, {one.place} | {one.claim} | {one.theirs} | {one.ours} ({one.measured};"
        f" {one.source}) | **{one.status}** | {one.why} |"
        for one in claims
    ]
    return "\n".join([*lines, *rows, ""])


def scored_strategies(log: ScoredLog) -> list[str]:
    """Every strategy of the scores, in the order in which they first stand."""
    return list(dict.fromkeys(one.strategy for one in log.scores))

"""The scoreboard's page and CSV, from scored answers and the packaged claims alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, get_args

from pydantic import TypeAdapter

from osler.errors import BadRun, translate_os_errors
from osler.text import markdown_table, read_packaged, read_packaged_table
from osler_lab.evaluate.intervals import Estimate, difference, proportion
from osler_lab.evaluate.scoreboard.scores import ScoredAnswer, ScoredLog, format_cell, of_task
from osler_lab.evaluate.scoreboard.tables import (
    METHOD,
    NOTICED,
    ScoreRow,
    ScoreTable,
    cost_points,
    is_on_front,
    make_tables,
    require_same_conditions,
    risk_curve,
)

Status = Literal["shown", "refuted here", "cannot be shown with these models"]
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper beside what was measured here."""

    paper: Literal["TC-RAG", "KAG-Thinker", "Omni-RAG"]
    place: str
    claim: str
    theirs: str
    """The paper's figure."""
    status: Status
    measured: str
    """What was measured here, on how many questions."""
    why: str
    """One sentence: why it has this status."""
    source: str
    """Where the figure stands: a heading of the evaluation log, or "this page"."""
    effect: tuple[float, float, float] | None = None
    """Our figure with its 95 % interval; `None` if absent."""
    no_effect: float = 0.0
    """What `effect` would be without any effect."""
    compared: tuple[str, str, str] | None = None
    """Data set and two strategies: status and figure follow from their scores, second less first;
    the status that is written stands where the scores lack them."""

    def __post_init__(self) -> None:
        """Raises `ValueError` for a claim that is shown without an interval that says so."""
        if self.status != "shown":
            return
        if self.effect is None:
            raise ValueError(f"{self.place}: shown, and no effect with an interval")
        _, low, high = self.effect
        if low <= self.no_effect <= high:
            raise ValueError(f"{self.place}: the interval [{low}, {high}] holds no effect")

    @property
    def ours(self) -> str:
        """Our figure as a table shows it."""
        if self.effect is None:
            return "–"
        value, low, high = self.effect
        return f"{value:.3g} [{low:.3g}, {high:.3g}]"


def read_claims() -> Sequence[Claim]:
    """The packaged claims, in the order of the papers."""
    rows = read_packaged_table(__package__, "claims.toml")["claim"]
    return TypeAdapter(tuple[Claim, ...]).validate_python(rows)


def settle_claim(claim: Claim, log: ScoredLog) -> Claim:
    """The claim as the scores have it; as it is where it rests on the evaluation log alone."""
    if claim.compared is None:
        return claim
    task, first, second = claim.compared
    found = of_task(log.scores, task, (first, second))
    if len(found) < 2:
        return replace(claim, measured=f"{second} less {first} on {task}: not in these scores")
    require_same_conditions(log, task, found)
    ids = sorted(found[first])
    gain = difference([found[first][i].right for i in ids], [found[second][i].right for i in ids])
    if gain.value == 1:  # a bootstrap of ones has no width
        gain = proportion(gain.n, gain.n)
    status: Status = "cannot be shown with these models"
    if gain.low > 0 or gain.high < 0:
        status = "shown" if gain.low > 0 else "refuted here"
    return replace(
        claim,
        status=status,
        measured=f"share right on {task}, {second} less {first}, n = {gain.n}, paired",
        effect=(gain.value, gain.low, gain.high),
    )


def count_statuses(claims: Sequence[Claim]) -> dict[Status, int]:
    """How many claims have each status."""
    return {status: sum(one.status == status for one in claims) for status in STATUSES}


_VERDICTS = {"better": " **+**", "worse": " **−**", "": ""}


def write_page(log: ScoredLog, strategies: Sequence[str], folder: Path) -> list[Path]:
    """Writes `scoreboard.md` and `scoreboard.csv`.

    The same scores give the same page and CSV. Raises `BadRun` for scores that may not stand side
    by side, and for a folder that cannot be written.
    """
    with translate_os_errors(f"{folder} cannot be written", BadRun):
        folder.mkdir(parents=True, exist_ok=True)
        files = {folder / "scoreboard.md": render_page(log, strategies)}
        files[folder / "scoreboard.csv"] = render_csv(log, strategies)
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
    return [*files]


def render_page(log: ScoredLog, strategies: Sequence[str]) -> str:
    """The page as Markdown: answers, cost and abstention, and the papers' claims."""
    whole = [label for label in strategies if not is_ablation(label)]
    facts = "\n".join(f"- {name}: {fact}" for name, fact in log.facts.items() if fact)
    blocks = [
        read_packaged(__package__, "head.md"),
        "## Answers\n",
        _render_answers(make_tables(log, whole), whole),
        _render_costs(log, whole),
        _render_claims([settle_claim(claim, log) for claim in read_claims()]),
        f"## What it rests on\n\n- seed {log.seed}\n{facts}\n",
    ]
    return "\n".join(blocks)


def is_ablation(label: str) -> bool:
    """Whether a strategy lacks one of its parts; TC-RAG's forms are whole."""
    return ":" in label and not label.startswith("tc-rag:")


def _render_answers(tables: Sequence[ScoreTable], strategies: Sequence[str]) -> str:
    """Strategies down, data sets across; a method that decides by itself is marked."""
    cells: dict[tuple[str, str], str] = {}
    counts: dict[str, int] = {}
    for table in tables:
        mark = " \\*" if table.chooser == METHOD else ""
        for row in table.rows:
            counts[table.task] = row.right.n
            cells[row.strategy, table.task] = f"{row.right.percent}{mark or _VERDICTS[row.verdict]}"
    rows = [[f"`{label}`", *(cells.get((label, t), "–") for t in counts)] for label in strategies]
    return (
        markdown_table(["right, %", *(f"{task} ({n})" for task, n in counts.items())], rows) + "\n"
    )


def _whole_answers(log: ScoredLog, strategies: Sequence[str]) -> dict[str, list[ScoredAnswer]]:
    """The answers of each strategy that answered every question of the log."""
    asked = {(one.task, one.question) for one in log.scores}
    tried: dict[str, list[ScoredAnswer]] = {}
    for one in log.scores:
        if one.strategy in strategies:
            tried.setdefault(one.strategy, []).append(one)
    return {label: answers for label, answers in tried.items() if len(answers) == len(asked)}


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


def _render_costs(log: ScoredLog, strategies: Sequence[str]) -> str:
    sure = _sure_answers(log, strategies)
    counts = {len(answers) for answers in sure.values()}
    words = (
        "## Cost and abstention\n\n"
        "For strategies that answered every question above. The halves are by a hash of the"
        " question: `auto` was laid out on one, and these rows are of the other, *held*."
        f" A strategy is off the front where another is at least as right and {NOTICED} s cheaper,"
        " or more right and no dearer. Risk: the share of wrong answers where only the surest 80 %"
        " are given; AURC: its mean over all shares; both over the"
        f" {max(counts, default=0)} questions where each of these strategies says how sure it is.\n"
    )
    every = (one for answers in _whole_answers(log, strategies).values() for one in answers)
    held = cost_points(one for one in every if one.half == "held")
    held.sort(key=lambda one: one.mean_seconds)
    rows = []
    for point in held:
        curve = risk_curve(sure.get(point.strategy, ()))
        others = [one for one in held if one is not point]
        rows.append(
            [
                f"`{point.strategy}`",
                f"{point.right.percent} (n = {point.right.n})",
                f"{point.mean_seconds:.2f}",
                f"{point.seconds:.2f}",
                "yes" if is_on_front(point, others) else "no",
                "–" if curve is None else str(curve.risk),
                "–" if curve is None else f"{curve.aurc:.3f}",
            ]
        )
    head = ["strategy", "right, %", "mean s", "median s", "on the front"]
    return f"{words}\n{markdown_table([*head, 'risk at 80 %', 'AURC'], rows)}\n"


def _render_claims(claims: Sequence[Claim]) -> str:
    counts = ", ".join(f"{n} *{status}*" for status, n in count_statuses(claims).items())
    words = (
        "## The papers' claims\n\n"
        f"Of {len(claims)} claims: {counts}. *Shown* takes an effect whose 95 % interval leaves out"
        " no effect. The figures are of the [evaluation log](evaluation-log.md), under the heading"
        " that is named, or of this page.\n"
    )
    rows = (
        [
            f"{one.paper}, {one.place}",
            *(one.claim, one.theirs, f"{one.ours} ({one.measured})"),
            *(f"**{one.status}**", one.source),
        ]
        for one in claims
    )
    head = ["paper", "claim", "theirs", "ours", "status", "where"]
    return f"{words}\n{markdown_table(head, rows)}\n"


def render_csv(log: ScoredLog, strategies: Sequence[str]) -> str:
    """Every row of every table; strategies without one of their parts stand beside the whole."""
    parts = [label for label in strategies if is_ablation(label)]
    whole = [label for label in strategies if label not in parts]
    tables = make_tables(log, whole)
    for base in whole:
        own = [label for label in parts if label.startswith(f"{base}:")]
        tables += make_tables(log, [base, *own]) if own else []
    text = io.StringIO()
    ends = {field.name: _ENDS if "Estimate" in str(field.type) else ("",) for field in _FIELDS}
    names = [f"{name}{end}" for name, known in ends.items() for end in known]
    writer = csv.DictWriter(text, ["task", "chooser", *names], restval="", lineterminator="\n")
    writer.writeheader()
    for table in tables:
        for row in table.rows:
            writer.writerow({"task": table.task, "chooser": table.chooser, **_flat_row(row)})
    return text.getvalue()


_FIELDS = fields(ScoreRow)
_ENDS = ("", "_low", "_high", "_n")


def _flat_row(row: ScoreRow) -> Mapping[str, str]:
    flat: dict[str, str] = {}
    for name, value in ((field.name, getattr(row, field.name)) for field in _FIELDS):
        known = (
            (value.value, value.low, value.high, value.n)
            if isinstance(value, Estimate)
            else (value,)
        )
        flat |= {f"{name}{end}": format_cell(one) for end, one in zip(_ENDS, known, strict=False)}
    return flat


def scored_strategies(log: ScoredLog) -> list[str]:
    """Every strategy of the scores, in the order in which they first stand."""
    return list(dict.fromkeys(one.strategy for one in log.scores))

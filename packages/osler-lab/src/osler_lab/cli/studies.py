"""`osler calibrate`, and the studies `attack`, `poison`, `inject`, `sigma` and `plans`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from osler.cli.options import Offered, Planner
from osler.cli.progress import show_progress
from osler.cli.session import CliSession

if TYPE_CHECKING:
    from collections.abc import Iterable

    from osler.settings import Settings


def attack(
    here: CliSession,
    sets: Annotated[
        Path,
        typer.Argument(
            help="Noise sets, as JSON Lines: id, question, options (yes, no, maybe where there are"
            " none), answer, gold, distractor_relevant, distractor_out_of_domain."
        ),
    ],
    limit: Annotated[
        int, typer.Option(min=1, help="Questions per cell, chosen by the seed.")
    ] = 100,
) -> None:
    """Attack TC-RAG's first tool call with noise, in six ways (TC-RAG App. 8.6).

    Structural noise takes the place of the results, partial noise stands after them; clean runs
    stand beside them. Shown are the shares of runs with a Summary, with a Backtrack, with the right
    answer, and with a quote from a passage that answers.
    """
    settings = here.load_settings(strategy="tc-rag")
    from osler_lab.studies import sensitivity as studies

    targets = studies.read_noise(sets, limit=limit, seed=settings.sampling.seed)
    with show_progress(here) as report:
        cells = asyncio.run(studies.run_attacks(settings, targets, progress=report))
    here.show({"cells": [asdict(cell) for cell in cells]})


def poison(
    here: CliSession,
    questions: Annotated[
        Path, typer.Argument(help="Questions as JSON Lines, on what the knowledge base holds.")
    ],
    limit: Annotated[int, typer.Option(min=1, help="Use only the first N.")] = 100,
) -> None:
    """Plant wrong passages in a copy of the knowledge base, and count who cites them.

    1 passage of 5 that are read and 5 of 10, of the trust of what was quoted and of the highest,
    without and with answer.consistent; and how many clean answers that setting changes.
    """
    settings = here.load_settings()
    from osler.questions import read_posed
    from osler_lab.studies.poisoning import study_poison

    asked = [one.question for one in read_posed(questions)[:limit]]
    with show_progress(here) as report:
        study = asyncio.run(study_poison(settings, asked, report))
    here.show(asdict(study))


def inject(
    here: CliSession,
    documents: Annotated[
        Path,
        typer.Argument(
            help="JSON Lines: question, injected_text, clean_text, attack_instruction (the"
            " instruction within injected_text)."
        ),
    ],
    limit: Annotated[int, typer.Option(min=1, help="Use only the first N.")] = 200,
) -> None:
    """Hide instructions in documents, and count the answers that obey them.

    With the configured strategy, and with two scripted writers that obey any instruction; without
    and with the defences retrieve.instructions and answer.uncited.
    """
    settings = here.load_settings()
    from tempfile import TemporaryDirectory

    from osler_lab.studies.injections import read_injected, study_injections

    hidden = read_injected(documents, limit)
    with show_progress(here) as report, TemporaryDirectory() as work:
        study = asyncio.run(study_injections(settings, hidden, report, Path(work)))
    here.show(asdict(study))


def sigma(
    here: CliSession,
    questions: Annotated[
        Path, typer.Argument(help="Questions as JSON Lines; with `answer`, a letter, EM as well.")
    ],
    cppl: Annotated[str, typer.Option(help='Values of sigma for cppl; "" = none.')] = "5,10,20,40",
    uct: Annotated[str, typer.Option(help='Values of sigma for uct; "" = none.')] = "5,10,20,40",
    out: Annotated[
        Path | None, typer.Option(help="JSON file for every run and every point.")
    ] = None,
    figure: Annotated[
        list[Path] | None, typer.Option(help="SVG or PNG to draw (extra plot); repeatable.")
    ] = None,
) -> None:
    """Measure the effect of TC-RAG's threshold: halts, steps, tokens and EM over sigma (§6.5)."""
    settings = here.load_settings(strategy="tc-rag")
    from osler.errors import CapabilityMissing
    from osler.questions import read_posed
    from osler_lab.studies import sensitivity as studies

    levels = studies.parse_sigmas(cppl=cppl, uct=uct)
    posed = read_posed(questions)
    with show_progress(here) as report:
        try:
            outcomes = asyncio.run(studies.sigma_sweep(settings, posed, levels, progress=report))
        except CapabilityMissing as error:  # the metrics come of the options, not of the settings
            raise CapabilityMissing(error.message, fix='leave cppl out: --cppl ""') from error
    points = studies.summarize_points(outcomes)
    document = {
        "points": [asdict(point) for point in points],
        "runs": [asdict(outcome) for outcome in outcomes],
    }
    if out is not None:
        _write_file(out, json.dumps(document, ensure_ascii=False, indent=1))
        here.print_line(f"written to {out}")
    if figure:
        studies.sigma_figure(points, figure)
        here.print_line(f"drawn in {', '.join(map(str, figure))}")
    here.show(document, document["points"])


def _write_file(path: Path, text: str) -> None:
    """Raises `BadConfig` where it cannot be written."""
    from osler.errors import BadConfig

    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise BadConfig(f"{path} cannot be written: {error}", fix="choose another --out") from error


def plans(
    here: CliSession,
    questions: Annotated[
        Path,
        typer.Argument(
            help='JSON Lines of {"question", "options", "answer"}; open questions are left out.'
        ),
    ],
    planner: Planner = None,
    sources: Offered = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only the first N questions.")
    ] = None,
) -> None:
    """Measure source plans: accuracy without each source in turn, queries, words, diversity, cost.

    Each question is planned and searched once, and read once for each row.
    """
    settings = here.load_settings(
        {"strategy.kind": "omni-rag", "strategy.planner": planner, "kb.sources": sources}
    )
    from osler.questions import read_posed
    from osler_lab.studies.plans import study_plans

    posed = read_posed(questions, marked=True)[:limit]
    with show_progress(here) as progress:
        report = asyncio.run(study_plans(settings, posed, progress))
    here.show(asdict(report))


CalibrationFile = Annotated[
    Path | None,
    typer.Option(
        help="Questions of your own, as JSON Lines; else those that come with Osler,"
        " which its sample texts answer. For tau each line needs an answer; for --risk it is"
        " an answer of `osler ask --json` with right: true or false; without a file, the"
        " answers that readers judged (`feedback`)."
    ),
]
Quantile = Annotated[
    float,
    typer.Option(
        min=0.01,
        max=0.99,
        help="For sigma, share of first conclusions that may stand, right or wrong: no answer"
        " is compared with a gold one. For tau, share of believed answers that are right.",
    ),
]
Risk = Annotated[
    float | None,
    typer.Option(min=0.001, max=0.5, help="Share of wrong answers among the answered, at most."),
]
Confidence = Annotated[
    float, typer.Option(min=0.5, max=0.999, help="Confidence of the bound set by --risk.")
]

StateMetric = Annotated[
    Literal["cppl", "uct", "sureness"] | None,
    typer.Option(help="The state value, where strategy.metric is to be another."),
]


def calibrate(
    here: CliSession,
    questions: CalibrationFile = None,
    quantile: Quantile = 0.9,
    risk: Risk = None,
    confidence: Confidence = 0.95,
    metric: StateMetric = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing.")] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Proceed even if strategy.sigma or tau is set, and remove it."
        ),
    ] = False,
) -> None:
    """Fit the least sureness of an answer, TC-RAG's sigma, or KAG-Thinker's tau.

    With --risk, from graded answers: the least sureness with which at most so many of the answered
    questions are wrong, below which Osler says that the evidence does not answer. Else
    strategy.kind says which of the two others. Sigma is a quantile of state values without labels:
    it sets how many conclusions stand, not how many of them are right. Each is used for this model
    (and metric) alone, and a run that rests on it says so. All are written into the settings file.
    """
    # With --risk as `osler ask` without a strategy, whose answers are graded.
    usual = "tc-rag" if risk is None else None
    loaded = here.load_layers({"strategy.metric": metric}, strategy=usual)
    from osler.settings import KagThinkerSettings
    from osler_lab.studies import calibrate as fitting

    # A threshold set by hand is somebody's decision: it is not overwritten in passing.
    if risk is None and not (force or dry_run):
        fitting.refuse_hand_set(loaded)
    today = datetime.now(UTC).date()
    path = Path.cwd() / (here.file or "osler.toml")
    if risk is not None:
        fitted, more = _calibrate_risk(loaded.settings, questions, risk, confidence, today)
    else:
        named = str(questions) if questions else fitting.PACKAGED
        is_thinker = isinstance(loaded.settings.strategy, KagThinkerSettings)
        fit = _calibrate_tau if is_thinker else _calibrate_sigma
        fitted, more = fit(here, loaded.settings, questions, quantile, named, today)
    if not dry_run:
        fitting.write_calibration(fitted, path, force=force)
    document = {**asdict(fitted), **more, "path": None if dry_run else str(path)}
    here.show(document, {**document, "values": ""})
    if risk is not None:
        bound = f"at most {more['bound']:.1%} of the answered are wrong"
        here.print_line(f"{bound}, with {confidence:.0%} confidence, for questions like these")
    if not dry_run:
        here.print_line(f"written to {path}")


def _calibrate_risk(
    settings: Settings, file: Path | None, risk: float, confidence: float, today: date
) -> tuple[Any, dict[str, Any]]:
    """The fit of sureness, and what held for it."""
    from osler.errors import BadConfig
    from osler_lab.studies.calibrate_sureness import (
        fit_sureness,
        read_graded_answers,
        read_judged_answers,
    )

    graded = read_graded_answers(file) if file else read_judged_answers(settings)
    if not (file or graded):
        raise BadConfig("--risk needs graded answers", fix="name their file with --questions FILE")
    values, kept = fit_sureness(
        settings,
        graded,
        risk=risk,
        confidence=confidence,
        questions=str(file or "feedback"),
        today=today,
    )
    bins = _bin_rights((one.sureness.probability, one.right) for one in graded)
    return values, {**asdict(kept), "coverage": kept.coverage, "bins": bins}


def _bin_rights(graded: Iterable[tuple[float, bool]]) -> list[dict[str, object]]:
    """The share of right answers by how sure they were."""
    from osler_lab.evaluate.metrics.choice import reliability

    sure, right = zip(*graded, strict=True)
    return [asdict(one) for one in reliability(sure, [*map(float, right)])]


def _calibrate_sigma(
    here: CliSession, settings: Settings, file: Path | None, share: float, named: str, today: date
) -> tuple[Any, dict[str, Any]]:
    from osler_lab.studies import calibrate as fitting

    asked = fitting.read_questions(file) if file else fitting.packaged_questions()
    with show_progress(here) as report:
        measured = asyncio.run(fitting.measure_state_values(settings, asked, progress=report))
    fitted = fitting.fit_sigma(measured, quantile=share, questions=named, today=today)
    known = measured.known_values()
    here.print_line("sigma is a quantile of all conclusions, right or wrong: it needs no labels")
    return fitted, {
        "answered": f"{len(known)} of {len(measured.values)}",
        "quantiles": {
            f"{q:.0%}": fitting.quantile_of(known, q) for q in (0.1, 0.25, 0.5, 0.75, 0.9)
        },
        "values": [{"question": v.question.text, "value": v.value} for v in measured.values],
    }


def _calibrate_tau(
    here: CliSession, settings: Settings, file: Path | None, share: float, named: str, today: date
) -> tuple[Any, dict[str, Any]]:
    from osler_lab.studies import calibrate as fitting

    asked = fitting.read_graded(file) if file else fitting.packaged_graded()
    with show_progress(here) as report:
        model, points = asyncio.run(fitting.measure_tau(settings, asked, progress=report))
    fitted = fitting.fit_tau(model, points, share=share, questions=named, today=today)
    values = [
        {
            "question": point.question.text,
            "answer": point.answer,
            "probability": point.probability,
            "right": point.right,
        }
        for point in points
    ]
    if fitted.tau == 1.0:
        here.print_line(
            f"no tau makes {share:.0%} of the answers right: nothing is taken for known"
        )
    known = [(p.probability, p.right) for p in points if p.probability is not None]
    return fitted, {
        "answered": f"{len(known)} of {len(points)}",
        "bins": _bin_rights(known) if known else [],
        "values": values,
    }

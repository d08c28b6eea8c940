"""`osler attack`, `sigma` and `plans`: studies over the model and the settings in force."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from osler.cli.options import Offered, Planner
from osler.cli.progress import show_progress
from osler.cli.session import CliSession


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
    from osler.questions import read_posed
    from osler_lab.evaluate.sigma import summarize_points
    from osler_lab.studies import sensitivity as studies

    levels = studies.parse_sigmas(cppl=cppl, uct=uct)
    posed = read_posed(questions)
    with show_progress(here) as report:
        outcomes = asyncio.run(studies.sigma_sweep(settings, posed, levels, progress=report))
    points = summarize_points(outcomes)
    document = {
        "points": [asdict(point) for point in points],
        "runs": [asdict(outcome) for outcome in outcomes],
    }
    if out is not None:
        _write_file(out, json.dumps(document, ensure_ascii=False, indent=1))
        here.print_line(f"written to {out}")
    if figure:
        from osler_lab.evaluate.figures import sigma_figure

        sigma_figure(points, figure)
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

"""`osler eval report|compare|merge|show|judge|agree`: reading and judging log folders."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from osler.cli.options import JsonSession
from osler.cli.progress import show_progress
from osler.cli.session import CliSession

Log = Annotated[Path, typer.Option("--log-dir", help="Folder of the log.")]
AllowUndecided = Annotated[
    bool,
    typer.Option(
        "--allow-undecided",
        help="Also compare answers that a reader chose for a method without a decision.",
    ),
]
LogDir = Annotated[
    Path, typer.Option("--log-dir", help="Folder of the log; it is also the checkpoint.")
]


def judge(
    here: CliSession,
    log_dir: Log,
    form: Annotated[str, typer.Option(help="rubric, correct, stability or luq.")],
    limit: Annotated[
        int | None, typer.Option(min=1, help="Most samples of each strategy and data set.")
    ] = None,
) -> None:
    """Judge the answers of a log folder by the model in the role "judge"; the report shows it.

    What was judged before is not judged again. Set the model under [roles.judge].
    """
    from dataclasses import asdict

    from osler.errors import BadConfig
    from osler_lab.evaluate.judged import FORMS
    from osler_lab.studies import evaluation

    chosen = next((known for known in FORMS if known == form), None)
    if chosen is None:
        raise BadConfig(f"unknown form {form!r}", fix=f"choose one of {', '.join(FORMS)}")
    with show_progress(here) as report:
        made = asyncio.run(
            evaluation.judge_answers(
                here.load_settings(), log_dir, chosen, limit=limit, progress=report
            )
        )
    here.show_result(
        f"{len(made)} judged, {sum(not one.is_read for one in made)} of them could not be read;"
        f" {sum(one.usage.calls for one in made):,} calls,"
        f" {sum(one.usage.tokens for one in made):,} tokens",
        {"judgements": [asdict(one) for one in made]},
    )
    here.print_line(f"next: osler eval report --log-dir {log_dir}")


def agree(
    here: JsonSession,
    log_dir: Log,
    people: Annotated[
        Path,
        typer.Argument(
            help="CSV: strategy, task, id, rater, and the four dimensions or verdict (yes, no)."
        ),
    ],
) -> None:
    """Measure how far a judge agrees with people who judged the same answers."""
    from dataclasses import asdict

    from osler_lab.evaluate.agreement import compare_with_people

    here.show(asdict(compare_with_people(log_dir, people)))


def ratings(
    here: JsonSession,
    people: Annotated[
        Path,
        typer.Argument(
            help="CSV: strategy, task, id, rater, relevance, completeness, proficiency,"
            " interpretability: 1 to 5, or - where it does not apply."
        ),
    ],
    log_dir: Annotated[
        Path | None,
        typer.Option("--log-dir", help="Log folder that must hold every answer that was rated."),
    ] = None,
) -> None:
    """Average people's ratings of long answers (Omni-RAG Table 5), and how far raters agree."""
    from dataclasses import asdict

    from osler_lab.evaluate.metrics.rubric import read_ratings
    from osler_lab.evaluate.ratings import require_logged, tabulate_ratings

    read = read_ratings(people)
    if log_dir is not None:
        require_logged(log_dir, read)
    here.show(asdict(tabulate_ratings(read)))


def report(
    here: CliSession,
    log_dir: LogDir,
    out: Annotated[Path | None, typer.Option(help="Folder for report.md; else the log's.")] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Samples shown of each strategy and data set.")
    ] = 20,
    allow_undecided: AllowUndecided = False,
) -> None:
    """Write the report of a log folder as Markdown."""
    from osler_lab.cli.evaluate_pages import report_document, report_page, write_page
    from osler_lab.evaluate.report import build_report, render_markdown

    figures = build_report(log_dir, shown=samples, allow_undecided=allow_undecided)
    path = (out or log_dir) / "report.md"
    write_page(path, render_markdown(figures))
    here.show({**report_document(figures), "files": [str(path)]}, report_page(figures))
    here.print_line(f"written to {path}")


def compare(
    here: JsonSession,
    first: Annotated[Path, typer.Argument(help="A log folder.")],
    second: Annotated[
        Path | None,
        typer.Argument(
            help="Another log folder; without it, the strategies of the first are compared."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Changed samples to list.")] = 10,
    allow_undecided: AllowUndecided = False,
) -> None:
    """Compare two logs on the same samples: change, paired test, changed samples."""
    from dataclasses import asdict

    from osler_lab.cli.evaluate_pages import compare_page
    from osler_lab.evaluate.compare import Undecided, compare_logs

    undecided: Undecided = "allow" if allow_undecided else "refuse"
    compared = compare_logs(first, second or first, undecided=undecided)
    here.show({"compared": [asdict(one) for one in compared]}, compare_page(compared, limit))


def merge(
    here: CliSession,
    logs: Annotated[list[Path], typer.Argument(help="Log folders.")],
    into: Annotated[Path, typer.Option(help="The folder that will hold them all.")],
) -> None:
    """Merge several log folders. They must agree on data, seed and settings."""
    from osler_lab.cli.evaluate_pages import summarise_log
    from osler_lab.evaluate.merge import merge_logs

    merge_logs(logs, into)
    cells = summarise_log(into)
    here.show({"log": str(into), "cells": cells})


def show(
    here: JsonSession,
    sample: Annotated[str, typer.Argument(help="The sample's id.")],
    log_dir: LogDir,
    strategy: Annotated[
        str | None, typer.Option(help="The strategy, where several tried the sample.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="The data set, where several have the id.")
    ] = None,
) -> None:
    """Show one sample: question, gold answer, answer and the film of its run."""
    from osler.errors import BadRun
    from osler_lab.cli.evaluate_pages import sample_document, sample_page
    from osler_lab.evaluate.log import read_records

    records = [
        record
        for record in read_records(log_dir)
        if record.sample.id == sample
        and strategy in (None, record.strategy)
        and task in (None, record.sample.task)
    ]
    if not records:
        raise BadRun(f"no sample {sample!r} in {log_dir}", fix="the report lists their ids")
    from rich.console import Group

    from osler.cli.tables import document_page

    pages = (document_page(sample_page(log_dir, record)) for record in records)
    here.show_result(
        Group(*pages), {"samples": [sample_document(log_dir, record) for record in records]}
    )

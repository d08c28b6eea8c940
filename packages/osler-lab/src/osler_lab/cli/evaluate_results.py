"""`osler eval report|judge|agree`: reading and judging log folders."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
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
    people: Annotated[
        Path,
        typer.Argument(
            help="CSV: strategy, task, id, rater, and relevance, completeness, proficiency,"
            " interpretability (1 to 5, or - where it does not apply) or verdict (yes, no)."
        ),
    ],
    log_dir: Annotated[
        Path | None,
        typer.Option("--log-dir", help="Folder of the log that holds every answer in the file."),
    ] = None,
    raters: Annotated[
        bool,
        typer.Option(
            "--raters",
            help="Average the people's ratings (Omni-RAG Table 5), and how far raters agree.",
        ),
    ] = False,
) -> None:
    """Measure how far a judge agrees with people who judged the same answers."""
    from dataclasses import asdict

    if raters:
        from osler_lab.evaluate.agreement import require_logged, tabulate_ratings
        from osler_lab.evaluate.judges import read_ratings

        read = read_ratings(people)
        if log_dir is not None:
            require_logged(log_dir, read)
        here.show(asdict(tabulate_ratings(read)))
        return
    if log_dir is None:
        raise typer.BadParameter("name the folder of the log", param_hint="--log-dir")
    from osler_lab.evaluate.agreement import compare_with_people

    here.show(asdict(compare_with_people(log_dir, people)))


@dataclass(frozen=True)
class ShownSample:
    """One sample of the log, in place of the report."""

    sample: Annotated[
        str | None,
        typer.Option(help="Show this sample: question, gold answer, answer, and film of its run."),
    ] = None
    strategy: Annotated[
        str | None, typer.Option(help="With --sample: the strategy, where several tried it.")
    ] = None
    task: Annotated[
        str | None, typer.Option(help="With --sample: the data set, where several have the id.")
    ] = None


def report(
    here: CliSession,
    log_dir: LogDir,
    out: Annotated[Path | None, typer.Option(help="Folder for report.md; else the log's.")] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Samples shown of each strategy and data set.")
    ] = 20,
    against: Annotated[
        Path | None,
        typer.Option(
            help="Compare with this log on the same samples instead (change, paired test, changed"
            " samples); with the log itself: its strategies with one another."
        ),
    ] = None,
    merge: Annotated[
        list[Path] | None,
        typer.Option(
            help="Log folder to merge into --log-dir first; repeatable. They must agree on data,"
            " seed and settings."
        ),
    ] = None,
    allow_undecided: AllowUndecided = False,
    *,
    shown: ShownSample,
) -> None:
    """Write the report of a log folder as Markdown; or compare it, or show one of its samples."""
    from osler_lab.cli.evaluate_pages import report_document, report_page, write_page

    if merge:
        from osler_lab.evaluate.merge import merge_logs

        merge_logs(merge, log_dir)
    if shown.sample is not None:
        _show_sample(here, log_dir, shown)
        return
    if shown.strategy is not None or shown.task is not None:
        raise typer.BadParameter("--strategy and --task go with --sample")
    if against is not None:
        _compare_logs(here, log_dir, against, samples, allow_undecided=allow_undecided)
        return
    from osler_lab.evaluate.report import build_report, render_markdown

    figures = build_report(log_dir, shown=samples, allow_undecided=allow_undecided)
    path = (out or log_dir) / "report.md"
    write_page(path, render_markdown(figures))
    here.show({**report_document(figures), "files": [str(path)]}, report_page(figures))
    here.print_line(f"written to {path}")


def _compare_logs(
    here: CliSession, first: Path, second: Path, limit: int, *, allow_undecided: bool
) -> None:
    from dataclasses import asdict

    from osler_lab.cli.evaluate_pages import compare_page
    from osler_lab.evaluate.compare import Undecided, compare_logs, list_uncompared

    undecided: Undecided = "allow" if allow_undecided else "leave out"
    # Where nothing else is left, the refusal says why.
    compared = compare_logs(first, second, undecided=undecided) or compare_logs(first, second)
    left_out = list_uncompared(first, second, compared)
    here.show(
        {"compared": [asdict(one) for one in compared], "left_out": left_out},
        {**compare_page(compared, limit), "left out": left_out},
    )


def _show_sample(here: CliSession, log_dir: Path, shown: ShownSample) -> None:
    from osler.errors import BadRun
    from osler_lab.cli.evaluate_pages import sample_document, sample_page
    from osler_lab.evaluate.log import read_records

    records = [
        record
        for record in read_records(log_dir)
        if record.sample.id == shown.sample
        and shown.strategy in (None, record.strategy)
        and shown.task in (None, record.sample.task)
    ]
    if not records:
        raise BadRun(f"no sample {shown.sample!r} in {log_dir}", fix="the report lists their ids")
    from rich.console import Group

    from osler.cli.tables import document_page

    pages = (document_page(sample_page(log_dir, record)) for record in records)
    here.show_result(
        Group(*pages), {"samples": [sample_document(log_dir, record) for record in records]}
    )

"""`osler eval judge` and `osler eval agree`: a model judges answers, and people the model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.progress import show_progress
from osler.cli.session import Json, Quiet, open_session

if TYPE_CHECKING:
    from rich.table import Table

    from osler.evaluate.agreement import HumanAgreement

Log = Annotated[Path, typer.Option("--log-dir", help="Folder of the log.")]


def judge(
    context: typer.Context,
    log_dir: Log,
    form: Annotated[str, typer.Option(help="rubric, correct, stability or luq.")],
    limit: Annotated[
        int | None, typer.Option(min=1, help="Samples of each strategy and data set, at most.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Have the model in the role "judge" judge what a log folder holds; the report shows it.

    What was judged before is not judged again. Set the model under [roles.judge].
    """
    here = open_session(context, as_json=as_json, quiet=quiet)
    from dataclasses import asdict

    from osler.app import evaluation
    from osler.errors import BadConfig
    from osler.evaluate.judged import FORMS

    chosen = next((known for known in FORMS if known == form), None)
    if chosen is None:
        raise BadConfig(f"no form {form!r}", fix=f"choose of {', '.join(FORMS)}")
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
    context: typer.Context,
    log_dir: Log,
    people: Annotated[
        Path,
        typer.Argument(
            help="CSV: strategy, task, id, rater, and the four dimensions or verdict (yes, no)."
        ),
    ],
    as_json: Json = False,
) -> None:
    """How far a judge agrees with people who judged the same answers."""
    here = open_session(context, as_json=as_json)
    from dataclasses import asdict

    from osler.evaluate.agreement import compare_with_people

    found = compare_with_people(log_dir, people)
    here.show_result(_agreement_page(found), asdict(found))


def _agreement_page(found: HumanAgreement) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    if found.graded:
        names: tuple[str, ...] = ("judge", "n", "accuracy", "precision", "recall", "F1")
        rows = [
            [g.judge, str(a.n), *(f"{x:.3f}" for x in (a.accuracy, a.precision, a.recall, a.f1))]
            for g in found.graded
            for a in [g.agreement]
        ]
    else:
        names = ("judge", "dimension", "n", "same", "within one", "higher by", "kappa")
        rows = [
            [
                m.judge,
                m.dimension,
                str(m.n),
                f"{m.same:.3f}",
                f"{m.near:.3f}",
                f"{m.higher:+.2f}",
                "–" if m.kappa is None else f"{m.kappa:.3f}",
            ]
            for m in found.marked
        ]
    for name in names:
        table.add_column(name, justify="left" if name in ("judge", "dimension") else "right")
    for row in rows:
        table.add_row(*row)
    return table

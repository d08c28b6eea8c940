"""`osler export`: a recorded answer as a file for other programs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import JsonSession
from osler.cli.session import CliSession
from osler.errors import BadRun, OslerError, translate_os_errors

if TYPE_CHECKING:
    from osler.answer.export import ExportedAnswer

# File name endings that name a format, so that --to need not.
_BY_SUFFIX = {
    ".md": "markdown",
    ".html": "html",
    ".docx": "docx",
    ".pdf": "pdf",
    ".ris": "ris",
    ".bib": "bibtex",
    ".csv": "csv",
}


def export(
    here: JsonSession,
    run: Annotated[str, typer.Argument(help='The start of a run\'s id, "last", or a file.')],
    to: Annotated[
        str | None,
        typer.Option(
            help="markdown, html, docx, pdf (the answer with its references); ris, bibtex"
            " (the references); csv (the evidence as a table); studies (what its studies"
            " state, as CSV); fhir (R4 resources). By default as --out ends."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; else a text goes to standard output.")
    ] = None,
) -> None:
    """Write a recorded answer with its references for other programs.

    Word and PDF need the extra `export`, and --out.
    """
    from osler.answer.export import ExportedAnswer
    from osler.cli.runs import find_run, read_report

    chosen = format_of(to, out)
    found = read_report(find_run(run, here.load_settings().runs.path))
    if found.solution is None:
        raise BadRun(f"run {found.run} has no answer", fix="choose another run")
    exported = ExportedAnswer(
        found.question, found.solution, found.run, found.strategy, found.snapshot
    )
    write_out(here, [exported], chosen, out)


def format_of(to: str | None, out: Path | None) -> str:
    """The format that is wanted, or that the file's name ends with; Markdown by default.

    Raises `BadArgument` for an unknown one, and for a file of no text without `out`.
    """
    from osler.answer.export import find_kind
    from osler.errors import BadArgument

    chosen = to or (_BY_SUFFIX.get(out.suffix.lower(), "") if out else "") or "markdown"
    if out is None and not find_kind(chosen).is_text:
        raise BadArgument(f"{chosen} cannot be shown in a terminal", fix="name a file with --out")
    return chosen


def write_out(
    here: CliSession, answers: Sequence[ExportedAnswer], to: str, out: Path | None
) -> None:
    """Writes the file, or without one its text to standard output."""
    from osler.answer.export import write_export

    data = write_export(answers, to)
    if out is None:
        sys.stdout.write(data.decode("utf-8-sig"))
        return
    with translate_os_errors(f"cannot write {out}", OslerError, "name another file with --out"):
        out.write_bytes(data)
    here.report_line(f"written to {out}", {"path": str(out), "format": to, "bytes": len(data)})

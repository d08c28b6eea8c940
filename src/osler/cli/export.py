"""`osler export`: a recorded answer as a file for other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from osler.cli.options import JsonSession
from osler.errors import BadRun, OslerError

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
            help="markdown, html, docx, pdf (the answer with its references); ris, bibtex, csl-json"
            " (the references); csv (the evidence as a table). By default as --out ends."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; else a text goes to standard output.")
    ] = None,
) -> None:
    """Write a recorded answer with its references for other programs.

    Word and PDF need the extra `export`, and --out.
    """
    from osler.answer.export import ExportedAnswer, find_kind, write_export
    from osler.cli.runs import find_run, read_report
    from osler.errors import BadArgument

    chosen = to or (_BY_SUFFIX.get(out.suffix.lower(), "") if out else "") or "markdown"
    kind = find_kind(chosen)
    if out is None and not kind.is_text:
        raise BadArgument(f"{chosen} is no text for a terminal", fix="name a file with --out")
    found = read_report(find_run(run, here.load_settings().runs.path))
    if found.solution is None:
        raise BadRun(f"run {found.run} has no answer", fix="choose another run")
    exported = ExportedAnswer(
        found.question, found.solution, found.run, found.strategy, found.snapshot
    )
    data = write_export([exported], chosen)
    if out is None:
        sys.stdout.write(data.decode("utf-8-sig"))
        return
    try:
        out.write_bytes(data)
    except OSError as error:
        raise OslerError(
            f"cannot write {out}: {error.strerror}", fix="name another file with --out"
        ) from error
    here.report_line(f"written to {out}", {"path": str(out), "format": chosen, "bytes": len(data)})

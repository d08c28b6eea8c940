"""`osler forget`: a text, a document or a patient, out of everything that Osler keeps."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from osler.cli.options import JsonSession
from osler.cli.session import PARTIAL


def forget(
    here: JsonSession,
    what: Annotated[
        str | None,
        typer.Argument(help="A document's id (source:id), a patient's number, or a text."),
    ] = None,
    expired: Annotated[
        bool, typer.Option("--expired", help="Delete the runs that are older than runs.days.")
    ] = False,
) -> None:
    """Take a text, a document or a patient out of the knowledge base, its indexes and snapshots,
    of recorded runs, tapes, conversations, evaluations and caches. Stop the server first.

    Exit code 6: something is left; it is listed.
    """
    from osler_serve.ops.forget import expire_runs
    from osler_serve.ops.forget import forget as take_out

    settings = here.load_settings()
    if expired:
        gone = expire_runs(settings)
        here.report_line(f"{len(gone):,} runs deleted", {"runs": gone})
    if what is None:
        if not expired:
            raise typer.BadParameter("say what to forget, or --expired")
        return
    report = take_out(settings, what)
    here.show(asdict(report))
    if report.left:
        raise typer.Exit(PARTIAL)

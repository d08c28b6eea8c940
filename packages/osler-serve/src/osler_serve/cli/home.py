"""`osler backup`, `restore`, `forget` and `feedback`: all that a home holds, kept and taken out."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import JsonSession
from osler.cli.session import PARTIAL

if TYPE_CHECKING:
    from osler_serve.ops.backup import BackupReport

Archive = Annotated[Path, typer.Argument(help="The archive, a ZIP file.")]


def backup(here: JsonSession, file: Archive) -> None:
    """Back up the home folder, without caches, and the settings into one file.

    A server may run meanwhile. The file is verified before it gets its name. It holds every
    question asked: protect it as you protect the home folder.
    """
    from osler_serve.ops.backup import make_backup

    settings_file = here.file or Path("osler.toml")
    _show_report(here, "written to", make_backup(here.load_settings(), file, settings_file))


def restore(
    here: JsonSession,
    file: Archive,
    check: Annotated[
        bool, typer.Option("--check", help="Only check that the archive is whole.")
    ] = False,
) -> None:
    """Restore a backup into an empty home.

    All of it is checked first. The settings file goes to "settings" in home, to be compared.
    """
    from osler_serve.ops.backup import check_backup, restore_backup

    settings = here.load_settings()
    report = check_backup(file) if check else restore_backup(file, settings)
    _show_report(here, "whole:" if check else "restored from", report)


def _show_report(here: JsonSession, what: str, report: BackupReport) -> None:
    parts = ", ".join(f"{part} {files:,}" for part, files in report.parts.items())
    here.report_line(
        f"{what} {report.path}: {report.files:,} files, {report.bytes:,} bytes ({parts}),"
        f" of {report.when}",
        {**asdict(report), "path": str(report.path)},
    )


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


def feedback(
    here: JsonSession,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the questions of helpful answers to this file, as JSON Lines."),
    ] = None,
) -> None:
    """List feedback on answers and cards, newest first; or export questions from it.

    With --out, the questions whose answers were called helpful, to measure other settings on:
    each has the answer that was given and the passages that it cites. Measured with
    `osler eval run --tasks sample-open=FILE`, questions with options as sample=FILE.
    `osler calibrate --risk` reads the verdicts themselves and needs no file.
    """
    from osler.errors import BadArgument, translate_os_errors
    from osler.runs.feedback import FeedbackStore, helpful_questions

    if out is None:
        found = FeedbackStore(here.load_settings().home).read_all()
        here.show({"feedback": [asdict(one) for one in found]})
        return
    rows = list(helpful_questions(here.load_settings()))
    if not rows:
        raise BadArgument("no answer was called helpful", fix="judge answers on the page")
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    with translate_os_errors(f"{out} cannot be written", BadArgument):
        out.write_text(text, encoding="utf-8")
    line = f"{len(rows)} questions in {out}"
    here.report_line(line, {"path": str(out), "questions": len(rows)})

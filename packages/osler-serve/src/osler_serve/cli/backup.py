"""`osler backup` and `osler restore`: everything that a home holds, in one verified file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import JsonSession

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

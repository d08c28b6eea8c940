"""`osler audit`: the log of who asked what, shown, copied, verified, and the proof of a run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.session import PARTIAL, CliSession, write_json
from osler.errors import UnknownRun

if TYPE_CHECKING:
    from osler.settings import Settings
    from osler_serve.ops.audit_proofs import Verification


def audit(
    here: CliSession,
    run: Annotated[
        str | None,
        typer.Argument(
            help='The start of a run\'s id, "last", or its folder: print its proof as JSON, its'
            " answer and files, and that the log holds them."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many to show, newest first.")] = 20,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Copy all entries to this file, as JSON Lines, the signed checkpoint beside them."
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Check that none was changed, moved or cut off (exit code 6)."
        ),
    ] = False,
    checkpoints: Annotated[
        Path | None,
        typer.Option(help="With --verify: checkpoints from the second place; else audit.copies."),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Go on with a log that is refused, since its entries are lost; an entry says what"
            " is missing. Stop the server first.",
        ),
    ] = False,
) -> None:
    """Show the latest entries of the audit log, who asked what; verify it, or prove a run.

    `examples/06_verify_an_audit_proof.py` checks a proof and needs only `cryptography`.
    """
    from osler_serve.ops import audit_proofs as log

    settings = here.load_settings()
    if run is not None:
        return _show_proof(settings, run)
    if accept:
        number = log.accept_audit(settings)
        said = "nothing is missing" if number is None else f"entry {number:,} says what is missing"
        return here.report_line(said, {"entry": number})
    if verify:
        return _show_checked(here, log.verify_audit(settings, checkpoints))
    if out is not None:
        return _copy_entries(here, settings, out)
    entries = log.read_entries(settings)[-limit:][::-1]
    names = ("at", "what", "method", "path", "tool", "key", "run", "status", "asked")
    page = [{name: one.get(name, "") for name in names} for one in entries]
    return here.show({"entries": entries}, page)


def _show_proof(settings: Settings, run: str) -> None:
    from osler.build.privacy import open_runs
    from osler.cli.traces import find_run
    from osler_serve.ops.audit_proofs import prove_run

    with suppress(UnknownRun):  # the log may know one whose files are gone
        run = find_run(run, settings.runs.path, open_runs(settings)).parent.name
    write_json(prove_run(settings, run))


def _show_checked(here: CliSession, checked: Verification) -> None:
    here.show(asdict(checked), {**asdict(checked), "problems": checked.problems or "none"})
    if checked.problems:
        raise typer.Exit(PARTIAL)


def _copy_entries(here: CliSession, settings: Settings, path: Path) -> None:
    from osler.audit.entries import log_folder
    from osler.errors import BadConfig, translate_os_errors
    from osler_serve.ops.audit_proofs import read_head, read_lines

    folder = log_folder(settings)
    lines, head = read_lines(folder), read_head(folder)
    with translate_os_errors(f"{path} cannot be written", BadConfig, "choose another file"):
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        if head is not None:
            path.with_name(f"{path.name}.checkpoint").write_text(head.to_json() + "\n")
    here.report_line(
        f"{len(lines):,} entries in {path}", {"entries": len(lines), "path": str(path)}
    )

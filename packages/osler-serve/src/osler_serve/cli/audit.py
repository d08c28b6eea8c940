"""`osler audit …`: the log of who asked what, verified, shown, exported, and the proof of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import JsonSession
from osler.cli.session import PARTIAL, CliSession, write_json

if TYPE_CHECKING:
    from osler.settings import Settings


def verify(
    here: JsonSession,
    checkpoints: Annotated[
        Path | None,
        typer.Option(help="File of checkpoints from the second place; else audit.copies."),
    ] = None,
) -> None:
    """Check that no entry was changed, moved or cut off. Exit code 6: one was."""
    from dataclasses import asdict

    from osler.audit.entries import verify_audit

    found = verify_audit(here.load_settings(), checkpoints)
    here.show(asdict(found), {**asdict(found), "problems": found.problems or "none"})
    if found.problems:
        raise typer.Exit(PARTIAL)


def show(
    here: CliSession,
    limit: Annotated[int, typer.Option(min=1, help="How many to show, newest first.")] = 20,
    out: Annotated[
        Path | None,
        typer.Option(help="Copy all entries to this file instead, as JSON Lines."),
    ] = None,
) -> None:
    """Show the latest entries, or copy all with the signed checkpoint beside them."""
    from osler.audit.entries import read_entries

    settings = here.load_settings()
    if out is not None:
        _copy_entries(here, settings, out)
        return
    entries = read_entries(settings)[-limit:][::-1]
    names = ("at", "what", "method", "path", "tool", "key", "run", "status", "asked")
    page = [{name: one.get(name, "") for name in names} for one in entries]
    here.show({"entries": entries}, page)


def _copy_entries(here: CliSession, settings: Settings, path: Path) -> None:
    from osler.audit.entries import log_folder
    from osler.audit.log import read_head, read_lines
    from osler.errors import BadConfig, translate_os_errors

    folder = log_folder(settings)
    lines, head = read_lines(folder), read_head(folder)
    with translate_os_errors(f"{path} cannot be written", BadConfig, "choose another file"):
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        if head is not None:
            path.with_name(f"{path.name}.checkpoint").write_text(head.to_json() + "\n")
    here.report_line(
        f"{len(lines):,} entries in {path}", {"entries": len(lines), "path": str(path)}
    )


def prove(
    here: CliSession,
    run: Annotated[str, typer.Argument(help="Id of a recorded run.")],
) -> None:
    """Print the proof of a run as JSON: its answer and files, and that the log holds them.

    `examples/06_verify_an_audit_proof.py` checks it and needs only `cryptography`.
    """
    from osler.audit.entries import prove_run

    write_json(prove_run(here.load_settings(), run))
    sys.stdout.flush()

"""`osler kb …`: keeping a knowledge base up to date, and safe."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from osler.cli.kb import PATIENCE, Wait, open_kb, show_added
from osler.cli.progress import show_progress
from osler.cli.session import Json, Quiet, open_session

OneSource = Annotated[
    str | None, typer.Option("--source", "-s", help="Only this source.", show_default=False)
]
Name = Annotated[str, typer.Argument(help="Name of the snapshot.")]


def update(
    context: typer.Context,
    source: OneSource = None,
    checksum: Annotated[
        bool, typer.Option("--checksum", help="Compare contents, not only size and time.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Read files with dead letters again.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Take out the documents of files that are gone.")
    ] = False,
    wait: Wait = PATIENCE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read what was added again: only what is new or changed. Files that are gone are listed.

    Exit code 6: some files could not be read.
    """
    here = open_session(context, as_json=as_json, quiet=quiet)
    with open_kb(here.load_settings(), wait) as kb, show_progress(here) as report:
        added = kb.update(
            source=source, checksum=checksum, retry=retry, prune=prune, progress=report
        )
    show_added(here, added)


def snapshot(
    context: typer.Context,
    name: Name,
    wait: Wait = PATIENCE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Keep a copy of the knowledge base as it is, under a name."""
    here = open_session(context, as_json=as_json, quiet=quiet)
    with open_kb(here.load_settings(), wait) as kb, show_progress(here) as report:
        taken = kb.take_snapshot(name, progress=report)
    if here.json:
        here.show_result("", asdict(taken))
    here.print_line(
        f"snapshot {taken.name}: {taken.documents:,} documents, {taken.passages:,} passages"
    )


def snapshots(
    context: typer.Context,
    drop: Annotated[
        str | None, typer.Option("--drop", help="Delete this one first.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """The copies that were kept."""
    here = open_session(context, as_json=as_json)
    from osler.cli.tables import snapshots_page
    from osler.kb.store import snapshots as kept

    path = here.load_settings().kb.path  # not opened: it may be damaged, and this the way out
    if drop:
        kept.drop_snapshot(path, drop)
    found = kept.list_snapshots(path)
    here.show_result(snapshots_page(found), [asdict(one) for one in found])


def rollback(
    context: typer.Context,
    name: Name,
    wait: Wait = PATIENCE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make the knowledge base what it was when a snapshot was taken, also a damaged one."""
    here = open_session(context, as_json=as_json, quiet=quiet)
    from osler.extract.derived import EXTRACTED_FACTS
    from osler.kb.base import KnowledgeBase

    path = here.load_settings().kb.path
    with show_progress(here) as report:
        back = KnowledgeBase.restore(
            path, name, derived=EXTRACTED_FACTS, wait=wait, progress=report
        )
    if here.json:
        here.show_result("", asdict(back))
    here.print_line(
        f"back at {back.name}: {back.documents:,} documents, {back.passages:,} passages"
    )


def export(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="File to write: .jsonl or .parquet.")],
    fmt: Annotated[
        str | None, typer.Option("--format", help="jsonl or parquet, whatever its name.")
    ] = None,
    source: OneSource = None,
    since: Annotated[
        datetime | None,
        typer.Option(help="Only documents that came in at this time (UTC) or later."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write every passage with where it comes from. JSON Lines can be added again."""
    here = open_session(context, as_json=as_json, quiet=quiet)
    from datetime import UTC

    from osler.kb.store.export import named_form

    first = since.replace(tzinfo=UTC) if since else None
    with open_kb(here.load_settings()) as kb, show_progress(here) as report:
        done = kb.export(path, form=named_form(fmt), source=source, since=first, progress=report)
    if here.json:
        here.show_result("", {**asdict(done), "path": str(done.path)})
    here.print_line(f"{done.path}: {done.documents:,} documents, {done.passages:,} passages")


def dead(context: typer.Context, source: OneSource = None, as_json: Json = False) -> None:
    """Files and records that could not be read, with the reason; `update` tries them again."""
    here = open_session(context, as_json=as_json)
    from osler.cli.tables import dead_page

    with open_kb(here.load_settings()) as kb:
        letters = kb.dead_letters(source)
    here.show_result(dead_page(letters), [asdict(letter) for letter in letters])


COMMANDS: Final = (update, snapshot, snapshots, rollback, export, dead)
"""In the order of `osler kb --help`."""

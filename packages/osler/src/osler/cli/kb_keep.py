"""`osler kb update|snapshot|…|push|fetch`: a knowledge base kept up to date, safe and served."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.kb import PATIENCE, Wait, count_by_words, open_kb, show_added
from osler.cli.progress import show_progress
from osler.cli.session import CliSession

if TYPE_CHECKING:
    from osler.sources.download.job import DownloadJob, DownloadRecipe


OneSource = Annotated[
    str | None, typer.Option("--source", "-s", help="Only this source.", show_default=False)
]
Name = Annotated[str, typer.Argument(help="Name of the snapshot.")]


def update(
    here: CliSession,
    source: OneSource = None,
    checksum: Annotated[
        bool, typer.Option("--checksum", help="Compare contents, not only size and time.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Read files with dead letters again.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove the documents of files that are gone.")
    ] = False,
    wait: Wait = PATIENCE,
) -> None:
    """Read new and changed files again. Files that are gone are listed.

    Exit code 6: some files could not be read.
    """
    settings = here.load_settings()
    with open_kb(settings, wait) as kb, show_progress(here) as report:
        added = kb.update(
            source=source, checksum=checksum, retry=retry, prune=prune, progress=report
        )
        by_words = count_by_words(settings, kb)
    show_added(here, added, by_words)


def correct(
    here: CliSession,
    id: Annotated[str, typer.Argument(help="Id of the passage, as in source:document#3.")],
    text: Annotated[str, typer.Option(help='Its new text; "-" reads it from standard input.')],
    wait: Wait = PATIENCE,
) -> None:
    """Give one passage another text. Searches find it at once; no build is needed.

    Its file is left as it is: when that changes, its own text comes back.
    """
    import sys

    from osler.build.models import load_encoder
    from osler.errors import KnowledgeBaseUnbuilt

    settings = here.load_settings()
    given = sys.stdin.read() if text == "-" else text
    with open_kb(settings, wait) as kb:
        try:
            kb.require_built(None)
        except KnowledgeBaseUnbuilt:
            encoder = None  # the next build makes all vectors that are missing
        else:
            encoder = load_encoder(settings)
        passage = kb.correct(id, given, encoder)
    here.report_line(f"{passage.id} is corrected", {"id": passage.id, "text": passage.text})


def watch(
    here: CliSession,
    folder: Annotated[Path, typer.Argument(help="Folder to watch.")],
    source: Annotated[str, typer.Option("--source", "-s", help="Name of the source.")],
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between checks.")] = 5.0,
    looks: Annotated[
        int | None, typer.Option(min=1, help="Stop after N checks; else with Ctrl-C.")
    ] = None,
    wait: Wait = PATIENCE,
) -> None:
    """Watch a folder and keep the knowledge base up to date.

    It may be killed at any time; started again, it resumes.
    """
    from dataclasses import asdict
    from itertools import islice

    from osler.build.knowledge import open_or_create
    from osler.build.models import load_encoder
    from osler.kb.upkeep import tick_every, watch_folder

    settings = here.load_settings()
    with open_or_create(settings) as kb:
        kb.wait = wait
        ticks = islice(tick_every(every), looks)
        into, encoder = settings.access.source_of_new(source), load_encoder(settings)
        for seen in watch_folder(kb, folder, into, encoder, ticks):
            if seen.is_change:
                line = f"documents in: {seen.documents:,}, out: {seen.gone:,}"
                here.report_line(f"{line}; vectors: {seen.encoded:,}", asdict(seen))


def snapshot(
    here: CliSession,
    name: Annotated[
        str | None, typer.Argument(help="Name of the copy; without one, all are listed.")
    ] = None,
    drop: Annotated[
        str | None, typer.Option("--drop", help="Delete this snapshot.", show_default=False)
    ] = None,
    wait: Wait = PATIENCE,
) -> None:
    """Keep a named copy of the knowledge base, or list the copies."""
    from osler.cli.tables import format_size, format_time
    from osler.kb.store import snapshots as kept

    settings = here.load_settings()
    if name is not None:
        with open_kb(settings, wait) as kb, show_progress(here) as report:
            taken = kb.take_snapshot(name, progress=report)
        counts = f"{taken.documents:,} documents, {taken.passages:,} passages"
        here.report_line(f"snapshot {taken.name}: {counts}", asdict(taken))
        return
    path = settings.kb.path  # not opened: it may be damaged, and this the way out
    if drop:
        kept.drop_snapshot(path, drop)
    listed = kept.list_snapshots(path)
    page = [
        {**asdict(one), "taken": format_time(one.taken), "size": format_size(one.size)}
        for one in listed
    ]
    here.show([asdict(one) for one in listed], page)
    if not listed:
        here.print_line("no snapshots yet; next: osler kb snapshot NAME")


def rollback(
    here: CliSession,
    name: Name,
    wait: Wait = PATIENCE,
) -> None:
    """Restore a snapshot, also over a damaged knowledge base."""
    from osler.extract.derived import EXTRACTED_FACTS
    from osler.kb.base import KnowledgeBase

    path = here.load_settings().kb.path
    with show_progress(here) as report:
        back = KnowledgeBase.restore(
            path, name, derived=EXTRACTED_FACTS, wait=wait, progress=report
        )
    here.report_line(
        f"back at {back.name}: {back.documents:,} documents, {back.passages:,} passages",
        asdict(back),
    )


def export(
    here: CliSession,
    path: Annotated[Path, typer.Argument(help="File to write: .jsonl or .parquet.")],
    fmt: Annotated[
        str | None,
        typer.Option("--format", help="jsonl or parquet, whatever the name of the file."),
    ] = None,
    source: OneSource = None,
    since: Annotated[
        datetime | None,
        typer.Option(help="Only documents added at this time (UTC) or later."),
    ] = None,
) -> None:
    """Write every passage with its provenance. JSON Lines can be added again."""
    from datetime import UTC

    from osler.errors import BadConfig
    from osler.kb.store.export import named_form

    settings = here.load_settings()
    # typer reads a time without a zone; the knowledge base stores UTC.
    first = since.replace(tzinfo=UTC) if since else None
    with open_kb(settings) as kb, show_progress(here) as report:
        closed = [name for name in kb.sources if not settings.access.may_search(name)]
        if closed and (source is None or source in closed):
            raise BadConfig("this would export what may not be read", fix="name a --source")
        done = kb.export(path, form=named_form(fmt), source=source, since=first, progress=report)
    here.report_line(
        f"{done.path}: {done.documents:,} documents, {done.passages:,} passages",
        {**asdict(done), "path": str(done.path)},
    )


def release(
    here: CliSession,
    source: Annotated[str, typer.Argument(help="Source whose held documents are released.")],
    wait: Wait = PATIENCE,
) -> None:
    """Release a source's held documents (access.held); then run `kb build`."""
    from osler.kb.upkeep import release as let_in

    with open_kb(here.load_settings(), wait) as kb:
        done = let_in(kb, source)
    documents = sum(one.documents for one in done)
    said = f"{documents:,} documents of {source} are let in; now: osler kb build"
    here.report_line(said, {"source": source, "documents": documents})


def push(
    here: CliSession,
    to: Annotated[
        str | None,
        typer.Option("--to", help="The server, as http://HOST:6333; else kb.url.", metavar="URL"),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Replace the collections of another encoder.")
    ] = False,
) -> None:
    """Copy the knowledge base to a Qdrant server; only changes are sent.

    An interrupted push resumes. Set kb.url to search there.
    """
    from osler.build.knowledge import search_backend
    from osler.errors import BadConfig

    settings = here.load_settings({"kb.url": to})
    if not settings.kb.url:
        raise BadConfig("there is no server to push to", fix="give --to URL, or set kb.url")
    with open_kb(settings) as kb, show_progress(here) as report:
        pushed = kb.push(search_backend(settings), rebuild=rebuild, progress=report)
    if here.json or not here.quiet:
        here.show(asdict(pushed))


def fetch(
    here: CliSession,
    name: Annotated[
        str | None, typer.Argument(help="Name of the entry; without it, all are listed.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help="Target folder (default: fetched/NAME in home).")
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept-licence", help="Accept its licence, which you have read.")
    ] = False,
    mirror: Annotated[
        str, typer.Option(help="Address of a copy, instead of the publisher's.", show_default=False)
    ] = "",
    only: Annotated[
        int | None, typer.Option(min=1, help="Only the first N files of a list.")
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="Hours between updates: fetch what is new, add it and build, until stopped.",
            show_default=False,
        ),
    ] = None,
    looks: Annotated[
        int | None, typer.Option(min=1, help="With --every: stop after N checks.")
    ] = None,
) -> None:
    """Download a corpus or an ontology. An interrupted download resumes.

    With --every it keeps the knowledge base up to date, as with pubmed-updates.
    """
    from osler.sources.download.job import find_recipe, load_recipes

    if name is None:
        recipes = list(load_recipes().values())
        names = ("name", "title", "source", "bytes", "licence")
        page = [{name: getattr(each, name) for name in names} for each in recipes]
        here.show([each.model_dump(mode="json") for each in recipes], page)
        return
    from osler.sources.download.job import DownloadJob

    chosen = find_recipe(name)
    folder = to or here.load_settings().home / "fetched" / name
    job = DownloadJob(chosen, folder, mirror, only)
    if every is not None:
        _fetch_on_schedule(here, job, every * 3600, looks, accepted=accept)
        return
    with show_progress(here) as report:
        done = job.run(accepted=accept, progress=report)
    document = {"files": [str(path) for path in done.files], "bytes": done.bytes}
    line = f"{len(done.files):,} files, {done.bytes:,} bytes in {folder}"
    here.report_line(line, {"recipe": name, "folder": str(folder), **document})
    here.print_line(
        f"next: {chosen.use}" if chosen.use else f"next: {_add_command(chosen, folder)}"
    )


def _fetch_on_schedule(
    here: CliSession, job: DownloadJob, seconds: float, looks: int | None, *, accepted: bool
) -> None:
    from itertools import islice

    from osler.build.knowledge import open_or_create
    from osler.build.models import load_encoder
    from osler.errors import BadConfig
    from osler.kb.upkeep import fetch_on_schedule, tick_every

    if job.recipe.use:
        raise BadConfig(
            f"{job.recipe.name} is not for the knowledge base: {job.recipe.use}",
            fix="leave out --every",
        )
    settings = here.load_settings()
    with open_or_create(settings) as kb:
        kb.wait = PATIENCE
        ticks, encoder = islice(tick_every(seconds), looks), load_encoder(settings)
        for one in fetch_on_schedule(kb, job, encoder, ticks, accepted=accepted):
            if one.seen.is_change or one.problem:
                line = f"{one.files:,} files; documents in: {one.seen.documents:,}"
                line += f", out: {one.seen.gone:,}" + (f"; {one.problem}" if one.problem else "")
                here.report_line(line, asdict(one))


def _add_command(recipe: DownloadRecipe, folder: Path) -> str:
    import shlex

    form = f" --format {recipe.format}" if recipe.format else ""
    return f"osler kb add {shlex.quote(str(folder))} --source {recipe.source}{form}"

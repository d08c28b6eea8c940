"""`osler kb update|correct|snapshot|export|fetch`: what keeps a knowledge base up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.kb import PATIENCE, Wait, count_by_words, open_kb, show_added
from osler.cli.options import refuse_options
from osler.cli.progress import show_progress
from osler.cli.session import CliSession

if TYPE_CHECKING:
    from osler.kb.base import KnowledgeBase
    from osler.settings import Settings
    from osler.sources.download.job import DownloadJob, DownloadRecipe


OneSource = Annotated[
    str | None, typer.Option("--source", "-s", help="Only this source.", show_default=False)
]


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
    retractions: Annotated[
        Path | None,
        typer.Option(
            help="Only mark what this CSV file of Retraction Watch's names; each later update reads"
            " it again.",
            show_default=False,
        ),
    ] = None,
    wait: Wait = PATIENCE,
) -> None:
    """Read new and changed files again. Files that are gone are listed.

    Exit code 6: files could not be read that could be before, or are new.
    """
    settings = here.load_settings()
    if retractions is not None:
        refuse_options(
            "it does not go with --retractions",
            source=source,
            checksum=checksum,
            retry=retry,
            prune=prune,
        )
        _mark_retractions(here, settings, retractions, wait)
        return
    with open_kb(settings, wait) as kb, show_progress(here) as report:
        known = _list_failures(kb, source)
        added = kb.update(
            source=source, checksum=checksum, retry=retry, prune=prune, progress=report
        )
        by_words = count_by_words(settings, kb)
        is_news = not _list_failures(kb, source) <= known
    show_added(here, added, by_words, is_news=is_news)


def _mark_retractions(here: CliSession, settings: Settings, path: Path, wait: float) -> None:
    from osler.build.privacy import open_runs
    from osler.runs.files import list_runs_citing, run_folders

    with open_kb(settings, wait) as kb:
        done = kb.mark_retractions(path)
        retracted = kb.list_retracted()
    runs = filter(open_runs(settings), run_folders(settings.runs.path))
    citing = list_runs_citing(runs, retracted)
    here.show({**asdict(done), "runs": citing}, {**asdict(done), "runs": ", ".join(citing[:5])})
    if citing:
        here.print_line(
            f"! saved answers that cite what is retracted: {len(citing)}; osler trace ID"
        )
    if done.changed:
        here.print_line("next: osler kb build")


def _list_failures(kb: KnowledgeBase, source: str | None) -> set[tuple[str, str, str]]:
    """Source, place and reason of what could not be read."""
    return {(one.source, one.place, one.reason) for one in kb.dead_letters(source)}


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


def snapshot(
    here: CliSession,
    name: Annotated[
        str | None, typer.Argument(help="Name of the copy; without one, all are listed.")
    ] = None,
    drop: Annotated[
        str | None, typer.Option("--drop", help="Delete this snapshot.", show_default=False)
    ] = None,
    restore: Annotated[
        bool,
        typer.Option("--restore", help="Go back to the copy, also over a damaged knowledge base."),
    ] = False,
    wait: Wait = PATIENCE,
) -> None:
    """Keep a named copy of the knowledge base, go back to one, or list the copies."""
    from osler.cli.tables import format_size, format_time
    from osler.kb.store import snapshots as kept

    settings = here.load_settings()
    if drop:
        refuse_options("it stands alone", drop=name or restore)
    if restore:
        if name is None:
            raise typer.BadParameter("name the snapshot", param_hint="--restore")
        _restore_snapshot(here, settings.kb.path, name, wait)
        return
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


def _restore_snapshot(here: CliSession, path: Path, name: str, wait: float) -> None:
    from osler.extract.derived import EXTRACTED_FACTS
    from osler.kb.base import KnowledgeBase

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
    to: Annotated[
        str | None,
        typer.Argument(
            help="File to write, .jsonl; or a Qdrant server, as http://HOST:6333"
            " (without either, that of kb.url).",
        ),
    ] = None,
    source: OneSource = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"],
            help="Only documents added at this time (UTC) or later.",
        ),
    ] = None,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="On a server: replace the collections of another encoder."),
    ] = False,
) -> None:
    """Write every passage with its provenance. JSON Lines can be added again.

    To a Qdrant server only changes are sent, and an interrupted export resumes; set kb.url to
    search there.
    """
    if to is None or "://" in to:
        refuse_options("a server is given every source", source=source, since=since)
        _push_changes(here, to, rebuild=rebuild)
        return
    refuse_options("it goes with a server", rebuild=rebuild)
    from datetime import UTC

    settings = here.load_settings()
    # typer reads a time without a zone; the knowledge base stores UTC.
    first = since.replace(tzinfo=UTC) if since else None
    with open_kb(settings) as kb, show_progress(here) as report:
        _require_readable(settings, [source] if source else kb.sources, "name a --source")
        done = kb.export(Path(to), source=source, since=first, progress=report)
    here.report_line(
        f"{done.path}: {done.documents:,} documents, {done.passages:,} passages",
        {**asdict(done), "path": str(done.path)},
    )


def _require_readable(settings: Settings, sources: Iterable[str], fix: str) -> None:
    from osler.errors import BadConfig

    if not all(map(settings.access.may_search, sources)):
        raise BadConfig("this would export what may not be read", fix=fix)


def _push_changes(here: CliSession, url: str | None, *, rebuild: bool) -> None:
    from osler.build.knowledge import search_backend
    from osler.build.privacy import index_hosts, require_trusted
    from osler.errors import BadConfig

    settings = here.load_settings({"kb.url": url})
    if not settings.kb.url:
        raise BadConfig("there is nowhere to export to", fix="name a file or a URL, or set kb.url")
    with open_kb(settings) as kb, show_progress(here) as report:
        _require_readable(settings, kb.sources, "use a key that may search every source")
        require_trusted(settings, kb.sources, index_hosts(settings))
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
    yes: Annotated[
        bool, typer.Option("--yes", help="With medical-library: begin; else the plan is shown.")
    ] = False,
) -> None:
    """Download a corpus or an ontology. An interrupted download resumes.

    With --every it keeps the knowledge base up to date. The entry medical-library is labels,
    MedlinePlus, WikiMed and a part of PubMed: their plan, and with --yes all of them.
    """
    from osler.cli.library import LIBRARY, fetch_library, list_recipes

    if name == LIBRARY:
        fetch_library(here, mirror, accepted=accept, begin=yes)
        return
    if name is None:
        list_recipes(here)
        return
    from osler.sources.download.job import DownloadJob, find_recipe

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
    here.print_line(f"next: {chosen.use or _add_command(chosen, folder)}")


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

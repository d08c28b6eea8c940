"""`osler kb …`: the life of a knowledge base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from osler.cli.options import JsonSession, refuse_options
from osler.cli.progress import show_progress
from osler.cli.session import ABSTAINED, PARTIAL, CliSession
from osler.errors import BadConfig, KnowledgeBaseUnbuilt
from osler.sources.catalogue import RESEARCH
from osler.types import Language

if TYPE_CHECKING:
    from osler.kb.base import KnowledgeBase
    from osler.kb.encoders.base import Encoder
    from osler.kb.ingest.files import IngestResult
    from osler.settings import Settings


Source = Annotated[str, typer.Option("--source", "-s", help="Name of the source.")]
Wait = Annotated[
    float, typer.Option(min=0, help="Seconds to wait while another process is writing.")
]
# Seconds that a command waits for another writer unless `--wait` says otherwise.
PATIENCE = 30.0
# Passages from which on `kb add` says how long their vectors will take.
WORTH_TIMING = 200


@dataclass(frozen=True)
class WatchOptions:
    """Whether a folder is looked at again."""

    watch: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Look at the folder again after so many seconds, and build, until stopped.",
            show_default=False,
        ),
    ] = None
    looks: Annotated[int | None, typer.Option(min=1, help="With --watch: at most N checks.")] = None


@dataclass(frozen=True)
class FormatOptions:
    """How files are read, where it is not plain."""

    fmt: Annotated[
        str | None, typer.Option("--format", help="Format of the files, where it is not plain.")
    ] = None
    key: Annotated[
        list[str] | None,
        typer.Option(help="Column that names the rows of tables; several may be given."),
    ] = None

    @property
    def name(self) -> str | None:
        from osler.sources.formats.registry import KeyedRows

        return KeyedRows(self.key).name if self.key else self.fmt


def add(
    here: CliSession,
    paths: Annotated[list[Path], typer.Argument(help="Files, folders and archives.")],
    source: Annotated[
        str | None,
        typer.Option("--source", "-s", help="Name of the source; an export brings its own."),
    ] = None,
    licence: Annotated[
        str, typer.Option(help="Licence of the documents that state none.", show_default=False)
    ] = "",
    trust: Annotated[
        int | None,
        typer.Option(min=1, max=5, help="Trust from 1 to 5 (highest); default: the source's."),
    ] = None,
    wait: Wait = PATIENCE,
    chunk: Annotated[
        str | None,
        typer.Option(help="How texts are cut: omni, kag, tc-rag, or as 800, 800+100, 256t+64."),
    ] = None,
    *,
    read_as: FormatOptions,
    watched: WatchOptions,
) -> None:
    """Read files into a source. Files with the content that they had are skipped.

    They are remembered: `osler kb update` reads them again. With --watch a folder is kept up to
    date; it may be killed at any time, and resumes. Exit code 6: some files could not be read.
    """
    from osler.build.knowledge import open_or_create

    settings = here.load_settings({"kb.chunk": chunk})
    if watched.watch is not None:
        if source is None or len(paths) != 1:
            raise typer.BadParameter("it takes one folder and --source", param_hint="--watch")
        kept = settings.kb.chunk if "chunk" in settings.kb.model_fields_set else None
        terms = {"fmt": read_as.name, "licence": licence, "trust": trust, "chunk": kept}
        _watch_folder(here, settings, paths[0], source, watched, wait, terms)
        return
    with open_or_create(settings) as kb, show_progress(here) as report:
        kb.wait = wait
        if source is None:
            added = kb.add_export(paths, licence=licence, trust=trust, progress=report)
        else:
            added = kb.add(
                paths,
                source=settings.access.source_of_new(source),
                fmt=read_as.name,
                licence=licence,
                trust=trust,
                chunk=settings.kb.chunk,
                progress=report,
            )
        by_words = count_by_words(settings, kb)
        wait_line = _vector_line(settings, kb, source, by_words) if added.documents else ""
    show_added(here, added, by_words, wait_line)


def _watch_folder(
    here: CliSession,
    settings: Settings,
    folder: Path,
    source: str,
    watched: WatchOptions,
    wait: float,
    terms: Mapping[str, object],
) -> None:
    from itertools import islice

    from osler.build.knowledge import open_or_create
    from osler.build.models import load_encoder
    from osler.kb.upkeep import tick_every, watch_folder

    with open_or_create(settings) as kb:
        kb.wait = wait
        ticks = islice(tick_every(watched.watch or 0), watched.looks)
        into, encoder = settings.access.source_of_new(source), load_encoder(settings)
        for seen in watch_folder(kb, folder, into, encoder, ticks, **terms):
            if seen.is_change:
                line = f"documents in: {seen.documents:,}, out: {seen.gone:,}"
                line = f"{line}; vectors: {seen.encoded:,}"
                bad = seen.failed + seen.vanished
                here.report_line(f"{line}; files not read: {bad:,}" if bad else line, asdict(seen))


def count_by_words(settings: Settings, kb: KnowledgeBase) -> dict[Language, int]:
    """Passages in languages that the configured encoder does not read, by language."""
    from osler.build.models import encoder_languages

    return replace(kb.info(), languages=tuple(encoder_languages(settings))).by_words


def _vector_line(
    settings: Settings, kb: KnowledgeBase, source: str | None, by_words: Mapping[Language, int]
) -> str:
    """How long `kb build` will take, where that is worth knowing."""
    waiting = count_waiting(kb) - sum(by_words.values())
    if source is None or waiting < WORTH_TIMING:
        return ""
    from osler.build.models import load_encoder
    from osler.kb.upkeep import estimate_seconds

    seconds = estimate_seconds(kb, load_encoder(settings), source, waiting)
    long = f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
    return f"{waiting:,} passages want a vector, about {long} here; by words they are found now"


def count_waiting(kb: KnowledgeBase) -> int:
    """Passages without the vector that they will get; none in an empty knowledge base."""
    try:
        return kb.count_unindexed(None)
    except KnowledgeBaseUnbuilt:
        return 0


def show_added(
    here: CliSession,
    added: IngestResult,
    by_words: Mapping[Language, int] | None = None,
    wait_line: str = "",
    *,
    is_news: bool = True,
) -> None:
    """Shows what was added; `by_words`: passages that will have no vector, by language.

    Ends with exit code 6 when some files could not be read and `is_news`: not all of them were
    known to be so before.
    """
    from osler.cli.tables import by_words_lines, count_noun

    if here.json or not here.quiet:
        page = {
            "read": f"{count_noun(added.files, 'file')}, {added.unchanged:,} unchanged",
            "documents": added.documents,
            "passages": added.passages,
            "as before": added.kept or "",
            "gone": added.gone or "",
            "dropped": added.drops,
            "no parser knows": added.unknown,
            "could not be read": added.failed,
            "no longer there": added.vanished,
        }
        here.show({**asdict(added), "by_words": dict(by_words or {})}, page)
    if added.vanished:
        here.print_line("their documents stay until `osler kb update --prune`")
    for line in by_words_lines(by_words or {}, built=False):
        here.print_line(line)
    if wait_line:
        here.print_line(wait_line)
    # Also after files that could not be read: the others are in.
    if added.documents or added.gone:
        here.print_line("next: osler kb build")
    elif added.unknown and not added.unchanged:
        here.print_line("next: name their format with --format")
    if is_news and (added.failed or added.unknown):
        raise typer.Exit(PARTIAL)


def build(
    here: CliSession,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Recompute all vectors.")] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Add the sample texts that come with Osler first.")
    ] = False,
    on: Annotated[
        Literal["processes", "ray"] | None,
        typer.Option("--on", help="Encode on worker processes, or on a Ray cluster (extra ray)."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Workers, with --on; by default one per core.")
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(help="Let in the held documents (access.held) of this source first."),
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(help="Take ready-made vectors of this folder first, by document id."),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help=f"With --vectors: their source; {RESEARCH} by default.")
    ] = None,
    wait: Wait = PATIENCE,
) -> None:
    """Build the index. An interrupted build resumes.

    Several at a time share the work.
    """
    refuse_options("it goes with --on", workers=on is None and workers)
    refuse_options("it goes with --vectors", source=vectors is None and source)
    settings = here.load_settings()
    if release is not None:
        _release_held(here, settings, release, wait)
    from osler.build.knowledge import build_sample, bulk_runner
    from osler.build.models import load_encoder
    from osler.build.privacy import index_hosts, require_trusted
    from osler.cli.tables import by_words_lines

    with show_progress(here) as report:
        if sample:
            built = build_sample(settings, report)
        # The sample was built with its own texts; only --rebuild makes its vectors anew.
        if rebuild or not sample:
            with open_kb(settings, wait) as kb:
                require_trusted(settings, kb.sources, index_hosts(settings))
                if vectors is not None:
                    _take_vectors(here, load_encoder(settings), kb.path, vectors, source)
                if on is None:
                    built = kb.build(load_encoder(settings), rebuild=rebuild, progress=report)
                else:
                    make, workforce = partial(load_encoder, settings), bulk_runner(on, workers)
                    built = kb.build_on(workforce, make, rebuild=rebuild, progress=report)
    if here.json or not here.quiet:
        with open_kb(settings) as kb:
            by_words = kb.info().by_words
        here.show({**asdict(built), "by_words": by_words}, asdict(built))
        for line in by_words_lines(by_words):
            here.print_line(line)


def _take_vectors(
    here: CliSession, encoder: Encoder | None, kb: Path, folder: Path, source: str | None
) -> None:
    from osler.kb.index.ready import take_vectors

    if encoder is None:
        raise BadConfig("vectors need their encoder", fix="set it under [embedder]")
    taken = take_vectors(kb, encoder, folder, source=source or RESEARCH, wait=PATIENCE)
    here.print_line(taken.line)


def _release_held(here: CliSession, settings: Settings, source: str, wait: float) -> None:
    from osler.kb.upkeep import release

    with open_kb(settings, wait) as kb:
        documents = sum(one.documents for one in release(kb, source))
    here.print_line(f"{documents:,} documents of {source} are let in")


def info(
    here: JsonSession,
    dead: Annotated[
        bool, typer.Option("--dead", help="List the files and records that could not be read.")
    ] = False,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Read everything, and list what is damaged (exit code 1)."),
    ] = False,
) -> None:
    """Count what each source holds, and what was dropped and why.

    `osler kb update --retry` reads again what --dead lists.
    """
    from osler.cli.tables import by_words_lines, format_size, format_time

    if verify:
        _verify_base(here)
        return
    if dead:
        with open_kb(here.load_settings()) as kb:
            letters = [asdict(letter) for letter in kb.dead_letters()]
        here.show(letters, [{**one, "at": format_time(one["at"])} for one in letters])
        if not letters:
            here.print_line("no dead letters: all that was to be read was read")
        return
    with open_kb(here.load_settings()) as kb:
        found = kb.info()
    document = {
        **asdict(found),
        "path": str(found.path),
        "documents": found.documents,
        "passages": found.passages,
        "by_words": found.by_words,
    }
    # What is 0 of every source is left out, for a page that is read at a glance.
    sources = [
        {name: value or "" for name, value in asdict(one).items()}
        | {"latest": format_time(one.latest) if one.latest else "", "languages": ""}
        for one in found.sources
    ]
    page = {
        **document,
        "encoder": found.encoder or "none: search by words alone",
        "size": format_size(found.size),
        "sources": sources,
    }
    here.show(document, page)
    for line in by_words_lines(found.by_words):
        here.print_line(line)
    if not found.sources:
        here.print_line("it is empty; next: osler kb add PATH --source SOURCE")
    elif not found.built:
        here.print_line("next: osler kb build")


def _verify_base(here: CliSession) -> None:
    with open_kb(here.load_settings()) as kb:
        problems = kb.verify()
    if problems or here.json:
        here.show({"problems": problems, "ok": not problems}, problems)
    else:
        here.print_line("the knowledge base is whole")
    if problems:
        raise typer.Exit(ABSTAINED)


def rm(
    here: CliSession,
    source: Source,
    document: Annotated[
        str | None, typer.Option("--document", "-d", help="Only this document of the source.")
    ] = None,
    wait: Wait = PATIENCE,
) -> None:
    """Remove a source, or one document of it.

    An update does not bring a document back; adding its file again does.
    """
    with open_kb(here.load_settings(), wait) as kb:
        gone = kb.remove(source=source, document=document)
    here.report_line(f"passages taken out: {gone:,}; next: osler kb build", {"passages": gone})


def open_kb(settings: Settings, wait: float = 0.0) -> KnowledgeBase:
    """The knowledge base of the settings; `wait`: seconds to wait for another writer."""
    from osler.build.knowledge import open_knowledge_base

    kb = open_knowledge_base(settings)
    kb.wait = wait
    return kb

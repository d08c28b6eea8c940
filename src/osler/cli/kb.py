"""`osler kb …`: the life of a knowledge base."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from osler.cli.progress import show_progress
from osler.cli.session import ABSTAINED, PARTIAL, Json, Quiet, open_session
from osler.errors import UnknownPassage

if TYPE_CHECKING:
    from osler.app.config import Settings
    from osler.cli.session import CliSession
    from osler.kb.base import IngestResult, KnowledgeBase, KnowledgeBaseInfo

app = typer.Typer(no_args_is_help=True)

Source = Annotated[str, typer.Option("--source", "-s", help="Name of the source.")]
Wait = Annotated[
    float, typer.Option(min=0, help="Seconds to wait while another process is writing.")
]
PATIENCE = 30.0
"""Seconds that a command waits for another writer unless it is told otherwise."""


@app.command()
def add(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(help="Files, folders and archives.")],
    source: Annotated[
        str | None,
        typer.Option("--source", "-s", help="Name of the source; an export brings its own."),
    ] = None,
    fmt: Annotated[
        str | None, typer.Option("--format", help="Format of the files, where it is not plain.")
    ] = None,
    licence: Annotated[
        str, typer.Option(help="Licence of the documents that state none.", show_default=False)
    ] = "",
    trust: Annotated[
        int | None,
        typer.Option(min=1, max=5, help="How far to trust them, 5 most; else as the source."),
    ] = None,
    wait: Wait = PATIENCE,
    chunk: Annotated[
        str | None,
        typer.Option(help="How texts are cut: omni, kag, tc-rag, or as 800, 800+100, 256t+64."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read files into a source. Files with the content that they had are skipped.

    They are remembered: `osler kb update` reads them again. Exit code 6: some files could
    not be read.
    """
    here = open_session(context, as_json=as_json, quiet=quiet)
    from osler.app.wiring.knowledge import open_or_create

    settings = here.load_settings({"kb.chunk": chunk})
    with open_or_create(settings) as kb, show_progress(here) as report:
        kb.wait = wait
        if source is None:
            added = kb.add_export(paths, licence=licence, trust=trust, progress=report)
        else:
            added = kb.add(
                paths,
                source=source,
                fmt=fmt,
                licence=licence,
                trust=trust,
                chunk=settings.kb.chunk,
                progress=report,
            )
    show_added(here, added)


def show_added(here: CliSession, added: IngestResult) -> None:
    """What came in. Ends with exit code 6 when some files could not be read."""
    from osler.cli.tables import added_page

    if here.json or not here.quiet:
        here.show_result(added_page(added), asdict(added))
    if added.failed or added.unknown:
        raise typer.Exit(PARTIAL)
    if added.documents or added.gone:
        here.print_line("next: osler kb build")


@app.command()
def build(
    context: typer.Context,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Throw away the vectors and make them again.")
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Add the sample texts that come with Osler first.")
    ] = False,
    on: Annotated[
        Literal["processes", "ray"] | None,
        typer.Option("--on", help="Encode on worker processes, or on a Ray cluster (extra ray)."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Workers, with --on; else one a core.")
    ] = None,
    wait: Wait = PATIENCE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make what is searched. A build that was interrupted goes on where it stopped.

    Several at a time share the work.
    """
    here = open_session(context, as_json=as_json, quiet=quiet)
    settings = here.load_settings()
    from osler.app.wiring.knowledge import build_sample, bulk_runner
    from osler.app.wiring.models import load_encoder

    with show_progress(here) as report:
        if sample:
            built = build_sample(settings, report)
        if rebuild or not sample:
            with open_kb(settings, wait) as kb:
                if on is None:
                    built = kb.build(load_encoder(settings), rebuild=rebuild, progress=report)
                else:
                    make = partial(load_encoder, settings)
                    workforce = bulk_runner(on, workers)
                    built = kb.build_on(workforce, make, rebuild=rebuild, progress=report)
    from osler.cli.tables import built_page

    if here.json or not here.quiet:
        here.show_result(built_page(built), asdict(built))


@app.command()
def info(context: typer.Context, as_json: Json = False) -> None:
    """What it holds, by source, and what was dropped and why."""
    here = open_session(context, as_json=as_json)
    from osler.cli.tables import info_page

    with open_kb(here.load_settings()) as kb:
        found = kb.info()
    here.show_result(info_page(found), _info_document(found))


@app.command()
def verify(context: typer.Context, as_json: Json = False, quiet: Quiet = False) -> None:
    """Read everything and say what is wrong. Exit code 1: something is."""
    here = open_session(context, as_json=as_json, quiet=quiet)
    with open_kb(here.load_settings()) as kb:
        problems = kb.verify()
    from rich.text import Text

    from osler.cli.session import escape_controls

    if problems or here.json:
        page = Text(escape_controls("\n".join(problems)))
        here.show_result(page, {"problems": problems, "ok": not problems})
    else:
        here.print_line("the knowledge base is whole")
    if problems:
        raise typer.Exit(ABSTAINED)


@app.command()
def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="Words, in any language of the texts.")],
    k: Annotated[int | None, typer.Option("--k", min=1, help="How many passages.")] = None,
    source: Annotated[
        list[str] | None, typer.Option("--source", "-s", help="Only this; give it once for each.")
    ] = None,
    year_from: Annotated[
        int | None, typer.Option("--year-from", help="Only documents from this year on.")
    ] = None,
    year_to: Annotated[
        int | None, typer.Option("--year-to", help="Only documents up to this year.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only this publication type; give it once for each."),
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option("--language", help="Only this language, en or zh.")
    ] = None,
    trust: Annotated[
        int | None, typer.Option("--trust", min=1, max=5, help="Of at least this trust.")
    ] = None,
    retracted: Annotated[
        bool, typer.Option("--retracted", help="Also what was retracted.")
    ] = False,
    as_json: Json = False,
) -> None:
    """The passages that a question would find. Exit code 1: none."""
    here = open_session(context, as_json=as_json)
    settings = here.load_settings(
        {
            "kb.sources": source or None,
            "retrieve.k": k,
            "retrieve.year_from": year_from,
            "retrieve.year_to": year_to,
            "retrieve.kinds": kind or None,
            "retrieve.languages": language or None,
            "retrieve.trust": trust,
            "retrieve.retracted": retracted or None,
        }
    )
    from osler.app.wiring.knowledge import search_passages
    from osler.cli.document import hit_document
    from osler.cli.render import hits_page

    hits = asyncio.run(search_passages(settings, query, k=settings.retrieve.k, sources=()))
    here.show_result(hits_page(hits), {"query": query, "hits": [hit_document(hit) for hit in hits]})
    if not hits:
        raise typer.Exit(ABSTAINED)


@app.command()
def get(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="Id of a passage, as in source:document#3.")],
    around: Annotated[
        int, typer.Option("--context", min=0, max=100, help="Passages before and after it.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """One passage, and what stands around it in its document."""
    here = open_session(context, as_json=as_json)
    from rich.console import Group

    from osler.cli.document import passage_document
    from osler.cli.render import passages_page
    from osler.cli.tables import provenance_line

    settings = here.load_settings()
    from osler.app.wiring import graphs, online_sources

    if (
        stated := graphs.graph_passage(settings, id)
    ) is not None:  # a graph needs no texts beside it
        here.show_result(passages_page((stated,), id), passage_document(stated))
        return
    with open_kb(settings) as kb:
        try:
            passages, provenance = kb.neighbours(id, around), kb.provenance(id)
        except UnknownPassage:
            if (found := online_sources.cached_passage(settings, id)) is None:
                raise
            # From outside: its locator says where it was found and when.
            here.show_result(passages_page((found,), id), passage_document(found))
            return
    wanted = next(passage for passage in passages if passage.id == id)
    document = passage_document(wanted) | {"provenance": asdict(provenance)}
    if around:
        document["context"] = [passage_document(passage) for passage in passages]
    page = Group(passages_page(passages, id), provenance_line(provenance))
    here.show_result(page, document)


@app.command()
def rm(
    context: typer.Context,
    source: Source,
    document: Annotated[
        str | None, typer.Option("--document", "-d", help="Only this document of it.")
    ] = None,
    wait: Wait = PATIENCE,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take out a source, or one document of it.

    An update does not bring a document back; adding its file again does.
    """
    here = open_session(context, as_json=as_json, quiet=quiet)
    with open_kb(here.load_settings(), wait) as kb:
        gone = kb.remove(source=source, document=document)
    if here.json:
        here.show_result("", {"passages": gone})
    here.print_line(f"passages taken out: {gone:,}; next: osler kb build")


def open_kb(settings: Settings, wait: float = 0.0) -> KnowledgeBase:
    """The knowledge base of the settings; what writes waits so many seconds for another."""
    from osler.app.wiring.knowledge import open_knowledge_base

    kb = open_knowledge_base(settings)
    kb.wait = wait
    return kb


def _info_document(info: KnowledgeBaseInfo) -> dict[str, object]:
    return {
        **asdict(info),
        "path": str(info.path),
        "documents": info.documents,
        "passages": info.passages,
    }

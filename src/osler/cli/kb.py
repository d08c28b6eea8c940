"""`osler kb …`: the life of a knowledge base."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.progress import progress
from osler.cli.session import ABSTAINED, PARTIAL, Json, Quiet, session

if TYPE_CHECKING:
    from osler.config import Settings
    from osler.kb.base import Added, Info, KnowledgeBase

app = typer.Typer(no_args_is_help=True)

Source = Annotated[str, typer.Option("--source", "-s", help="Name of the source.")]


@app.command()
def add(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(help="Files, folders and archives.")],
    source: Source,
    fmt: Annotated[
        str | None, typer.Option("--format", help="Format of the files, where it is not plain.")
    ] = None,
    licence: Annotated[
        str, typer.Option(help="Licence of the documents that state none.", show_default=False)
    ] = "",
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read files into a source. Files with the content that they had are skipped.

    Exit code 6: some files could not be read.
    """
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.cli.tables import added_page
    from osler.wiring import open_or_create

    settings = here.settings()
    with open_or_create(settings) as kb, progress(here) as report:
        added = kb.add(paths, source=source, fmt=fmt, licence=licence, progress=report)
    if here.json or not here.quiet:
        here.show(added_page(added), asdict(added))
    if _partial(added):
        raise typer.Exit(PARTIAL)
    here.say("next: osler kb build")


@app.command()
def build(
    context: typer.Context,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Throw away the vectors and make them again.")
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Add the sample texts that come with Osler first.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make what is searched. A build that was interrupted goes on where it stopped."""
    here = session(context, as_json=as_json, quiet=quiet)
    settings = here.settings()
    from osler.wiring import build_sample, encoder

    with progress(here) as report:
        if sample:
            built = build_sample(settings, report)
        if rebuild or not sample:
            with _opened(settings) as kb:
                built = kb.build(encoder(settings), rebuild=rebuild, progress=report)
    from osler.cli.tables import built_page

    if here.json or not here.quiet:
        here.show(built_page(built), asdict(built))


@app.command()
def info(context: typer.Context, as_json: Json = False) -> None:
    """What it holds, by source, and what was dropped and why."""
    here = session(context, as_json=as_json)
    from osler.cli.tables import info_page

    with _opened(here.settings()) as kb:
        found = kb.info()
    here.show(info_page(found), _info_document(found))


@app.command()
def verify(context: typer.Context, as_json: Json = False, quiet: Quiet = False) -> None:
    """Read everything and say what is wrong. Exit code 1: something is."""
    here = session(context, as_json=as_json, quiet=quiet)
    with _opened(here.settings()) as kb:
        problems = kb.verify()
    from rich.text import Text

    from osler.cli.session import printable

    if problems or here.json:
        page = Text(printable("\n".join(problems)))
        here.show(page, {"problems": problems, "ok": not problems})
    else:
        here.say("the knowledge base is whole")
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
    as_json: Json = False,
) -> None:
    """The passages that a question would find. Exit code 1: none."""
    here = session(context, as_json=as_json)
    flags = {"kb.sources": source or None, "retrieve.k": k}
    settings = here.settings(flags)
    from osler.cli.document import hit_document
    from osler.cli.render import hits_page
    from osler.wiring import search as find

    hits = asyncio.run(find(settings, query, k=settings.retrieve.k, sources=()))
    here.show(hits_page(hits), {"query": query, "hits": [hit_document(hit) for hit in hits]})
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
    here = session(context, as_json=as_json)
    from osler.cli.document import passage_document
    from osler.cli.render import passages_page

    with _opened(here.settings()) as kb:
        passages = kb.neighbours(id, around)
    wanted = next(passage for passage in passages if passage.id == id)
    document = passage_document(wanted)
    if around:
        document["context"] = [passage_document(passage) for passage in passages]
    here.show(passages_page(passages, id), document)


@app.command()
def rm(
    context: typer.Context,
    source: Source,
    document: Annotated[
        str | None, typer.Option("--document", "-d", help="Only this document of it.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take out a source, or one document of it."""
    here = session(context, as_json=as_json, quiet=quiet)
    with _opened(here.settings()) as kb:
        gone = kb.remove(source=source, document=document)
    if here.json:
        here.show("", {"passages": gone})
    here.say(f"passages taken out: {gone:,}; next: osler kb build")


def _opened(settings: Settings) -> KnowledgeBase:
    from osler.kb.base import KnowledgeBase

    return KnowledgeBase.open(settings.kb.path)


def _partial(added: Added) -> bool:
    return bool(added.failed or added.unknown)


def _info_document(info: Info) -> dict[str, object]:
    return {
        **asdict(info),
        "path": str(info.path),
        "documents": info.documents,
        "passages": info.passages,
    }

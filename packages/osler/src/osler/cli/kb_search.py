"""`osler kb search|get`: reading a knowledge base."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from osler.cli.kb import count_waiting, open_kb
from osler.cli.options import Filters, JsonSession
from osler.cli.session import ABSTAINED, CliSession
from osler.errors import UnknownPassage


def search(
    here: JsonSession,
    query: Annotated[str, typer.Argument(help="Words, in any language of the texts.")],
    k: Annotated[int | None, typer.Option("--k", min=1, help="How many passages to show.")] = None,
    filters: Filters = Filters(),  # noqa: B008 - frozen
    language: Annotated[
        list[str] | None, typer.Option("--language", help="Only this language, en or zh.")
    ] = None,
    trust: Annotated[
        int | None,
        typer.Option("--trust", min=1, max=5, help="Only documents of at least this trust."),
    ] = None,
    retracted: Annotated[
        bool, typer.Option("--retracted", help="Include what was retracted.")
    ] = False,
) -> None:
    """Show the passages that a question would find. Exit code 1: none."""
    settings = here.load_settings(
        {
            **filters.as_settings(),
            "retrieve.k": k,
            "retrieve.languages": language or None,
            "retrieve.trust": trust,
            "retrieve.retracted": retracted or None,
        }
    )
    from osler.audit.entries import record_reading
    from osler.build.knowledge import search_passages
    from osler.build.models import encoder_languages
    from osler.cli.render import hits_page
    from osler.reports import SearchHit
    from osler.text import language_of

    hits = asyncio.run(search_passages(settings, query, k=settings.retrieve.k, sources=()))
    found = [SearchHit.document_of(hit) for hit in hits]
    record_reading(settings, "search", query, [hit.passage.id for hit in hits])
    by_words = language_of(query) not in encoder_languages(settings)
    here.show_result(hits_page(hits), {"query": query, "hits": found, "by_words": by_words})
    if by_words:
        reads = "English" if language_of(query) == "zh" else "Chinese"
        here.print_line(f"searched by words alone: the encoder reads {reads} only")
    if not hits:
        raise typer.Exit(ABSTAINED)
    with open_kb(settings) as kb:
        if waiting := count_waiting(kb):
            here.print_line(f"passages without a vector yet, searched by words alone: {waiting:,}")


def get(
    here: JsonSession,
    id: Annotated[
        str,
        typer.Argument(help='Id of a passage, as in source:document#3; or "PMID:1", a DOI, …'),
    ] = "",
    around: Annotated[
        int, typer.Option("--context", min=0, max=100, help="Passages to show before and after it.")
    ] = 0,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="The label of this drug; two of them stand side by side."),
    ] = None,
    section: Annotated[
        list[str] | None,
        typer.Option("--section", help="With --label: only headings with this word; repeatable."),
    ] = None,
) -> None:
    """Show a passage and its neighbours in the document, or the labels of drugs side by side."""
    if bool(id) == bool(label):
        raise typer.BadParameter("give the id of a passage, or --label", param_hint="ID")
    if label:
        from osler.cli.labels import show_labels

        show_labels(here, here.load_settings(), label, section or ())
        return
    _show_passage(here, id, around)


def _show_passage(here: CliSession, id: str, around: int) -> None:
    from rich.console import Group

    from osler.cli.render import passages_page
    from osler.cli.tables import document_page, format_time
    from osler.reports import PassageView

    settings = here.load_settings()
    from osler.answer.export.layout import resolve_reference
    from osler.audit.entries import record_reading
    from osler.build import graphs, online_sources

    stated = graphs.graph_passage(settings, id) or graphs.formula_passage(settings, id)
    if stated is not None:  # neither needs texts beside it
        here.show_result(passages_page((stated,), id), PassageView.document_of(stated))
        return
    with open_kb(settings) as kb:
        id = next((one.id for one in resolve_reference(kb, id)), id)
        try:
            passages, provenance = kb.neighbours(id, around), kb.provenance(id)
            first, record = passages[0], id.partition("#")[0]
            if not settings.access.may_open(first.source, record, first.locator.kind):
                raise UnknownPassage(f"there is no passage {id!r}")
        except UnknownPassage:
            if (cached := online_sources.cached_passage(settings, id)) is None:
                raise
            # From outside: its locator says where it was found and when.
            here.show_result(passages_page((cached,), id), PassageView.document_of(cached))
            return
    record_reading(settings, "get", id, [passage.id for passage in passages])
    # The passage itself is among its neighbours.
    wanted = next(passage for passage in passages if passage.id == id)
    document = PassageView.document_of(wanted) | {"provenance": asdict(provenance)}
    if around:
        document["context"] = [PassageView.document_of(passage) for passage in passages]
    facts = {**asdict(provenance), "added": format_time(provenance.added), "document": ""}
    page = Group(passages_page(passages, id), "", document_page(facts))
    here.show_result(page, document)

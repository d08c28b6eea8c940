"""`osler kb graph …`: concepts, their names and how they hang together."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.session import ABSTAINED, PARTIAL, Json, Quiet, escape_controls, open_session

if TYPE_CHECKING:
    from rich.table import Table

    from osler.app.config import Settings
    from osler.graph.store import Graph

app = typer.Typer(no_args_is_help=True)

Term = Annotated[str, typer.Argument(help="A name, or an identifier as in DOID:9352.")]


@app.command()
def add(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(help="Files, and folders of them.")],
    fmt: Annotated[
        str | None, typer.Option("--format", help="Format of the files, where it is not plain.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Read public graphs. What is there already stays as it is, once.

    Exit code 6: a file could not be read, or not to its end.
    """
    here = open_session(context, as_json=as_json, quiet=quiet)
    from osler.graph.formats import read_graph_files
    from osler.graph.store import Graph

    with Graph.create(here.load_settings().kb.path) as graph:
        added = graph.add(read_graph_files(paths, fmt=fmt))
    counts = asdict(added)
    if here.json or not here.quiet:
        rows = [(name, f"{counts[name]:,}") for name in _COUNTED]
        rows += [(f"dropped: {reason}", f"{count:,}") for reason, count in added.drops]
        rows += [("", f"{drop.where}: {drop.reason}") for drop in added.examples]
        here.show_result(plain_table(rows), counts)
    if any(reason in _UNREAD for reason, _ in added.drops):
        raise typer.Exit(PARTIAL)


_COUNTED = ("concepts", "names", "definitions", "relations", "mappings")
_EXAMPLES = 10
_UNREAD = frozenset({"unknown format", "empty file", "file that cannot be read to its end"})


@app.command()
def info(context: typer.Context, as_json: Json = False) -> None:
    """What it holds: concepts, names, relations by predicate, vocabularies."""
    here = open_session(context, as_json=as_json)
    with open_graph_here(here.load_settings()) as graph:
        found = asdict(graph.get_info())
    rows = [(name, f"{found[name]:,}") for name in (*_COUNTED, "merges", "size")]
    rows += [(f"names from {name or '(not said)'}", f"{n:,}") for name, n in found["sources"]]
    rows += [(name, f"{n:,}") for name, n in found["predicates"]]
    here.show_result(plain_table(rows), found)


@app.command()
def find(
    context: typer.Context,
    term: Term,
    query: Annotated[str, typer.Argument(help="What is asked of it; orders the relations.")] = "",
    fuzzy: Annotated[bool, typer.Option("--fuzzy", help="Also names that are nearly so.")] = False,
    as_json: Json = False,
) -> None:
    """The definition of a term and its relations. Exit code 1: no concept has the name."""
    here = open_session(context, as_json=as_json)
    import asyncio

    from osler.retrieve.graph import GraphRetriever

    with open_graph_here(here.load_settings()) as graph:
        concept = graph.get_concept(term)
        retriever = GraphRetriever(graph, fuzzy=fuzzy)
        name = concept.name if concept else term
        found = asyncio.run(retriever.find_definitions(name, query or name))
    document = [
        {
            "concept": asdict(finding.concept),
            "relations": [asdict(edge) | {"score": score} for edge, score in finding.relations],
            "text": finding.wire,
        }
        for finding in found
    ]
    rows = [row for f in found for row in ((f.concept.id, f.title), ("", f.wire))]
    here.show_result(plain_table(rows), {"term": term, "query": query, "found": document})
    if not found:
        raise typer.Exit(ABSTAINED)


@app.command()
def paths(
    context: typer.Context,
    one: Term,
    other: Term,
    hops: Annotated[int, typer.Option(min=1, max=4, help="Relations at most.")] = 3,
    k: Annotated[int, typer.Option("--k", min=1, help="How many paths.")] = 10,
    as_json: Json = False,
) -> None:
    """How two concepts hang together. Exit code 1: not at all, in so few relations."""
    here = open_session(context, as_json=as_json)
    from osler.graph.chains import find_chains_between, verbalise_chain

    with open_graph_here(here.load_settings()) as graph:
        ends = [_find_concepts(graph, term) for term in (one, other)]
        chains = [
            chain
            for a in ends[0]
            for b in ends[1]
            for chain in find_chains_between(graph, a, b, hops=hops, k=k)
        ]
    best = sorted(chains, key=lambda chain: -chain.score)[:k]
    rows = [(f"{chain.score:.2f}", verbalise_chain(chain)) for chain in best]
    here.show_result(
        plain_table(rows), {"paths": [asdict(c) | {"text": verbalise_chain(c)} for c in best]}
    )
    if not best:
        raise typer.Exit(ABSTAINED)


@app.command()
def fuse(
    context: typer.Context,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", "-s", help="Mappings to follow: sssom (the default), xref."),
    ] = None,
    names: Annotated[bool, typer.Option(help="Also by equal preferred names.")] = True,
    attach: Annotated[
        str, typer.Option(help="Only this vocabulary's, by name and synonym: DRUGBANK.")
    ] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Take all merges back.")] = False,
    as_json: Json = False,
) -> None:
    """Make concepts of several vocabularies one where they are the same thing."""
    here = open_session(context, as_json=as_json)
    from osler.graph import fusion

    with open_graph_here(here.load_settings()) as graph:
        if undo:
            gone = fusion.separate_concepts(graph)
            here.show_result(plain_table([("merges taken back", f"{gone:,}")]), {"separated": gone})
            return
        if attach:
            found = fusion.attach_vocabulary(graph, attach)
            rows = [("merges", f"{found.merges:,}"), ("ambiguous", f"{found.ambiguous:,}")]
            rows += [("unmatched", f"{len(found.unmatched):,}")]
            rows += [("", f"{id} {name}") for id, name in found.unmatched[:_EXAMPLES]]
            here.show_result(plain_table(rows), asdict(found))
            return
        done = fusion.fuse_concepts(graph, sources=source or ("sssom",), names=names)
    rows = [("merges", f"{done.merges:,}"), ("refused", f"{done.refused:,}")]
    here.show_result(plain_table(rows), asdict(done))


@app.command()
def describe(
    context: typer.Context,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", "-s", help="Sources of the knowledge base (wiki)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Give concepts the opening of the articles that bear their names."""
    here = open_session(context, as_json=as_json)
    from osler.graph.describe import describe_concepts
    from osler.kb.base import KnowledgeBase
    from osler.sources.catalogue import WIKI

    path = here.load_settings().kb.path
    with open_graph_here(here.load_settings()) as graph, KnowledgeBase.open(path) as kb:
        documents = (found for name in source or [WIKI] for found in kb.read_documents(name))
        done = describe_concepts(graph, documents)
    rows = [("described", f"{done.described:,}"), ("no such concept", f"{done.unknown:,}")]
    rows += [("several such concepts", f"{done.ambiguous:,}")]
    here.show_result(plain_table(rows), asdict(done))


def open_graph_here(settings: Settings) -> Graph:
    from osler.graph.store import Graph

    return Graph.open(settings.kb.path)


def _find_concepts(graph: Graph, term: str) -> list[str]:
    from osler.graph.lookup import Lookup

    if graph.get_concept(term) is not None:
        return [term]
    return [match.concept for match in Lookup(graph).find(term, fuzzy=False)]


def plain_table(rows: list[tuple[str, str]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(escape_controls(cell)) for cell in row))
    return table

"""`osler kb graph …`: concepts, their names, relations and communities."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from osler.cli.options import JsonSession, refuse_options
from osler.cli.session import ABSTAINED, PARTIAL, CliSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from osler.graph.communities import Communities, Community
    from osler.graph.store import Graph
    from osler.settings import Settings


Term = Annotated[str, typer.Argument(help="A name, or an identifier as in DOID:9352.")]


def add(
    here: CliSession,
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files, and folders of them.", show_default=False)
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Add the sample graph that comes with Osler.")
    ] = False,
    fmt: Annotated[
        str | None, typer.Option("--format", help="Format of the files, where it is not plain.")
    ] = None,
    describe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="Then define concepts by the opening of this source's articles with their names"
            " (wiki); repeatable.",
        ),
    ] = None,
    vectors: Annotated[
        bool,
        typer.Option(
            "--vectors",
            help="Then embed all names, so that names in other words are found. Up to 500 names"
            " need no such step.",
        ),
    ] = False,
) -> None:
    """Read public graphs. What is there already stays as it is, once.

    Exit code 6: a file could not be read, or not to its end.
    """
    settings, counts = here.load_settings(), dict[str, Any]()
    if paths or sample:
        counts = add_graph_files(settings, paths or [], fmt=fmt, sample=sample)
    elif not (describe or vectors):
        raise typer.BadParameter("name files, or --sample")
    if describe:
        counts |= {"described": _describe_concepts(settings, describe)}
    if vectors:
        counts |= {"names": _embed_names(settings)}
    if here.json or not here.quiet:
        here.show(counts)
    if any(reason in _UNREAD for reason, _ in counts.get("drops", ())):
        raise typer.Exit(PARTIAL)


def add_graph_files(
    settings: Settings, paths: Sequence[Path] = (), *, fmt: str | None = None, sample: bool = False
) -> dict[str, Any]:
    """Adds files of graphs, and with `sample` the graph that comes with Osler; returns counts."""
    from importlib.resources import as_file, files

    from osler.graph.formats import read_graph_files
    from osler.graph.store import Graph

    with Graph.create(settings.kb.path) as graph, ExitStack() as opened:
        own = as_file(files("osler.sample") / "graph")
        folder = [opened.enter_context(own)] if sample else []
        return asdict(graph.add(read_graph_files([*paths, *folder], fmt=fmt)))


def _describe_concepts(settings: Settings, sources: list[str]) -> dict[str, Any]:
    from osler.graph.fusion import describe_concepts
    from osler.kb.base import KnowledgeBase

    with open_graph_here(settings) as graph, KnowledgeBase.open(settings.kb.path) as kb:
        documents = (document for name in sources for document in kb.read_documents(name))
        return asdict(describe_concepts(graph, documents))


def _embed_names(settings: Settings) -> int:
    from osler.build.models import load_encoder
    from osler.graph.lookup import NameVectors

    with open_graph_here(settings) as graph:
        return NameVectors(graph, load_encoder(settings)).build()


_EXAMPLES = 10
_UNREAD = frozenset({"unknown format", "empty file", "file that cannot be read to its end"})


def info(here: JsonSession) -> None:
    """Count concepts, names, relations by predicate, and vocabularies."""
    with open_graph_here(here.load_settings()) as graph:
        counts = asdict(graph.get_info())
    here.show(counts)


def find(
    here: JsonSession,
    term: Term,
    query: Annotated[str, typer.Argument(help="A question that orders the relations.")] = "",
    fuzzy: Annotated[
        bool, typer.Option("--fuzzy", help="Accept names that are spelt almost the same, too.")
    ] = False,
    to: Annotated[str | None, typer.Option(help="Show the paths to this concept instead.")] = None,
    hops: Annotated[
        int, typer.Option(min=1, max=4, help="With --to: most relations on a path.")
    ] = 3,
    k: Annotated[int, typer.Option("--k", min=1, help="With --to: how many paths to show.")] = 10,
) -> None:
    """Show the definition of a term and its relations, or its paths to another.

    Exit code 1: no concept has the name, or no path is so short.
    """
    from osler.retrieve.graph import GraphRetriever

    if to is not None:
        _show_paths(here, term, to, hops, k, fuzzy=fuzzy)
        return
    with open_graph_here(here.load_settings()) as graph:
        concept = graph.get_concept(term)
        retriever = GraphRetriever(graph, fuzzy=fuzzy)
        name = concept.name if concept else term
        findings = asyncio.run(retriever.find_definitions(name, query or name))
    document = [
        {
            "concept": asdict(finding.concept),
            "relations": [asdict(edge) | {"score": score} for edge, score in finding.relations],
            "text": finding.wire,
        }
        for finding in findings
    ]
    page = "\n".join(f"{one.concept.id}  {one.title}\n{one.wire}" for one in findings)
    here.show({"term": term, "query": query, "found": document}, page)
    if not findings:
        raise typer.Exit(ABSTAINED)


def _show_paths(here: CliSession, one: str, other: str, hops: int, k: int, *, fuzzy: bool) -> None:
    from osler.graph.chains import find_chains_between
    from osler.graph.items import verbalise_chain

    with open_graph_here(here.load_settings()) as graph:
        ends = [_find_concepts(graph, term, fuzzy=fuzzy) for term in (one, other)]
        chains = [
            chain
            for a in ends[0]
            for b in ends[1]
            for chain in find_chains_between(graph, a, b, hops=hops, k=k)
        ]
    # Each pair of ends gave its own k best; these are the best of all pairs.
    best = sorted(chains, key=lambda chain: -chain.score)[:k]
    paths = [asdict(chain) | {"text": verbalise_chain(chain)} for chain in best]
    here.show({"paths": paths}, [{"score": one["score"], "path": one["text"]} for one in paths])
    if not best:
        raise typer.Exit(ABSTAINED)


def fuse(
    here: JsonSession,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", "-s", help="Mappings to follow: sssom (the default), xref."),
    ] = None,
    names: Annotated[
        bool, typer.Option(help="Fuse concepts with equal preferred names, too.")
    ] = True,
    attach: Annotated[
        str,
        typer.Option(
            help="Fuse only the concepts of this vocabulary, by name and synonym: DRUGBANK."
        ),
    ] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Undo all merges.")] = False,
) -> None:
    """Merge concepts of several vocabularies that are the same."""
    from osler.graph import fusion

    if undo:
        refuse_options("it does not go with --undo", attach=attach)
    if undo or attach:
        refuse_options("it does not go with --undo or --attach", source=source, no_names=not names)
    with open_graph_here(here.load_settings()) as graph:
        if undo:
            gone = fusion.separate_concepts(graph)
            here.show({"separated": gone})
            return
        if attach:
            attached = fusion.attach_vocabulary(graph, attach)
            left = attached.unmatched
            page = {**asdict(attached), "unmatched": len(left), "first": left[:_EXAMPLES]}
            here.show(asdict(attached), page)
            return
        done = fusion.fuse_concepts(graph, sources=source or ("sssom",), names=names)
    here.show(asdict(done))


def open_graph_here(settings: Settings) -> Graph:
    from osler.graph.store import Graph

    return Graph.open(settings.kb.path)


def _find_concepts(graph: Graph, term: str, *, fuzzy: bool) -> list[str]:
    from osler.graph.lookup import Lookup

    if graph.get_concept(term) is not None:
        return [term]
    return [match.concept for match in Lookup(graph).find(term, fuzzy=fuzzy)]


# Of the largest communities, how many are shown.
_SHOWN = 5


def communities(
    here: CliSession,
    query: Annotated[
        str, typer.Argument(help="Show the communities of this question; without one, the largest.")
    ] = "",
    largest: Annotated[
        int | None,
        typer.Option(
            min=2, help="Concepts over which a community is split further; 60 by default."
        ),
    ] = None,
    anew: Annotated[bool, typer.Option("--anew", help="Find the communities again.")] = False,
    summaries: Annotated[
        int, typer.Option(min=0, help="How many the summariser's model is to write about.")
    ] = 0,
    k: Annotated[int, typer.Option("--k", min=1, help="How many to show.")] = _SHOWN,
) -> None:
    """Find the communities of the graph, and show those that bear on a question.

    They are found when there are none of the graph as it is now. Exit code 1: none bears
    on the question; 6: the model wrote nothing that can be used of some of them.
    """
    with open_graph_here(here.load_settings()) as graph:
        index = _open_communities(graph, largest, anew=anew)
        unusable = 0
        if summaries:
            wanted = _pick_communities(index, query, summaries)
            unusable = asyncio.run(_write_summaries(here, index, wanted))
        shown = [(one, index.get_passage(one)) for one in _pick_communities(index, query, k)]
        levels = sorted(Counter(one.level for one in index.list_communities()).items())
    document = [
        {"id": passage.id, "size": one.size, "level": one.level, "text": passage.text}
        for one, passage in shown
    ]
    texts = {passage.id: passage.text for _, passage in shown}
    found = {"levels": dict(levels), "query": query, "found": document}
    here.show(found, {"communities by level": dict(levels), **texts})
    if unusable:
        raise typer.Exit(PARTIAL)
    if query and not shown:
        raise typer.Exit(ABSTAINED)


def _open_communities(graph: Graph, largest: int | None, *, anew: bool) -> Communities:
    from osler.errors import KnowledgeBaseMissing
    from osler.graph.communities import Communities, build_communities

    if not anew:
        with suppress(KnowledgeBaseMissing):
            found = Communities(graph)
            refuse_options("they are found already; add --anew", largest=largest)
            return found
    return build_communities(graph, largest=largest or 60)


def _pick_communities(index: Communities, query: str, count: int) -> list[Community]:
    """The communities that match the query, or the largest that are not split further."""
    if not query:
        # A community that was split is shown by its parts alone.
        every = list(index.list_communities())
        parted = {above for one in every for above in [*index.list_ancestors(one.number)][1:]}
        return [one for one in every if one.number not in parted][:count]
    from osler.retrieve.graph_communities import CommunityRetriever

    hits = asyncio.run(CommunityRetriever(index.graph).find_communities(query, k=count))
    return [hit.community for hit in hits]


async def _write_summaries(here: CliSession, index: Communities, wanted: list[Community]) -> int:
    """Has them written about; how many replies could not be used."""
    from osler.build import run_budget, run_prices
    from osler.build.composers import may_write
    from osler.build.models import load_roles
    from osler.errors import BadConfig, MalformedOutput
    from osler.retrieve.graph_communities import CommunitySummariser
    from osler.trace import Run

    settings = here.load_settings()
    if not may_write(settings, "summariser"):
        raise BadConfig(
            "the packaged model is too small to write about medicine",
            fix="set roles.summariser, or model, to one that may",
        )
    model = (await load_roles(settings, ["summariser"]))["summariser"].model
    prices = run_prices(settings, {"summariser": model.name})
    run, unusable = Run(budget=run_budget(settings), prices=prices), 0
    async for one, summary in CommunitySummariser(model).summarise_all(index, wanted, run):
        if isinstance(summary, MalformedOutput):
            unusable += 1
            here.print_line(f"{one.id}: {summary.message}")
    return unusable

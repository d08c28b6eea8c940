"""`osler kb graph communities`: what hangs together, and what is told of it."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.graph import open_graph_here, plain_table
from osler.cli.session import ABSTAINED, PARTIAL, Json, Quiet, open_session

if TYPE_CHECKING:
    from osler.cli.session import CliSession
    from osler.graph.communities import Communities, Community
    from osler.graph.store import Graph

_SHOWN = 5
"""Of the largest communities, how many are shown."""


def communities(
    context: typer.Context,
    query: Annotated[
        str, typer.Argument(help="A question: its communities are shown. None: the largest.")
    ] = "",
    largest: Annotated[
        int, typer.Option(min=2, help="Concepts over which a community is split further.")
    ] = 60,
    anew: Annotated[bool, typer.Option("--anew", help="Find them again.")] = False,
    summaries: Annotated[
        int, typer.Option(min=0, help="How many the summariser's model is to write about.")
    ] = 0,
    k: Annotated[int, typer.Option("--k", min=1, help="How many are shown.")] = _SHOWN,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the communities of the graph, and show those that bear on a question.

    They are found when there are none of the graph as it is now. Exit code 1: none bears
    on the question; 6: the model wrote nothing that can be used of some of them.
    """
    here = open_session(context, as_json=as_json, quiet=quiet)
    with open_graph_here(here.load_settings()) as graph:
        found = _open_communities(graph, largest, anew=anew)
        unusable = 0
        if summaries:
            unusable = _summarise_communities(
                here, found, _pick_communities(found, query, summaries)
            )
        shown = [(one, found.get_passage(one)) for one in _pick_communities(found, query, k)]
        levels = sorted(Counter(one.level for one in found.list_communities()).items())
    rows = [(f"level {level}", f"{count:,} communities") for level, count in levels]
    rows += [row for one, passage in shown for row in ((passage.id, ""), ("", passage.text))]
    document = [
        {"id": passage.id, "size": one.size, "level": one.level, "text": passage.text}
        for one, passage in shown
    ]
    here.show_result(plain_table(rows), {"levels": dict(levels), "query": query, "found": document})
    if unusable:
        raise typer.Exit(PARTIAL)
    if query and not shown:
        raise typer.Exit(ABSTAINED)


def _open_communities(graph: Graph, largest: int, *, anew: bool) -> Communities:
    from osler.errors import KnowledgeBaseMissing
    from osler.graph.communities import Communities, build_communities

    try:
        return build_communities(graph, largest=largest) if anew else Communities(graph)
    except KnowledgeBaseMissing:
        return build_communities(graph, largest=largest)


def _pick_communities(found: Communities, query: str, count: int) -> list[Community]:
    """Those that bear on the query, or the largest of those that are not split further."""
    if not query:
        parted = {
            above
            for one in found.list_communities()
            for above in [*found.list_ancestors(one.number)][1:]
        }
        return list(
            islice((one for one in found.list_communities() if one.number not in parted), count)
        )
    import asyncio

    from osler.retrieve.graph_communities import CommunityRetriever

    hits = asyncio.run(CommunityRetriever(found.graph).find_communities(query, k=count))
    return [hit.community for hit in hits]


def _summarise_communities(here: CliSession, found: Communities, wanted: list[Community]) -> int:
    """Has them written about; how many replies could not be used."""
    import asyncio

    return asyncio.run(_write_summaries(here, found, wanted))


async def _write_summaries(here: CliSession, found: Communities, wanted: list[Community]) -> int:
    from osler.app.wiring.composers import may_write
    from osler.app.wiring.models import load_roles
    from osler.app.wiring.strategies import run_budget
    from osler.errors import BadConfig, MalformedOutput
    from osler.retrieve.graph_summaries import CommunitySummariser
    from osler.trace import Run

    settings = here.load_settings()
    if not may_write(settings, "summariser"):
        raise BadConfig(
            "the packaged model is too small to write about medicine",
            fix="set roles.summariser, or model, to one that may",
        )
    teller = CommunitySummariser((await load_roles(settings, ["summariser"]))["summariser"].model)
    unusable = 0
    async for one, said in teller.summarise_all(found, wanted, Run(budget=run_budget(settings))):
        if isinstance(said, MalformedOutput):
            unusable += 1
            here.print_line(f"{one.id}: {said.message}")
    return unusable

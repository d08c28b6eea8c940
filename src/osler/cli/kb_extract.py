"""`osler kb extract`: what chunks say, taken out of them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from osler.cli.kb import opened
from osler.cli.kb_index import followed, known
from osler.cli.progress import progress
from osler.cli.session import ABSTAINED, PARTIAL, Json, Quiet, session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from osler.cli.session import Session
    from osler.kb.extract.job import Plan, Report
    from osler.kb.extract.publish import Published
    from osler.kb.extract.store import Anchored
    from osler.kb.indexes.job import Report as Indexed


def extract(
    context: typer.Context,
    by: Annotated[
        Literal["dictionary", "model"],
        typer.Option("--by", help="Names and patterns, or the summariser's model."),
    ] = "dictionary",
    schema: Annotated[
        Path | None, typer.Option("--schema", help="Types of one's own: a .toml or .json file.")
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(
            "--unit",
            help="What the model is asked for: entities, relations, points, tables, outline,"
            " summary; give it once for each. Else the first three.",
        ),
    ] = None,
    brief: Annotated[
        bool | None,
        typer.Option(
            "--brief/--full",
            help="Names and types alone, or all that is known of an entity (model). Else brief for"
            " the packaged model.",
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", "-s", help="Only this; give it once for each. Else all but emr."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Chunks at most.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take, and do nothing.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Also what is done already.")] = False,
    pairs: Annotated[
        bool, typer.Option(help="Relate names that only stand in one sentence (dictionary).")
    ] = True,
    at_once: Annotated[
        int, typer.Option("--at-once", min=1, max=256, help="Chunks asked about at a time.")
    ] = 4,
    index: Annotated[
        list[str] | None,
        typer.Option(
            "--index", help="Make this index afterwards, as `osler kb index`; once for each."
        ),
    ] = None,
    show: Annotated[
        str | None, typer.Option("--show", metavar="ID", help="Only show a passage's items.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take entities, relations and knowledge points out of the texts, into the concept graph.

    A run that was interrupted goes on where it stopped; chunks that have not changed cost
    nothing. Indexes that are kept follow. Exit code 6: replies for some chunks could not be
    read; 1: nothing to show.
    """
    here = session(context, as_json=as_json, quiet=quiet)
    if show is not None:
        with opened(here.settings()) as kb:
            found = kb.extracted(show)
        _show_items(here, found)
        return
    import asyncio

    from osler.kb.extract import job, publish
    from osler.wiring import extraction

    settings, wanted = here.settings(), known(index or ())
    with opened(settings) as kb:  # refuses what is no knowledge base before a model is loaded
        folder = kb.path
    scope = tuple(source) if source else None

    async def work() -> tuple[Plan, Report | None]:
        chosen = extraction.extractor(
            settings, by, schema_file=schema, units=unit or (), pairs=pairs, brief=brief
        )
        async with chosen as extractor:
            planned = await asyncio.to_thread(
                job.plan, folder, extractor, scope=scope, limit=limit, again=again
            )
            if dry_run:
                return planned, None
            if not here.json:
                here.say(_in_short(planned))
            with progress(here) as report:
                done = await job.run(
                    folder,
                    extractor,
                    scope=scope,
                    limit=limit,
                    again=again,
                    at_once=at_once,
                    progress=report,
                )
            return planned, done

    planned, done = asyncio.run(work())
    if done is None:
        here.show(_plan_page(planned), {"plan": asdict(planned)})
        return
    with progress(here) as report:
        published = publish.publish(folder, report)
        indexed = followed(settings, folder, wanted, report)
    if here.json or not here.quiet:
        document = {
            "plan": asdict(planned),
            "done": asdict(done),
            "graph": asdict(published),
            "indexes": [asdict(one) for one in indexed],
        }
        here.show(_report_page(done, published, indexed), document)
    if done.failed:
        raise typer.Exit(PARTIAL)


def _in_short(plan: Plan) -> str:
    line = f"{plan.asked:,} of {plan.chunks:,} chunks to read, {plan.known:,} known by content"
    if plan.cost.calls:
        line += f"; about {plan.cost.calls:,} calls, {plan.cost.prompt_tokens:,} tokens read"
        line += f" and {plan.cost.completion_tokens:,} written"
    return line


def _plan_page(plan: Plan) -> Table:
    basis = f"mean of {plan.measured:,} chunks done before" if plan.measured else "a guess"
    rows = [
        ("chunks", f"{plan.chunks:,}"),
        ("done", f"{plan.done:,}"),
        ("known by content", f"{plan.known:,}"),
        ("to read", f"{plan.asked:,}"),
        ("calls", f"{plan.cost.calls:,}"),
        ("tokens read", f"{plan.cost.prompt_tokens:,}"),
        ("tokens written", f"{plan.cost.completion_tokens:,}"),
    ]
    if plan.seconds is not None:
        rows.append(("model time", f"{plan.seconds:,.0f} s"))
    if plan.cost.calls:
        rows.append(("rests on", basis))
    return _table(rows)


def _report_page(done: Report, graph: Published, indexed: Sequence[Indexed]) -> Table:
    rows = [
        ("chunks", f"{done.chunks:,} in {done.seconds:,.1f} s"),
        ("known by content", f"{done.known:,}"),
        *((f"items: {kind}", f"{count:,}") for kind, count in done.kinds),
        *((f"left out: {reason}", f"{count:,}") for reason, count in done.drops),
    ]
    if done.usage.calls:
        read, written = done.usage.prompt_tokens, done.usage.completion_tokens
        rows += [
            ("calls", f"{done.usage.calls:,}"),
            ("tokens", f"{read:,} read, {written:,} written"),
        ]
        rows += [("replies cut short", f"{done.cut:,}"), ("failed", f"{done.failed:,}")]
        rows += [("", why) for why in done.failures]
    rows.append(("graph", f"{graph.names:,} names, {graph.relations:,} relations new"))
    if graph.withdrawn:
        rows.append(("graph: taken out", f"what {graph.withdrawn:,} passages said"))
    rows += [
        (f"index: {one.kind}", f"{one.items:,} items new in {one.seconds:,.1f} s")
        for one in indexed
    ]
    if done.left:
        rows.append(("left to do", f"{done.left:,}"))
    return _table(rows)


def _show_items(here: Session, found: Sequence[Anchored]) -> None:
    from osler.kb.extract.store import called

    rows = [(str(one.item.kind), f"{called(one.item)}  [{one.extractor}]") for one in found]
    document = [{"passage": f.passage, "extractor": f.extractor, **asdict(f.item)} for f in found]
    here.show(_table(rows), {"items": document})
    if not found:
        raise typer.Exit(ABSTAINED)


def _table(rows: list[tuple[str, str]]) -> Table:
    from osler.cli.graph import table

    return table(rows)

"""`osler kb extract` and `index`: information extracted from chunks, and its indexes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from osler.cli.kb import open_kb
from osler.cli.options import DryRun
from osler.cli.progress import show_progress
from osler.cli.session import ABSTAINED, PARTIAL, CliSession

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from osler.extract import Extractor
    from osler.extract.indexes import Kind
    from osler.extract.indexes.store import IndexReport
    from osler.extract.job import ExtractionPlan, ExtractionReport
    from osler.kb.store.passages import Progress
    from osler.settings import Settings


By = Annotated[
    Literal["dictionary", "model"],
    typer.Option("--by", help="Names, or the summariser's model."),
]
Schema = Annotated[
    Path | None, typer.Option("--schema", help="File with your own types: .toml or .json.")
]
Units = Annotated[
    list[str] | None,
    typer.Option(
        "--unit",
        help="What the model is asked for: entities, relations, points, tables, outline,"
        " summary; give it once for each. Else the first three.",
    ),
]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source", "-s", help="Only this source; repeatable. By default all that are not private."
    ),
]
AtOnce = Annotated[
    int, typer.Option("--at-once", min=1, max=256, help="Chunks processed at a time.")
]
Indexes = Annotated[
    list[str] | None,
    typer.Option(
        "--index", help="Make this index afterwards, as `osler kb index` does; repeatable."
    ),
]
Shown = Annotated[
    str | None, typer.Option("--show", metavar="ID", help="Only show a passage's items.")
]


def extract(
    here: CliSession,
    by: By = "dictionary",
    schema: Schema = None,
    unit: Units = None,
    source: Sources = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Most chunks to process.")] = None,
    dry_run: DryRun = False,
    again: Annotated[bool, typer.Option("--again", help="Include what is done already.")] = False,
    at_once: AtOnce = 4,
    index: Indexes = None,
    show: Shown = None,
) -> None:
    """Extract entities, relations and knowledge points from the texts into the concept graph.

    An interrupted run resumes; unchanged chunks cost nothing. Existing indexes are updated. Exit
    code 6: replies for some chunks could not be read; 1: nothing to show.
    """
    settings = here.load_settings()
    if show is not None:
        _show_items(here, settings, show)
        return
    from osler.build import extraction

    wanted = check_kinds(index or ())
    from osler.build.privacy import extraction_scope

    with open_kb(settings) as kb:  # refuses what is no knowledge base before a model is loaded
        scope = extraction_scope(
            settings, kb.sources, source or (), ["summariser"] if by == "model" else []
        )
        folder = kb.path
    chunks = {"scope": scope, "limit": limit, "again": again}
    made = extraction.open_extractor(settings, by, schema_file=schema, units=unit or ())
    at_once = 0 if dry_run else at_once
    planned, done = asyncio.run(_run_extraction(here, made, folder, chunks, at_once))
    if done is None:
        here.show({"plan": asdict(planned)}, asdict(planned))
        return
    _publish_results(here, settings, folder, wanted, planned, done)
    if done.failed:
        raise typer.Exit(PARTIAL)


async def _run_extraction(
    here: CliSession,
    made: AbstractAsyncContextManager[Extractor],
    folder: Path,
    chunks: dict[str, Any],
    at_once: int,
) -> tuple[ExtractionPlan, ExtractionReport | None]:
    """Has the extractor read the chunks, after it was said how many there are; with 0 `at_once`
    they are only counted."""
    from osler.extract import job

    async with made as extractor:
        # Planned first and said aloud: with a served model the number of calls is money.
        planned = await asyncio.to_thread(job.plan_extraction, folder, extractor, **chunks)
        if not at_once:
            return planned, None
        if not here.json:
            here.print_line(_plan_line(planned))
        with show_progress(here) as report:
            done = await job.run_extraction(
                folder, extractor, at_once=at_once, progress=report, **chunks
            )
    return planned, done


def _publish_results(
    here: CliSession,
    settings: Settings,
    folder: Path,
    wanted: Sequence[Kind],
    planned: ExtractionPlan,
    done: ExtractionReport,
) -> None:
    """Brings graph and indexes in step with what was read, and tells all of it."""
    from osler.extract import publish

    with show_progress(here) as report:
        published = publish.publish_items(folder, report)
        indexed = follow_indexes(settings, folder, wanted, report)
    if here.json or not here.quiet:
        document = {
            "plan": asdict(planned),
            "done": asdict(done),
            "graph": asdict(published),
            "indexes": [asdict(one) for one in indexed],
        }
        here.show(document, {**document, "plan": ""})


def _plan_line(plan: ExtractionPlan) -> str:
    line = f"{plan.asked:,} of {plan.chunks:,} chunks to read, {plan.known:,} known by content"
    if plan.cost.calls:
        line += f"; about {plan.cost.calls:,} calls, {plan.cost.prompt_tokens:,} tokens read"
        line += f" and {plan.cost.completion_tokens:,} written"
    return line


def _show_items(here: CliSession, settings: Settings, passage: str) -> None:
    from osler.extract.derived import Extractions
    from osler.extract.store import item_name

    with open_kb(settings) as kb:
        items = Extractions.of(kb).items_of(passage)
    page = [
        {"kind": str(one.item.kind), "item": item_name(one.item), "extractor": one.extractor}
        for one in items
    ]
    document = [{"passage": f.passage, "extractor": f.extractor, **asdict(f.item)} for f in items]
    here.show({"items": document}, page)
    if not items:
        raise typer.Exit(ABSTAINED)


def index(
    here: CliSession,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="knowledge_unit, atomic_query, outline, summary, table; none: those that are kept."
        ),
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Remove the indexes instead.")] = False,
) -> None:
    """Build indexes over what `osler kb extract` extracted, and show their cost.

    An index is kept up to date: it follows every extraction and every removal. Set kb.indexes to
    search it.
    """
    from osler.errors import BadConfig
    from osler.extract.indexes import store

    settings, wanted = here.load_settings(), check_kinds(names or ())
    if drop and not wanted:
        raise BadConfig("there is nothing to take out", fix="name the indexes")
    with open_kb(settings) as kb:
        folder = kb.path
    with show_progress(here) as report:
        gone = store.drop_indexes(folder, wanted) if drop else 0
        done = [] if drop else follow_indexes(settings, folder, wanted, report)
    costs = store.index_costs(folder)
    if here.json or not here.quiet:
        document = {"made": [asdict(one) for one in done], "dropped": gone}
        here.show({**document, "indexes": [asdict(cost) for cost in costs]})
    # The graph's costs stand last, and only where an extraction has filled it.
    if not here.json and costs[-1].kind != "graph":
        here.print_line("nothing was extracted yet; run osler kb extract")


def follow_indexes(
    settings: Settings, folder: Path, wanted: Sequence[Kind], report: Progress | None
) -> list[IndexReport]:
    """Brings these and those that are kept in step, and loads the encoder only for that."""
    from osler.build.models import load_encoder
    from osler.extract.indexes import store

    kinds = (*store.kept_kinds(folder), *wanted)
    return store.make_indexes(folder, kinds, load_encoder(settings), report) if kinds else []


def check_kinds(names: Sequence[str]) -> tuple[Kind, ...]:
    """Raises `BadConfig` for what is no index that is made."""
    from osler.errors import BadConfig
    from osler.extract.indexes import KINDS

    for name in names:
        if name not in KINDS:
            made = {"chunk": "osler kb build", "graph": "osler kb extract"}.get(name)
            fix = f"`{made}` makes it" if made else f"choose one of {', '.join(KINDS)}"
            raise BadConfig(f"{name!r} is not an index that is made here", fix=fix)
    return tuple(kind for kind in KINDS if kind in names)

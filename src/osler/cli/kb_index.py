"""`osler kb index`: indexes over what was extracted, each made where it is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.kb import opened
from osler.cli.progress import progress
from osler.cli.session import Json, Quiet, session

if TYPE_CHECKING:
    from rich.table import Table

    from osler.app.config import Settings
    from osler.extract.indexes.job import Report
    from osler.extract.indexes.kinds import Kind
    from osler.extract.indexes.store import Cost
    from osler.kb.store.passages import Progress


def index(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="knowledge_unit, atomic_query, outline, summary, table; none: those that are kept."
        ),
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Take them out instead.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make indexes over what `osler kb extract` took out, and say what each costs.

    One that was made is kept: it follows every extraction, and what leaves the knowledge base
    leaves it too. Set kb.indexes to search it.
    """
    here = session(context, as_json=as_json, quiet=quiet)
    from osler.errors import BadConfig
    from osler.extract.indexes import job

    settings, wanted = here.settings(), known(names or ())
    if drop and not wanted:
        raise BadConfig("there is nothing to take out", fix="name the indexes")
    with opened(settings) as kb:
        folder = kb.path
    with progress(here) as report:
        gone = job.drop(folder, wanted) if drop else 0
        done = [] if drop else followed(settings, folder, wanted, report)
    costs = job.costs(folder)
    if here.json or not here.quiet:
        document = {"made": [asdict(one) for one in done], "dropped": gone}
        here.show(_page(costs), {**document, "indexes": [asdict(cost) for cost in costs]})
    if not here.json and costs[-1].kind != "graph":
        here.say("nothing was extracted yet; run osler kb extract")


def followed(
    settings: Settings, folder: Path, wanted: Sequence[Kind], report: Progress | None
) -> list[Report]:
    """Brings these and those that are kept in step, and loads the encoder only for that."""
    from osler.app.wiring import encoder
    from osler.extract.indexes import job

    kinds = (*job.kept(folder), *wanted)
    return job.make(folder, kinds, encoder(settings), report) if kinds else []


def known(names: Sequence[str]) -> tuple[Kind, ...]:
    """Raises `BadConfig` for what is no index that is made."""
    from osler.errors import BadConfig
    from osler.extract.indexes.kinds import KINDS

    for name in names:
        if name not in KINDS:
            made = {"chunk": "osler kb build", "graph": "osler kb extract"}.get(name)
            fix = f"`{made}` makes it" if made else f"choose of {', '.join(KINDS)}"
            raise BadConfig(f"{name!r} is no index that is made here", fix=fix)
    return tuple(kind for kind in KINDS if kind in names)


def _page(costs: Sequence[Cost]) -> Table:
    from rich.table import Table

    page = Table(box=None, pad_edge=False)
    page.add_column("index")
    for name in ("items", "vectors", "MB", "seconds", "to come"):
        page.add_column(name, justify="right")
    for cost in costs:
        seconds = "" if cost.seconds is None else f"{cost.seconds:,.1f}"
        page.add_row(
            cost.kind,
            *(f"{cost.items:,}", f"{cost.vectors:,}", f"{cost.bytes / 1e6:,.2f}"),
            *(seconds, f"{cost.pending:,}"),
        )
    return page

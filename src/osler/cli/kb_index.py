"""`osler kb index`: indexes over what was extracted, each made where it is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.kb import open_kb
from osler.cli.progress import show_progress
from osler.cli.session import Json, Quiet, open_session

if TYPE_CHECKING:
    from rich.table import Table

    from osler.app.config import Settings
    from osler.extract.indexes import Kind
    from osler.extract.indexes.job import IndexReport
    from osler.extract.indexes.store import IndexCost
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
    here = open_session(context, as_json=as_json, quiet=quiet)
    from osler.errors import BadConfig
    from osler.extract.indexes import job

    settings, wanted = here.load_settings(), check_kinds(names or ())
    if drop and not wanted:
        raise BadConfig("there is nothing to take out", fix="name the indexes")
    with open_kb(settings) as kb:
        folder = kb.path
    with show_progress(here) as report:
        gone = job.drop_indexes(folder, wanted) if drop else 0
        done = [] if drop else follow_indexes(settings, folder, wanted, report)
    costs = job.index_costs(folder)
    if here.json or not here.quiet:
        document = {"made": [asdict(one) for one in done], "dropped": gone}
        here.show_result(
            _costs_page(costs), {**document, "indexes": [asdict(cost) for cost in costs]}
        )
    if not here.json and costs[-1].kind != "graph":
        here.print_line("nothing was extracted yet; run osler kb extract")


def follow_indexes(
    settings: Settings, folder: Path, wanted: Sequence[Kind], report: Progress | None
) -> list[IndexReport]:
    """Brings these and those that are kept in step, and loads the encoder only for that."""
    from osler.app.wiring.models import load_encoder
    from osler.extract.indexes import job

    kinds = (*job.kept_kinds(folder), *wanted)
    return job.make_indexes(folder, kinds, load_encoder(settings), report) if kinds else []


def check_kinds(names: Sequence[str]) -> tuple[Kind, ...]:
    """Raises `BadConfig` for what is no index that is made."""
    from osler.errors import BadConfig
    from osler.extract.indexes import KINDS

    for name in names:
        if name not in KINDS:
            made = {"chunk": "osler kb build", "graph": "osler kb extract"}.get(name)
            fix = f"`{made}` makes it" if made else f"choose of {', '.join(KINDS)}"
            raise BadConfig(f"{name!r} is no index that is made here", fix=fix)
    return tuple(kind for kind in KINDS if kind in names)


def _costs_page(costs: Sequence[IndexCost]) -> Table:
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

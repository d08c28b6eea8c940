"""Opens extractors: by names and patterns, or by the configured model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, get_args

from osler.build.graphs import open_graph
from osler.build.models import load_roles
from osler.errors import BadConfig
from osler.extract import Extractor, items
from osler.extract.dictionary import DictionaryExtractor
from osler.extract.items import Unit
from osler.extract.model import DEFAULT, ModelExtractor
from osler.retrieve import STOP_WORDS
from osler.settings import Settings

By = Literal["dictionary", "model"]


@asynccontextmanager
async def open_extractor(
    settings: Settings,
    by: By,
    *,
    schema_file: Path | None = None,
    units: Sequence[str] = (),
) -> AsyncIterator[Extractor]:
    """The extractor; the model is the summariser's.

    Raises `BadConfig` for a bad schema or unit, and for either without a model, which is
    before any model is loaded; and `ModelError`.
    """
    if by == "dictionary":
        if schema_file is not None or units:
            raise BadConfig(
                "the dictionary takes no schema and no units", fix="add --by model, or leave them"
            )
        graph = open_graph(settings)
        try:
            with DictionaryExtractor(graph, STOP_WORDS) as found:
                yield found
        finally:
            if graph is not None:
                graph.close()
        return
    wanted = _parse_units(units)
    chosen = items.load_schema(schema_file) if schema_file else items.medicine_schema()
    ready = (await load_roles(settings, ["summariser"]))["summariser"]
    yield ModelExtractor(ready.model, chosen, wanted, constrains=ready.constrains)


def _parse_units(given: Sequence[str]) -> tuple[Unit, ...]:
    known: tuple[Unit, ...] = get_args(Unit)
    if unknown := [name for name in given if name not in known]:
        raise BadConfig(f"unknown unit {unknown[0]!r}", fix=f"choose one of {', '.join(known)}")
    return tuple(unit for unit in known if unit in given) or DEFAULT

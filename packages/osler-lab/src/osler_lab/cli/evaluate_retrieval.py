"""`osler eval retrieval`: the search measured on a BEIR set, beside published figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import JsonSession
from osler.cli.progress import show_progress

if TYPE_CHECKING:
    from osler_lab.evaluate.retrieval_sets import MeasuredSearch


def retrieval(
    here: JsonSession,
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder of a BEIR set (corpus.jsonl, queries.jsonl, qrels/test.tsv), or of docs,"
            " queries and qrels as `ir_datasets export` writes them."
        ),
    ],
    split: Annotated[str, typer.Option(help="Judgements: those of qrels/SPLIT.tsv.")] = "test",
    words: Annotated[
        bool, typer.Option("--words", help="Search by words alone; nothing is encoded.")
    ] = False,
    kb: Annotated[
        Path | None,
        typer.Option(help="Keep its knowledge base here; by default in retrieval in Osler's home."),
    ] = None,
) -> None:
    """Measure search on a set of queries and judged documents, beside Pyserini's figures.

    The set gets a knowledge base of its own; what is encoded already is not encoded again.
    """
    from osler.build.models import load_encoder
    from osler.kb.store.passages import ignore_progress
    from osler_lab.evaluate.retrieval_sets import (
        PUBLISHED,
        measure_search,
        open_retrieval_base,
        read_retrieval_set,
    )

    settings, given = here.load_settings(), read_retrieval_set(folder, split)
    place = kb or settings.home / "retrieval" / given.name
    encoder = None if words else load_encoder(settings)
    with show_progress(here) as shown:
        report = shown or ignore_progress
        with open_retrieval_base(place, given, encoder, report) as base:
            found = measure_search(given, base, encoder, report)
    rows = [_row(one) for one in found]
    if split == "test":
        rows += [
            {"method": f"{name} (published)", "nDCG@10": f"{best:.3f}", "recall@100": f"{most:.3f}"}
            for name, best, most in PUBLISHED.get(given.name, ())
        ]
    here.show({"set": given.name, "split": split, "searches": rows}, rows)


def _row(found: MeasuredSearch) -> dict[str, object]:
    return {
        "method": found.method,
        "nDCG@10": str(found.ndcg_10),
        "recall@100": str(found.recall_100),
        "queries": found.queries,
    }

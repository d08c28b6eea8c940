"""Brings indexes in step with the extracted items; only new items are read and encoded.

Each batch is one transaction, so that a killed run resumes where it stopped. Other processes may
read, search and build meanwhile, and add texts between two batches.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from osler.errors import ModelError
from osler.extract import store as extracted
from osler.extract.indexes import Kind, entry_texts, store
from osler.extract.indexes.store import IndexCost, IndexEntry, PendingPassage
from osler.kb.search.vectors import unit_problem
from osler.kb.store.passages import Progress, ignore_progress, read_by_number
from osler.text import language_of
from osler.types import Passage

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder

# Chunks in one transaction.
_BATCH = 128


@dataclass(frozen=True, slots=True)
class IndexReport:
    """Result of bringing one index in step."""

    kind: Kind
    chunks: int
    """Chunks added to the index."""
    items: int
    """Index entries made from them."""
    seconds: float


def make_indexes(
    folder: Path,
    kinds: Iterable[Kind],
    encoder: Encoder | None,
    progress: Progress | None = None,
) -> list[IndexReport]:
    """Makes these indexes, or brings them in step; from now on they are kept in step.

    Without an encoder they contain words alone. An index made by another encoder is made anew.
    Idempotent. Blocks. Raises `KnowledgeBaseError`, and `ModelError` for unusable vectors.
    """
    tell = progress or ignore_progress
    return [_make_index(folder, kind, encoder, tell) for kind in dict.fromkeys(kinds)]


def follow_indexes(
    folder: Path, encoder: Encoder | None, progress: Progress | None = None
) -> list[IndexReport]:
    """Brings the existing indexes in step; see `make_indexes`."""
    return make_indexes(folder, kept_kinds(folder), encoder, progress)


def kept_kinds(folder: Path) -> tuple[Kind, ...]:
    with extracted.open_for_reading(folder) as db:
        return tuple(store.made_indexes(db))


def drop_indexes(folder: Path, kinds: Iterable[Kind]) -> int:
    """Drops indexes; returns the number of their entries."""
    with extracted.open_for_batch(folder) as db:
        return sum(store.drop_index(db, kind) for kind in dict.fromkeys(kinds))


def index_costs(folder: Path) -> list[IndexCost]:
    """Size and cost of each index."""
    with extracted.open_for_reading(folder) as db:
        return store.read_costs(db)


def _make_index(
    folder: Path, kind: Kind, encoder: Encoder | None, progress: Progress
) -> IndexReport:
    identity, dimension = (encoder.identity, encoder.dimension) if encoder else ("", 0)
    with extracted.open_for_batch(folder) as db:
        store.begin_index(db, kind, identity, dimension)
        todo = store.pending_passages(db, kind)
    # Short transactions: other writers get in between two batches.
    begun, items = time.perf_counter(), 0
    progress(kind, 0, len(todo))
    for start in range(0, len(todo), _BATCH):
        items += _index_batch(folder, kind, encoder, todo[start : start + _BATCH])
        progress(kind, min(start + _BATCH, len(todo)), len(todo))
    return IndexReport(kind, len(todo), items, time.perf_counter() - begun)


def _index_batch(
    folder: Path, kind: Kind, encoder: Encoder | None, todo: Sequence[PendingPassage]
) -> int:
    begun = time.perf_counter()
    with extracted.open_for_reading(folder) as db:
        passages = read_by_number(db, {one.passage for one in todo})
        todo = [one for one in todo if one.passage in passages]  # others went meanwhile
        texts = [_passage_texts(db, kind, passages[one.passage], one) for one in todo]
    vectors = iter(_encode_texts(encoder, [text for each in texts for text in each]))
    done = [(one, [next(vectors) for _ in each]) for one, each in zip(todo, texts, strict=True)]
    with extracted.open_for_batch(folder) as db:
        source = {number: passage.source for number, passage in passages.items()}
        return store.write_entries(db, kind, source, done, time.perf_counter() - begun)


def _passage_texts(
    db: sqlite3.Connection, kind: Kind, passage: Passage, todo: PendingPassage
) -> list[str]:
    found = extracted.of_passage(db, passage.id, extractor=todo.extractor)
    return entry_texts(kind, passage, [one.item for one in found])


def _encode_texts(encoder: Encoder | None, texts: Sequence[str]) -> list[IndexEntry]:
    """Encodes texts; a text in a language unknown to the encoder gets no vector."""
    wanted = [
        n for n, text in enumerate(texts) if encoder and language_of(text) in encoder.languages
    ]
    found = [IndexEntry(text, None) for text in texts]
    if not encoder or not wanted:
        return found
    vectors = encoder.encode([texts[n] for n in wanted], kind="passage")
    if problem := unit_problem(vectors, (len(wanted), encoder.dimension)):
        raise ModelError(f"encoder {encoder.identity} gave vectors {problem}")
    for n, vector in zip(wanted, vectors, strict=True):
        found[n] = IndexEntry(texts[n], vector)
    return found

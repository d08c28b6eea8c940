"""Bringing indexes in step with what was extracted: only what came is read and encoded.

Each batch is committed by itself, so that a run that was killed goes on where it stopped.
Others may read, search and build meanwhile, and add between two batches.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from osler.errors import ModelError
from osler.extract import store as extracted
from osler.extract.indexes import store
from osler.extract.indexes.kinds import Kind, entries
from osler.extract.indexes.store import Cost, Entry, Todo
from osler.kb.search.vectors import unit_problem
from osler.kb.store import access
from osler.kb.store.access import Mode
from osler.kb.store.passages import Progress, by_number, silent
from osler.text import language_of
from osler.types import Passage

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder

_PATIENCE = 600.0
"""Seconds that a finished batch waits for a process that adds texts."""
_BATCH = 128
"""Chunks in one transaction."""


@dataclass(frozen=True, slots=True)
class Report:
    """What bringing one index in step did."""

    kind: Kind
    chunks: int
    """That came in."""
    items: int
    """Entries that they gave."""
    seconds: float


def make(
    folder: Path,
    kinds: Iterable[Kind],
    encoder: Encoder | None,
    progress: Progress | None = None,
) -> list[Report]:
    """Makes these indexes, or brings them in step; from now on they are kept.

    Without an encoder they hold words alone. One that another encoder made is made anew.
    Running it twice changes nothing. Blocks. Raises `KnowledgeBaseError`, and `ModelError`
    for vectors that cannot be used.
    """
    tell = progress or silent
    return [_make(folder, kind, encoder, tell) for kind in dict.fromkeys(kinds)]


def follow(folder: Path, encoder: Encoder | None, progress: Progress | None = None) -> list[Report]:
    """Brings those that are kept in step; see `make`."""
    return make(folder, kept(folder), encoder, progress)


def kept(folder: Path) -> tuple[Kind, ...]:
    with access.translated(folder), closing(access.connect(folder)) as db:
        return tuple(store.made(db))


def drop(folder: Path, kinds: Iterable[Kind]) -> int:
    """Takes indexes out with all that is in them; returns how many entries went."""
    together = access.writing(folder, Mode.TOGETHER, wait=_PATIENCE)
    with together as db, access.transaction(db):
        return sum(store.drop(db, kind) for kind in dict.fromkeys(kinds))


def costs(folder: Path) -> list[Cost]:
    """What each index holds and took."""
    with access.translated(folder), closing(access.connect(folder)) as db, access.still(db):
        return store.costs(db)


def _make(folder: Path, kind: Kind, encoder: Encoder | None, progress: Progress) -> Report:
    identity, dimension = (encoder.identity, encoder.dimension) if encoder else ("", 0)
    with access.writing(folder, Mode.TOGETHER, wait=_PATIENCE) as db, access.transaction(db):
        store.begin(db, kind, identity, dimension)
        todo = store.pending(db, kind)
    begun, items = time.perf_counter(), 0
    progress(kind, 0, len(todo))
    for start in range(0, len(todo), _BATCH):
        items += _batch(folder, kind, encoder, todo[start : start + _BATCH])
        progress(kind, min(start + _BATCH, len(todo)), len(todo))
    return Report(kind, len(todo), items, time.perf_counter() - begun)


def _batch(folder: Path, kind: Kind, encoder: Encoder | None, todo: Sequence[Todo]) -> int:
    begun = time.perf_counter()
    with access.translated(folder), closing(access.connect(folder)) as db, access.still(db):
        passages = by_number(db, {one.passage for one in todo})
        todo = [one for one in todo if one.passage in passages]  # others went meanwhile
        texts = [_texts(db, kind, passages[one.passage], one) for one in todo]
    vectors = iter(_encoded(encoder, [text for each in texts for text in each]))
    done = [(one, [next(vectors) for _ in each]) for one, each in zip(todo, texts, strict=True)]
    with access.writing(folder, Mode.TOGETHER, wait=_PATIENCE) as db, access.transaction(db):
        source = {number: passage.source for number, passage in passages.items()}
        return store.write(db, kind, source, done, time.perf_counter() - begun)


def _texts(db: sqlite3.Connection, kind: Kind, passage: Passage, todo: Todo) -> list[str]:
    found = extracted.of_passage(db, passage.id, extractor=todo.extractor)
    return entries(kind, passage, [one.item for one in found])


def _encoded(encoder: Encoder | None, texts: Sequence[str]) -> list[Entry]:
    """Each text with its vector, where the encoder knows its language."""
    wanted = [
        n for n, text in enumerate(texts) if encoder and language_of(text) in encoder.languages
    ]
    found = [Entry(text, None) for text in texts]
    if not encoder or not wanted:
        return found
    vectors = encoder.encode([texts[n] for n in wanted], kind="passage")
    if problem := unit_problem(vectors, (len(wanted), encoder.dimension)):
        raise ModelError(f"encoder {encoder.identity} gave vectors {problem}")
    for n, vector in zip(wanted, vectors, strict=True):
        found[n] = Entry(texts[n], vector)
    return found

"""Leases on batches of passages, by which several builds at a time share the work.

A lease is a row that expires, so that the work of a process that died is done by another.
Doing a batch twice would do no harm, as equal texts get equal vectors; it is only waste.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from osler.errors import ModelError
from osler.kb.encoders.base import encode_by_language
from osler.kb.search.base import Floats, unit_problem
from osler.kb.store.access import write_transaction
from osler.kb.store.passages import Progress, indexed_text, read_meta, read_numbered
from osler.types import Passage

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder

LEASE = 600.0
"""Seconds after which a batch is free again; one batch must not take longer."""

Batch = list[tuple[int, Passage]]

PENDING = (
    "language IN (SELECT value FROM json_each(?)) AND number NOT IN (SELECT passage FROM vector)"
)
"""The condition on passages that want a vector; its value is `encoder_languages`."""


def encoder_languages(db: sqlite3.Connection) -> str:
    """Returns the encoder's languages as a JSON list."""
    return json.dumps(read_meta(db, "languages").split())


def count_pending(db: sqlite3.Connection) -> int:
    """Counts the passages that should have a vector and have none."""
    pending = f"SELECT count(*) FROM passage WHERE {PENDING}"  # noqa: S608 - a constant
    return int(db.execute(pending, (encoder_languages(db),)).fetchone()[0])


def pending_batches(db: sqlite3.Connection, size: int) -> Iterator[Batch]:
    """Yields the passages that want a vector, `size` at a time, in order of row number."""
    last = 0
    pending = f"SELECT * FROM passage WHERE number > ? AND {PENDING} ORDER BY number LIMIT ?"  # noqa: S608
    while rows := list(read_numbered(db, pending, (last, encoder_languages(db), size))):
        yield rows
        last = rows[-1][0]


def encode_batch(encoder: Encoder, passages: Sequence[Passage]) -> Floats:
    """Encodes passages in order. Pure, so that any process or machine may do it.

    Raises `ModelError` for vectors that are not finite, of length 1 and of the encoder's
    dimension.
    """
    texts = [indexed_text(passage) for passage in passages]
    languages = [passage.language for passage in passages]
    vectors = encode_by_language(encoder, texts, languages, "passage")
    if problem := unit_problem(vectors, (len(passages), encoder.dimension)):
        raise ModelError(f"encoder {encoder.identity} gave vectors {problem}")
    return vectors


def insert_vectors(db: sqlite3.Connection, rows: Batch, vectors: Floats) -> int:
    """Stores a batch's vectors; returns how many were new.

    An expired lease, or a worker that was believed dead, may have two processes encode the
    same batch: the first result stays.
    """
    return db.executemany(
        "INSERT OR IGNORE INTO vector VALUES (?, ?)",
        [(number, vector.tobytes()) for (number, _), vector in zip(rows, vectors, strict=True)],
    ).rowcount


def encode_share(
    db: sqlite3.Connection,
    encoder: Encoder,
    *,
    progress: Progress,
    total: int,
    batch: int,
) -> int:
    """Encodes what nobody else has leased, batch by batch; returns how many vectors it wrote.

    `total` is the number of passages that want a vector now, whoever makes it.
    """
    # Process ids are used again after a crash; the random part tells two workers apart.
    worker, done, last = f"{os.getpid()}-{uuid.uuid4().hex[:8]}", 0, 0
    if total:
        progress("encode", 0, total)
    while rows := _claim_batch(db, worker, last, batch):
        vectors = encode_batch(encoder, [passage for _, passage in rows])
        done += _store_vectors(db, worker, rows, vectors)
        progress("encode", done, total)
        last = rows[-1][0]
    return done


def clear_leases(db: sqlite3.Connection) -> None:
    """Frees every batch; only for a process that knows it builds alone."""
    if db.execute("SELECT 1 FROM lease LIMIT 1").fetchone():
        with write_transaction(db):
            db.execute("DELETE FROM lease")


# A lease that ends later than a whole one from now was taken before the clock was set back.
_FREE = (
    f"SELECT * FROM passage WHERE number > ? AND {PENDING}"  # noqa: S608 - a constant
    " AND number NOT IN (SELECT passage FROM lease WHERE expires BETWEEN ? AND ?)"
    " ORDER BY number LIMIT ?"
)


def _claim_batch(
    db: sqlite3.Connection, worker: str, last: int, size: int, lease: float = LEASE
) -> Batch:
    # Choice and claim are one transaction: no two workers get the same passage.
    with write_transaction(db):
        now = time.time()
        values = (last, encoder_languages(db), now, now + lease, size)
        rows = list(read_numbered(db, _FREE, values))
        db.executemany(
            "INSERT OR REPLACE INTO lease VALUES (?, ?, ?)",
            [(number, worker, now + lease) for number, _ in rows],
        )
    return rows


def _store_vectors(db: sqlite3.Connection, worker: str, rows: Batch, vectors: Floats) -> int:
    with write_transaction(db):
        written = insert_vectors(db, rows, vectors)
        db.execute("DELETE FROM lease WHERE worker = ?", (worker,))
    return written

"""Pushes a knowledge base to a Qdrant server: idempotent, resumable, verified.

A point's id is a hash of its passage's id, and its payload bears a digest of all that was
sent. So a push asks, batch by batch, what the server has already, and sends the rest: one
that was cut short goes on where it stopped, and after an update only what changed travels.
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from osler.errors import KnowledgeBaseError, KnowledgeBaseMismatch
from osler.kb.search import sparse
from osler.kb.search.base import RETRACTED
from osler.kb.search.generation import IndexRow, read_rows, wanted_rows
from osler.kb.search.remote import VERSION, Collection, list_collections
from osler.kb.search.shard import DENSE, WORDS
from osler.kb.store.passages import Progress, read_meta

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

_NAMES = uuid.uuid5(uuid.NAMESPACE_URL, "osler:passage")
BATCH = 256


@dataclass(frozen=True, slots=True)
class PushResult:
    """Counts and duration of a push."""

    passages: dict[str, int]
    """On the server now, by source; counted there."""
    sent: int
    deleted: int
    """Points of passages that are there no more."""
    seconds: float


def point_id(passage: str) -> str:
    """Derives a point's id from its passage's id: the same wherever and whenever it is made."""
    return str(uuid.uuid5(_NAMES, passage))


def push_passages(
    db: sqlite3.Connection,
    client: QdrantClient,
    name: str,
    progress: Progress,
    *,
    afresh: bool = False,
) -> PushResult:
    """Makes the server's collections hold what the knowledge base holds.

    `db` reads one moment of a built knowledge base. Raises `KnowledgeBaseMismatch` when the
    server's vectors are another encoder's and not `afresh`, and `KnowledgeBaseError` when
    the server does not hold in the end what it should.
    """
    start = time.perf_counter()
    encoder = read_meta(db, "encoder")
    existing = list_collections(client, name)
    _check_encoder(existing, encoder, afresh=afresh)
    job = _PushJob(db, client, name, encoder, progress)
    counts = dict(db.execute("SELECT source, count(*) FROM passage GROUP BY source"))
    for source in existing.keys() - (set() if afresh else counts.keys()):
        client.delete_collection(existing[source].name)
    progress("push", 0, sum(counts.values()))
    for source, count in counts.items():
        job.push_source(source, count)
    return PushResult(counts, job.sent, job.deleted, time.perf_counter() - start)


def _check_encoder(existing: dict[str, Collection], encoder: str, *, afresh: bool) -> None:
    for collection in existing.values():
        if not afresh and (collection.encoder, collection.version) != (encoder, VERSION):
            theirs = f"encoder {collection.encoder}" if collection.encoder else "no encoder"
            raise KnowledgeBaseMismatch(
                f"collection {collection.name} was pushed with {theirs}"
                f" (layout {collection.version}), this knowledge base has {encoder or 'no encoder'}"
                f" (layout {VERSION})",
                fix="run `osler kb export --rebuild`, which replaces it, or set kb.collection",
            )


class _PushJob:
    """One push, with its counts."""

    def __init__(
        self,
        db: sqlite3.Connection,
        client: QdrantClient,
        name: str,
        encoder: str,
        progress: Progress,
    ) -> None:
        self._db, self._client, self._name = db, client, name
        self._encoder, self._progress = encoder, progress
        self._stems = sparse.StemHasher()
        self._done = 0
        self.sent = self.deleted = 0

    def push_source(self, source: str, count: int) -> None:
        collection = f"{self._name}-{source}"
        if not self._client.collection_exists(collection):
            self._create_collection(collection)
        # -1 marks it as incomplete, so that no search takes half a source for the whole.
        self._declare_state(collection, source, -1)
        for batch in self._read_batches(source):
            self._upsert_batch(collection, batch)
            self._done += len(batch)
            self._progress("push", self._done, None)
        if self._count_points(collection) > count:
            self._delete_strays(collection)
        if (now := self._count_points(collection)) != count:
            raise KnowledgeBaseError(
                f"collection {collection} holds {now:,} points instead of {count:,}",
                fix="run `osler kb export` again; is another process pushing to it?",
            )
        retracted = self._db.execute(
            "SELECT count(*) FROM passage JOIN document ON document.number = passage.document"
            " WHERE passage.source = ? AND retracted",
            (source,),
        ).fetchone()[0]
        self._declare_state(collection, source, retracted)

    def _create_collection(self, collection: str) -> None:
        from qdrant_client import models

        dimension = int(read_meta(self._db, "dimension") or 0)
        self._client.create_collection(
            collection,
            vectors_config={
                DENSE: models.VectorParams(
                    # A server accepts no vectors of size 0; without an encoder none are sent.
                    size=max(1, dimension),
                    distance=models.Distance.DOT,
                    on_disk=True,
                )
            },
            sparse_vectors_config={WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            quantization_config=models.ScalarQuantization(
                scalar=models.ScalarQuantizationConfig(
                    type=models.ScalarType.INT8, quantile=0.99, always_ram=True
                )
            ),
            on_disk_payload=True,
        )
        schema = models.PayloadSchemaType
        for field, kind in (
            ("kind", schema.KEYWORD),
            ("language", schema.KEYWORD),
            ("year", schema.INTEGER),
            ("day", schema.INTEGER),
            ("trust", schema.INTEGER),
            ("retracted", schema.BOOL),
        ):
            self._client.create_payload_index(collection, field, kind)

    def _declare_state(self, collection: str, source: str, retracted: int) -> None:
        state = {
            "source": source,
            "encoder": self._encoder,
            "version": VERSION,
            "retracted": retracted,
        }
        self._client.update_collection(collection, metadata={"osler": state})

    def _read_batches(self, source: str) -> Iterator[list[IndexRow]]:
        last = 0
        wanted = (
            f"SELECT number, shelf, payload FROM ({wanted_rows(self._db)} WHERE passage.source = ?"  # noqa: S608 - constants
            " AND passage.number > ? ORDER BY passage.number LIMIT ?)"
        )
        while rows_found := self._db.execute(wanted, (source, last, BATCH)).fetchall():
            yield list(read_rows(self._db, rows_found))
            last = rows_found[-1][0]

    def _upsert_batch(self, collection: str, batch: list[IndexRow]) -> None:
        from qdrant_client import models

        digests = {point_id(row.passage.id): self._row_digest(row) for row in batch}
        # Only digests travel back: what the server has already is not sent again.
        there = self._client.retrieve(collection, list(digests), with_payload=["digest"])
        same = {p.id for p in there if p.payload["digest"] == digests[p.id]}
        new = [row for row in batch if point_id(row.passage.id) not in same]
        if not new:
            return
        words = sparse.passage_vectors(self._stems, [row.text for row in new])
        points = []
        for row, (places, weights) in zip(new, words, strict=True):
            id, vector = point_id(row.passage.id), dict[str, Any]()
            vector[WORDS] = models.SparseVector(indices=places, values=weights)
            if row.vector is not None:
                vector[DENSE] = row.vector.tolist()
            payload = _point_payload(row) | {"digest": digests[id]}
            points.append(models.PointStruct(id=id, vector=vector, payload=payload))
        self._client.upsert(collection, points, wait=True)
        self.sent += len(points)

    def _row_digest(self, row: IndexRow) -> str:
        """Hashes all that would be sent of a passage."""
        parts = (VERSION, self._encoder, str(row.vector is not None), row.text, _point_payload(row))
        return blake2b(repr(parts).encode(), digest_size=8).hexdigest()

    def _count_points(self, collection: str) -> int:
        return int(self._client.count(collection, exact=True).count)

    def _delete_strays(self, collection: str) -> None:
        """Deletes points whose passage is gone."""
        exists = "SELECT 1 FROM passage WHERE id = ?"
        offset: Any = None
        while True:
            points, offset = self._client.scroll(
                collection, limit=BATCH, offset=offset, with_payload=["passage"]
            )
            strays = [
                point.id
                for point in points
                if not self._db.execute(exists, (point.payload["passage"],)).fetchone()
            ]
            if strays:
                self._client.delete(collection, strays, wait=True)
                self.deleted += len(strays)
            if offset is None:
                return


def _point_payload(row: IndexRow) -> dict[str, Any]:
    return row.payload | {"passage": row.passage.id, "retracted": row.shelf == RETRACTED}

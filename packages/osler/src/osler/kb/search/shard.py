"""One shelf of the embedded index: a Qdrant Edge shard, and searches in it.

Only the worker and the builder import this: the engine holds the interpreter's lock in
every call. What is needed of the package (`osler[edge]`) is imported inside.

The worker answers searches in one generation, in its own process:

    python -m osler.kb.search.shard GENERATION

It reads requests from standard input and ends when that ends: it cannot outlive the process that
started it, however that one died.
"""

from __future__ import annotations

import os
import signal
import sys
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from osler.kb.search.base import DAY, RANGES
from osler.kb.search.edge import receive_message, send_message

DENSE, WORDS = "dense", "words"

EF, OVERSAMPLING = 112, 2.0
"""Breadth of the graph search, at least, and how many candidates per hit are compared again
by their vectors of 16 bits.

Of the ten nearest of 50,000 medical texts .997 are found with 1.5, 2.0 and 3.0, of the 64 nearest
.946, .976 and .991 (500 questions; with 4 bits a number and 1.5 .997 and .993, the same nDCG@10).
On a million made vectors (benchmarks/speed/search.py) .974 and .962, with 4 bits .976 and .964."""
WIDEST, AMPLE = 512, 50_000_000
"""The breadth for few passages, and breadth times passages up to which it is taken.

On 50,000 medical texts a breadth of 112 lost the nearest passage of 7 of 500 questions (and .011 of
nDCG@10), one of 512 none, for 0.3 ms more; the same questions chose it (benchmarks/speed/peers)."""

LEAST_PIECE, MOST_PIECES = 100_000, 8
"""A shard is searched in pieces, each by a thread of its own. A search by words looks at every
passage number, 2 ms of one core for a million, so that pieces share this out; a graph is
searched faster whole. Hence one piece a core, and none of fewer passages than this."""


def piece_of(passages: int) -> int:
    """Returns the size of one piece, in passages, on this machine."""
    return max(LEAST_PIECE, -(-passages // min(MOST_PIECES, os.cpu_count() or 1)))


def shard_config(dimension: int, piece: int) -> Any:
    """Configures vectors compared by 2 bits a number, from mapped files that processes share.

    A passage of 60 words has 470 bytes that every search may want in memory: 100 for its vector,
    160 for its place in the graph, 210 for its words. With 4 bits and halves it has 600.
    """
    import qdrant_edge as edge

    shared = edge.Memory.Cached
    return edge.EdgeConfig(
        vectors={
            DENSE: edge.EdgeVectorParams(
                size=max(1, dimension),
                distance=edge.Distance.Dot,
                memory=edge.Memory.Cold,
                datatype=edge.VectorStorageDatatype.Float16,
                quantization_config=edge.TurboQuantQuantizationConfig(
                    bits=edge.TurboQuantBitSize.Bits2, memory=shared
                ),
                hnsw_config=edge.HnswIndexConfig(
                    m=16, ef_construct=100, full_scan_threshold=10_000, memory=shared
                ),
            )
        },
        sparse_vectors={
            # As bytes: of the ten best passages by words .999 are those of half precision.
            WORDS: edge.EdgeSparseVectorParams(
                modifier=edge.Modifier.Idf,
                datatype=edge.VectorStorageDatatype.Uint8,
                memory=shared,
            )
        },
        optimizers=edge.EdgeOptimizersConfig(
            # One for what came later, until it is worth a graph. The size, in kB, has room for
            # a little of it, and none for two pieces: they stay apart.
            default_segment_number=MOST_PIECES + 1,
            max_segment_size=int(1.2 * piece * 4 * max(1, dimension) / 1024),
        ),
        # A generation is written once, flushed, and read by several processes: no log, whose
        # lock lets in only one.
        wal_enabled=False,
    )


def create_shard(folder: Path, dimension: int, piece: int) -> Any:
    """Creates an empty shard with indexes for the filters."""
    import qdrant_edge as edge

    folder.mkdir(parents=True)
    shard = edge.EdgeShard.create(str(folder), shard_config(dimension, piece))
    # Mapped: without it each worker keeps 280 bytes a passage of its own for the filters.
    keyword = edge.KeywordIndexParams(memory=edge.Memory.Cached)
    whole = edge.IntegerIndexParams(memory=edge.Memory.Cached)
    for field, schema in (
        ("source", keyword),
        ("kind", keyword),
        ("language", keyword),
        ("year", whole),
        ("day", whole),
        ("trust", whole),
    ):
        shard.update(edge.UpdateOperation.create_field_index(field, schema))
    return shard


def load_shard(folder: Path) -> Any:
    import qdrant_edge as edge

    return edge.EdgeShard.load(str(folder))


Point = tuple[int, dict[str, Any], tuple[list[int], list[float]], list[float] | None]
"""Number, payload, words, vector."""


def put_points(shard: Any, points: Iterable[Point]) -> None:
    import qdrant_edge as edge

    batch = []
    for number, payload, (places, weights), dense in points:
        vector: dict[str, Any] = {WORDS: edge.SparseVector(places, weights)}
        if dense is not None:
            vector[DENSE] = dense
        batch.append(edge.Point(number, vector, payload))
    shard.update(edge.UpdateOperation.upsert_points(batch))


def drop_points(shard: Any, numbers: Sequence[int]) -> None:
    import qdrant_edge as edge

    shard.update(edge.UpdateOperation.delete_points(list(numbers)))


def count_points(shard: Any) -> int:
    import qdrant_edge as edge

    return int(shard.count(edge.CountRequest(exact=True)))


def search_breadth(passages: int) -> int:
    """The breadth of the graph search in a shard of so many: the wider, the fewer there are."""
    return max(EF, min(WIDEST, AMPLE // max(1, passages)))


def search_shard(
    shard: Any,
    *,
    k: int,
    breadth: int,
    conditions: dict[str, Any],
    words: tuple[list[int], list[float]] | None,
    dense: list[float] | None,
) -> list[list[tuple[int, float]]]:
    """Returns one ranking for each of `dense` and `words` that is given, in this order."""
    import qdrant_edge as edge

    within, requests = _make_filter(conditions), []
    if dense is not None:
        params = edge.SearchParams(
            hnsw_ef=max(breadth, k),
            quantization=edge.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLING),
        )
        nearest = edge.Query.Nearest(dense, DENSE)
        requests.append(edge.QueryRequest(limit=k, query=nearest, filter=within, params=params))
    if words is not None:
        nearest = edge.Query.Nearest(edge.SparseVector(*words), WORDS)
        requests.append(edge.QueryRequest(limit=k, query=nearest, filter=within))
    rankings = shard.query_batch(edge.QueryBatchRequest(requests))
    return [[(point.id, point.score) for point in points] for points in rankings]


def _make_filter(conditions: dict[str, Any]) -> Any:
    """Translates `{"kind": ["review"], "year": [2010, None]}`: any of these; between bounds."""
    import qdrant_edge as edge

    def between(field: str, first: int | None, last: int | None) -> Any:
        return edge.FieldCondition(field, range=edge.RangeFloat(gte=first, lte=last))

    must: list[Any] = []
    for field, wanted in conditions.items():
        if field in RANGES:
            must.append(between(field, *wanted))
        elif field == DAY:
            undated = [edge.IsEmptyCondition(DAY), between("year", *wanted[2:])]
            either = [between(DAY, *wanted[:2]), edge.Filter(must=undated)]
            must.append(edge.Filter(should=either))
        else:
            must.append(edge.FieldCondition(field, match=edge.MatchAny(wanted)))
    return edge.Filter(must=must) if must else None


def main(folder: Path) -> None:
    # Ctrl-C goes to the whole group; the process that asks decides what becomes of a search.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loaded = {entry.name: load_shard(entry) for entry in folder.iterdir() if entry.is_dir()}
    shelves = {name: (shard, search_breadth(count_points(shard))) for name, shard in loaded.items()}
    send_message(sys.stdout.buffer, {"ready": sorted(shelves)})
    while message := receive_message(sys.stdin.buffer):
        send_message(sys.stdout.buffer, *_answer_request(shelves, *message))


def _answer_request(
    shelves: dict[str, tuple[Any, int]], request: dict[str, Any], data: bytes
) -> tuple[dict[str, Any], bytes]:
    """Sizes of the rankings, and then of all of them the numbers, then the scores."""
    dense = None
    if data:
        dense = array("f")
        dense.frombytes(data)
    try:
        shard, breadth = shelves[request["shelf"]]
        rankings = search_shard(
            shard,
            k=request["k"],
            breadth=breadth,
            conditions=request["conditions"],
            words=request["words"],
            dense=dense.tolist() if dense is not None else None,
        )
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}, b""
    numbers = array("q", [number for ranking in rankings for number, _ in ranking])
    scores = array("f", [score for ranking in rankings for _, score in ranking])
    return {"sizes": [len(ranking) for ranking in rankings]}, numbers.tobytes() + scores.tobytes()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

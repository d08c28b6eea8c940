"""The backend on a Qdrant server or cluster: one collection for each source.

A source is its own collection, so patients' records share an index with nothing else, rights
can be given by source, and one source can be pushed or dropped without the others. A search
of several sources asks each of them and merges by score: exact for vectors; for words, each
collection knows the rarity of a word within itself, as it does when a source is searched
alone. The texts stay in `kb.sqlite`: whoever searches has the folder.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from osler.errors import KnowledgeBaseError, KnowledgeBaseUnbuilt, require_extra
from osler.kb.search import sparse
from osler.kb.search.base import (
    DAY,
    RANGES,
    BackendChoice,
    Floats,
    PassageFilter,
    Ranking,
    merge_rankings,
)
from osler.kb.search.shard import DENSE, EF, WORDS
from osler.kb.store import access
from osler.kb.store.passages import in_scope as is_within

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

VERSION = f"1/{sparse.VERSION}"
"""Version of payload and word vectors. A collection of another version is refused."""

TIMEOUT_S = 60
_KNOWN_S = 30.0
"""Seconds for which the list of collections is believed."""
_AT_ONCE = 8
"""Collections asked at one time."""


def make_client(choice: BackendChoice) -> QdrantClient:
    """Makes a client, which connects to nothing yet. Raises `BadConfig` without the package."""
    with require_extra("qdrant", "a Qdrant server needs the package qdrant-client"):
        from qdrant_client import QdrantClient

    # Without the check of versions it sends nothing before the first search.
    return QdrantClient(
        url=choice.url, api_key=choice.key, timeout=TIMEOUT_S, check_compatibility=False
    )


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Turns what the client raises into `KnowledgeBaseError`."""
    from qdrant_client.http.exceptions import ApiException, ResponseHandlingException

    try:
        yield
    except ResponseHandlingException as error:
        raise KnowledgeBaseError(
            f"the Qdrant server {where} does not answer: {error}",
            fix="start it, or set kb.url to where it is",
        ) from error
    except ApiException as error:
        first_line = str(error).strip().partition("\n")[0]
        raise KnowledgeBaseError(
            f"the Qdrant server {where} refused a request: {first_line}",
            fix="check kb.url and its key; `osler kb export URL` repairs the collections",
        ) from error


@dataclass(frozen=True, slots=True)
class Collection:
    """One source on the server, as its metadata describe it."""

    name: str
    source: str
    encoder: str
    version: str
    retracted: int
    """Passages of retracted documents in it, -1 while it has not been pushed to its end."""


def list_collections(of: QdrantClient, name: str) -> dict[str, Collection]:
    """Lists Osler's own collections by source; others with such a name are left alone."""
    collections = {}
    for listed in of.get_collections().collections:
        if not listed.name.startswith(f"{name}-"):
            continue
        metadata = of.get_collection(listed.name).config.metadata or {}
        if ours := metadata.get("osler"):
            source = ours["source"]
            collections[source] = Collection(
                listed.name, source, ours["encoder"], ours["version"], ours["retracted"]
            )
    return collections


@dataclass
class QdrantBackend(sparse.SparseDenseBackend):
    """A `SearchBackend` over the collections of a server."""

    client: QdrantClient
    choice: BackendChoice
    numbers: Callable[[Sequence[str]], dict[str, int]]
    """From passage ids to numbers; ids that are not there fall out."""
    _stems: sparse.StemHasher = field(default_factory=sparse.StemHasher)
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_AT_ONCE))
    _known: dict[str, Collection] = field(default_factory=dict)
    _known_at: float = float("-inf")

    @classmethod
    def connect(cls, choice: BackendChoice, readers: access.ReaderPool) -> QdrantBackend:
        """Makes the backend of the chosen server. Raises `BadConfig`."""
        return cls(make_client(choice), choice, lambda ids: numbers_of(readers, ids))

    def encoder_identity(self) -> str:
        """Raises `KnowledgeBaseUnbuilt` when nothing was pushed to the server."""
        with translate_errors(self.choice.url):
            return next(iter(self._known_collections().values())).encoder

    def close(self) -> None:
        self._threads.shutdown()
        self._stems.close()
        self.client.close()

    def _search(
        self, k: int, within: PassageFilter, words: sparse.Sparse | None, dense: Floats | None
    ) -> list[Ranking]:
        queries = [] if dense is None else [_nearest_query(dense, k)]
        queries += [] if words is None else [_words_query(words)]
        with translate_errors(self.choice.url):
            chosen = [
                collection
                for source, collection in self._known_collections().items()
                if is_within(source, within.sources)
            ]
            search = partial(self._search_collection, queries=queries, k=k, within=within)
            per_collection = list(self._threads.map(search, chosen))
        rankings_found = [
            merge_rankings([rankings[i] for rankings in per_collection], k) if chosen else []
            for i in range(len(queries))
        ]
        numbers = self.numbers([id for ranking in rankings_found for id, _ in ranking])
        return [
            [(numbers[id], s) for id, s in ranking if id in numbers] for ranking in rankings_found
        ]

    def _search_collection(
        self, of: Collection, queries: list[dict[str, Any]], k: int, within: PassageFilter
    ) -> list[list[tuple[str, float]]]:
        from qdrant_client import models

        conditions = _make_filter(within, of)
        requests = [
            models.QueryRequest(**query, limit=k, filter=conditions, with_payload=["passage"])
            for query in queries
        ]
        answers = self.client.query_batch_points(of.name, requests)
        return [[(p.payload["passage"], p.score) for p in answer.points] for answer in answers]

    def _known_collections(self) -> dict[str, Collection]:
        now = time.monotonic()
        if now - self._known_at > _KNOWN_S:
            collections = list_collections(self.client, self.choice.name)
            complete = {s: c for s, c in collections.items() if c.retracted >= 0}
            if not complete:
                raise KnowledgeBaseUnbuilt(
                    f"the Qdrant server {self.choice.url} holds no collection {self.choice.name}-…",
                    fix=f"run `osler kb export {self.choice.url}`",
                )
            self._known, self._known_at = complete, now
        return self._known


def numbers_of(readers: access.ReaderPool, ids: Sequence[str]) -> dict[str, int]:
    """Looks up the row numbers of passage ids; ids that are gone fall out."""
    wanted = "SELECT id, number FROM passage WHERE id IN (SELECT value FROM json_each(?))"
    with readers.borrow() as db:
        return dict(db.execute(wanted, (json.dumps(list(ids)),)))


def _words_query(words: sparse.Sparse) -> dict[str, Any]:
    from qdrant_client import models

    places, weights = words
    return {"query": models.SparseVector(indices=places, values=weights), "using": WORDS}


def _nearest_query(query: Floats, k: int) -> dict[str, Any]:
    from qdrant_client import models

    params = models.SearchParams(
        hnsw_ef=max(EF, k),
        quantization=models.QuantizationSearchParams(rescore=True, oversampling=1.0),
    )
    return {"query": query.tolist(), "using": DENSE, "params": params}


def _make_filter(within: PassageFilter, of: Collection) -> Any:
    from qdrant_client import models

    def between(name: str, first: int | None, last: int | None) -> Any:
        return models.FieldCondition(key=name, range=models.Range(gte=first, lte=last))

    must: list[Any] = []
    for name, wanted in within.conditions().items():
        if name in RANGES:
            must.append(between(name, *wanted))
        elif name == DAY:
            empty = models.IsEmptyCondition(is_empty=models.PayloadField(key=DAY))
            undated = models.Filter(must=[empty, between("year", *wanted[2:])])
            must.append(models.Filter(should=[between(DAY, *wanted[:2]), undated]))
        else:
            must.append(models.FieldCondition(key=name, match=models.MatchAny(any=wanted)))
    # Without retracted passages in the collection the condition would only cost time.
    if of.retracted and not within.retracted:
        must.append(models.FieldCondition(key="retracted", match=models.MatchValue(value=False)))
    return models.Filter(must=must) if must else None

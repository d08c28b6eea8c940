"""The search engine of an open knowledge base: by configuration and by what the last build made."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol, assert_never

import numpy as np

from osler.errors import KnowledgeBaseMismatch, KnowledgeBaseUnbuilt
from osler.kb.search import generation, sparse
from osler.kb.search.base import (
    BackendChoice,
    Floats,
    PassageFilter,
    Ranking,
    SearchBackend,
    read_vectors,
)
from osler.kb.search.exact import ExactBackend, allowed_by
from osler.kb.search.generation import CurrentGeneration
from osler.kb.store import access
from osler.kb.store.passages import (
    Progress,
    in_scope,
    indexed_text,
    read_by_number,
    read_corrections,
    read_meta,
)
from osler.types import Passage

if TYPE_CHECKING:
    from osler.kb.search.remote import QdrantBackend


EDGE_FROM = 20_000
"""Passages from which `auto` makes an embedded index, where its package is installed.

At 20,000 a hybrid search took 23 ms in the SQLite file and 1.1 ms here; the index costs a build
some 14 s more. With fewer, a model's answer takes so long that nobody sees the difference."""


class SearchBackends:
    """The backends of one open knowledge base, each made when it is first asked."""

    def __init__(self, path: Path, readers: access.ReaderPool, choice: BackendChoice) -> None:
        self._path, self._readers, self._choice = path, readers, choice
        self._exact = ExactBackend(readers)
        self._edge: CorrectedBackend | None = None
        self._remote: QdrantBackend | None = None
        self._making = threading.Lock()
        self._seen: tuple[int, CurrentGeneration | None] | None = None

    def vector_backend(self, encoder: str) -> SearchBackend:
        """Returns the backend for this encoder's vectors; raises `KnowledgeBaseMismatch` when the
        vectors are another encoder's.
        """
        backend = self.chosen_backend()
        if (stored := backend.encoder_identity()) != encoder:
            raise other_encoder_error(stored, encoder)
        return backend

    def follow_build(
        self, db: sqlite3.Connection, build: str, progress: Progress, *, afresh: bool
    ) -> None:
        """Brings the embedded index up to a build, or deletes it where none is wanted."""
        from osler.kb.search import edge

        if not self._wants_edge(db):
            edge.remove_index(self._path)
            return
        from osler.kb.search.edge_build import sync_generation

        edge.require_installed()
        sync_generation(
            self._path,
            build=build,
            encoder=read_meta(db, "encoder"),
            dimension=int(read_meta(db, "dimension") or 0),
            progress=progress,
            afresh=afresh,
        )

    def _wants_edge(self, db: sqlite3.Connection) -> bool:
        match self._choice.kind:
            case "edge":
                return True
            case "sqlite" | "qdrant":
                return False
            case "auto":
                (passages,) = db.execute("SELECT count(*) FROM passage").fetchone()
                if passages < EDGE_FROM or self._choice.url:
                    return False
                from osler.kb.search import edge

                return edge.is_installed()
            case _ as never:
                assert_never(never)

    def find_problems(self) -> Iterator[str]:
        """Yields differences between the embedded index, if there is one, and the last build."""
        if (current := self._current_generation()) is None:
            return
        folder = self._path / generation.FOLDER / current.name
        if not (folder / generation.POINTS).is_file():
            yield f"the embedded index has lost its generation {current.name}"
            return
        if changed := generation.find_changed(self._path, current):
            yield f"files of the embedded index changed since it was built: {', '.join(changed)}"
            return
        with TemporaryDirectory() as copy, self._readers.borrow() as db:
            shutil.copy(folder / generation.POINTS, copy)
            with generation.open_comparison(self._path, Path(copy)) as points:
                corrected = {number for pair in read_corrections(db) for number in pair}
                changes = generation.count_delta(points, corrected)
            built = read_meta(db, "built") == "yes"
        if built and (changes.put or changes.drop):
            yield (
                f"the embedded index lacks {changes.put:,} passages of the last build"
                f" and has {changes.drop:,} too many"
            )

    def chosen_backend(self) -> EncodedBackend:
        """The engine that is asked. Raises `KnowledgeBaseUnbuilt`, `BadConfig`."""
        kind = self._choice.kind
        if kind == "qdrant" or (kind == "auto" and self._choice.url):
            return self._remote_backend()
        if kind == "sqlite":
            return self._exact
        if self._has_edge():
            from osler.kb.search import edge

            if kind == "edge" or edge.is_installed():
                return self._edge_backend()
        if kind == "edge":
            raise KnowledgeBaseUnbuilt(
                f"{self._path} has no embedded index of its last build", fix="run `osler kb build`"
            )
        return self._exact

    def _has_edge(self) -> bool:
        """Returns whether there is an embedded index to search. While a build is under way it is
        that of the build before; after a rollback it is of no state that still counts.
        """
        with self._readers.borrow() as db:
            built, builds = read_meta(db, "built"), int(read_meta(db, "builds") or 0)
        # Looked at second: it may be of the next build already, which is about to be declared.
        current = self._current_generation()
        return current is not None and (built != "yes" or int(current.build) >= builds)

    def _current_generation(self) -> CurrentGeneration | None:
        """Read again when another generation was made current."""
        stamp = generation.read_stamp(self._path)
        if self._seen is None or self._seen[0] != stamp:
            self._seen = stamp, generation.read_current(self._path)
        return self._seen[1]

    def _edge_backend(self) -> CorrectedBackend:
        from osler.kb.search import edge

        with self._making:
            if self._edge is None:
                self._edge = CorrectedBackend(edge.EdgeBackend(self._path), self._readers)
            return self._edge

    def _remote_backend(self) -> QdrantBackend:
        from osler.kb.search.remote import QdrantBackend

        with self._making:
            if self._remote is None:
                self._remote = QdrantBackend.connect(self._choice, self._readers)
            return self._remote

    def close(self) -> None:
        with self._making:
            for engine in (self._exact, self._edge, self._remote):
                if engine is not None:
                    engine.close()
            self._edge = self._remote = None


def other_encoder_error(stored: str, wanted: str) -> KnowledgeBaseMismatch:
    return KnowledgeBaseMismatch(
        f"the knowledge base was built by {_name_encoder(stored)}, not by {_name_encoder(wanted)}",
        fix="run `osler kb build --rebuild`, or set the first one in osler.toml"
        if stored
        else "run `osler kb build`",
    )


def _name_encoder(identity: str) -> str:
    return f"encoder {identity}" if identity else "no encoder"


_Scorer = Callable[[sqlite3.Connection, dict[int, Passage]], Ranking]


class EncodedBackend(SearchBackend, Protocol):
    """A `SearchBackend` that says whose vectors it searches."""

    def encoder_identity(self) -> str:
        """Returns the identity of the encoder whose vectors it searches."""


class CorrectedBackend:
    """An index and the corrections since it was made. `close` closes the index."""

    def __init__(self, index: EncodedBackend, readers: access.ReaderPool) -> None:
        self._index, self._readers = index, readers
        self._stems = sparse.StemHasher()

    def by_words(self, terms: Sequence[str], *, k: int, within: PassageFilter) -> Ranking:
        def find(n: int) -> list[Ranking]:
            return [self._index.by_words(terms, k=n, within=within)]

        return self._add_corrected(find, [self._score_words(terms)], k, within)[0]

    def by_vector(self, query: Floats, *, k: int, within: PassageFilter) -> Ranking:
        def find(n: int) -> list[Ranking]:
            return [self._index.by_vector(query, k=n, within=within)]

        return self._add_corrected(find, [_score_vectors(query)], k, within)[0]

    def by_both(
        self, terms: Sequence[str], query: Floats, *, k: int, within: PassageFilter
    ) -> tuple[Ranking, Ranking]:
        def find(n: int) -> list[Ranking]:
            return [*self._index.by_both(terms, query, k=n, within=within)]

        scorers = [_score_vectors(query), self._score_words(terms)]
        dense, words = self._add_corrected(find, scorers, k, within)
        return dense, words

    def encoder_identity(self) -> str:
        return self._index.encoder_identity()

    def close(self) -> None:
        self._index.close()
        self._stems.close()

    def _add_corrected(
        self,
        find: Callable[[int], list[Ranking]],
        scorers: Sequence[_Scorer],
        k: int,
        within: PassageFilter,
    ) -> list[Ranking]:
        """The best of index and corrected passages. `find` asks the index for its n best."""
        with self._readers.borrow() as db:
            corrections = read_corrections(db)
            if not corrections:
                return find(k)
            mentioned = {number for pair in corrections for number in pair}
            passages = {
                number: passage
                for number, passage in read_by_number(db, mentioned).items()
                if in_scope(passage.source, within.sources)
            }
            allowed = allowed_by(db, within)
            merged = []
            for ranking, score in zip(find(k + len(mentioned)), scorers, strict=True):
                kept = [pair for pair in ranking if pair[0] not in mentioned]
                own = allowed([pair for pair in score(db, passages) if pair[1] > 0])
                merged.append(sorted([*kept, *own], key=lambda pair: (-pair[1], pair[0]))[:k])
        return merged

    def _score_words(self, terms: Sequence[str]) -> _Scorer:
        """BM25 as the index computes it; a word's rarity is that in the whole knowledge base."""

        def score(db: sqlite3.Connection, passages: dict[int, Passage]) -> Ranking:
            rarity = sparse.term_rarity(db, terms)
            (places,) = self._stems.word_places([list(terms)])
            of_place = {place: rarity[term] for place, term in zip(places, terms, strict=True)}
            texts = [indexed_text(passage) for passage in passages.values()]
            scores = [
                sum(weight * of_place.get(place, 0.0) for place, weight in zip(*words, strict=True))
                for words in sparse.passage_vectors(self._stems, texts)
            ]
            return list(zip(passages, scores, strict=True))

        return score


def _score_vectors(query: Floats) -> _Scorer:
    def score(db: sqlite3.Connection, passages: dict[int, Passage]) -> Ranking:
        return [
            (number, float(np.vecdot(vector, query)))
            for number, vector in read_vectors(db, passages).items()
        ]

    return score

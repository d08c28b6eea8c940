"""What searches a knowledge base, chosen by configuration and by what the last build made.

One Protocol (`base.Engine`), three engines: `exact` over the SQLite file, `edge` in worker
processes beside it, `remote` on a Qdrant server.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol, assert_never

from osler.errors import KnowledgeBaseMismatch, KnowledgeBaseUnbuilt
from osler.kb.search import edge, generation
from osler.kb.search.base import Choice, Engine
from osler.kb.search.exact import Exact
from osler.kb.search.generation import Current
from osler.kb.store import access
from osler.kb.store.passages import Progress, meta

if TYPE_CHECKING:
    from osler.kb.search.remote import Remote

EDGE_FROM = 20_000
"""Passages from which `auto` makes an embedded index, where its package is installed.

At 20,000 a hybrid search took 23 ms in the SQLite file and 1.1 ms here; the index costs a build
some 14 s more. With fewer, a model's answer takes so long that nobody sees the difference."""


class _Encoded(Engine, Protocol):
    def encoder(self) -> str:
        """Identity of the encoder whose vectors it searches."""
        ...


class Engines:
    """The engines of one open knowledge base, each made when it is first asked."""

    def __init__(self, path: Path, readers: access.Readers, choice: Choice) -> None:
        self._path, self._readers, self._choice = path, readers, choice
        self._exact = Exact(readers)
        self._edge: edge.Edge | None = None
        self._remote: Remote | None = None
        self._making = threading.Lock()
        self._seen: tuple[int, Current | None] | None = None

    def words(self) -> Engine:
        """Who searches by words. Raises `KnowledgeBaseUnbuilt`, `BadConfig`."""
        return self._chosen()

    def vectors(self, encoder: str) -> Engine:
        """Who searches the vectors of this encoder; raises `KnowledgeBaseMismatch` when the
        vectors are another one's."""
        chosen = self._chosen()
        if (stored := chosen.encoder()) != encoder:
            raise other_encoder(stored, encoder)
        return chosen

    def follow(
        self, db: sqlite3.Connection, build: str, progress: Progress, *, afresh: bool
    ) -> None:
        """Brings the embedded index up to a build, or takes it away where none is wanted."""
        if not self._wants_edge(db):
            edge.remove(self._path)
            return
        from osler.kb.search.edge_sync import sync

        edge.require_installed()
        sync(
            self._path,
            build=build,
            encoder=meta(db, "encoder"),
            dimension=int(meta(db, "dimension") or 0),
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
                return edge.installed() and passages >= EDGE_FROM and not self._choice.url
            case _ as never:
                assert_never(never)

    def problems(self) -> Iterator[str]:
        """Where the embedded index, if there is one, does not hold what the last build holds."""
        if (current := self._current()) is None:
            return
        folder = self._path / generation.FOLDER / current.name
        if not (folder / generation.POINTS).is_file():
            yield f"the embedded index has lost its generation {current.name}"
            return
        with TemporaryDirectory() as copy, self._readers.borrow() as db:
            shutil.copy(folder / generation.POINTS, copy)
            with generation.compared(self._path, Path(copy)) as points:
                changes = generation.delta(points)
            built = meta(db, "built") == "yes"
        if built and (changes.put or changes.drop):
            yield (
                f"the embedded index lacks {changes.put:,} passages of the last build"
                f" and has {changes.drop:,} too many"
            )

    def require(self) -> None:
        """Raises `KnowledgeBaseUnbuilt` or `BadConfig` unless the chosen engine can be asked."""
        self._chosen()

    def _chosen(self) -> _Encoded:
        kind = self._choice.kind
        if kind == "qdrant" or (kind == "auto" and self._choice.url):
            return self._server()
        if kind == "sqlite":
            return self._exact
        if self._has_edge() and (kind == "edge" or edge.installed()):
            return self._embedded()
        if kind == "edge":
            raise KnowledgeBaseUnbuilt(
                f"{self._path} has no embedded index of its last build",
                fix="run `osler kb build`",
            )
        return self._exact

    def _has_edge(self) -> bool:
        """Whether there is an index to search. While a build is under way it is that of the
        build before; after a rollback it is of no state that still counts."""
        with self._readers.borrow() as db:
            built, builds = meta(db, "built"), int(meta(db, "builds") or 0)
        # Looked at second: it may be of the next build already, which is about to be declared.
        current = self._current()
        return current is not None and (built != "yes" or int(current.build) >= builds)

    def _current(self) -> Current | None:
        """Read again when another generation was made current."""
        stamp = generation.stamp(self._path)
        if self._seen is None or self._seen[0] != stamp:
            self._seen = stamp, generation.read(self._path)
        return self._seen[1]

    def _embedded(self) -> edge.Edge:
        with self._making:
            if self._edge is None:
                self._edge = edge.Edge(self._path)
            return self._edge

    def _server(self) -> Remote:
        from osler.kb.search.remote import Remote

        with self._making:
            if self._remote is None:
                self._remote = Remote.connect(self._choice, self._readers)
            return self._remote

    def close(self) -> None:
        with self._making:
            for engine in (self._exact, self._edge, self._remote):
                if engine is not None:
                    engine.close()
            self._edge = self._remote = None


def other_encoder(stored: str, wanted: str) -> KnowledgeBaseMismatch:
    return KnowledgeBaseMismatch(
        f"the knowledge base was built by {_named(stored)}, not by {_named(wanted)}",
        fix="run `osler kb build --rebuild`, or set the first one in osler.toml"
        if stored
        else "run `osler kb build`",
    )


def _named(identity: str) -> str:
    return f"encoder {identity}" if identity else "no encoder"

"""A knowledge base: one folder with everything that can be searched and cited."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from osler.errors import KnowledgeBaseError, UnknownPassage
from osler.kb import (
    access,
    building,
    check,
    dropped,
    engines,
    filed,
    index,
    ingest,
    lexicon,
    schema,
    snapshots,
)
from osler.kb import export as exporting
from osler.kb.check import Info, Provenance
from osler.kb.chunk import chunking
from osler.kb.dropped import DeadLetter
from osler.kb.engines.base import EVERYTHING, TIES, Choice, Filter, Ranking
from osler.kb.export import Exported, Form
from osler.kb.extract import store as extracted
from osler.kb.extract.store import Account, Anchored
from osler.kb.formats.osler_jsonl import OslerJsonl, sources_of
from osler.kb.graph.files import FILE as GRAPH_FILE
from osler.kb.index import Built
from osler.kb.indexes import store as indexes
from osler.kb.indexes.search import Entries
from osler.kb.indexes.web import Webs
from osler.kb.ingest import Added, Care
from osler.kb.prepare import How
from osler.kb.snapshots import Snapshot
from osler.kb.store import (
    Progress,
    by_number,
    check_source,
    meta,
    numbered,
    set_meta,
)
from osler.types import Passage

if TYPE_CHECKING:
    from osler.kb.bulk import Runner
    from osler.kb.embed import Encoder
    from osler.kb.engines.push import Pushed
    from osler.kb.vectors import Floats

__all__ = ["Added", "Built", "Info", "KnowledgeBase", "Progress"]

Scored = tuple[Passage, float]
_PATIENCE = 10.0
"""Seconds for which tidying up waits while another process writes."""
_SOURCES = """
WITH RECURSIVE held(source) AS (
  SELECT min(source) FROM document
  UNION ALL SELECT (SELECT min(source) FROM document WHERE source > held.source)
  FROM held WHERE held.source IS NOT NULL)
SELECT source FROM held WHERE source IS NOT NULL"""
"""One step in the index for each source, where DISTINCT reads a row for each document: every
search asks for them."""


class KnowledgeBase:
    """One knowledge base, open for reading; what writes says so and takes the writer's lock.

    Any number of processes and threads may read, also while one writes. Every method
    blocks: an async caller puts it in a thread. Every method raises
    `KnowledgeBaseError` when the file is damaged or gone.
    """

    def __init__(self, path: Path, engine: Choice = Choice()) -> None:  # noqa: B008 - frozen
        """Use `create` or `open`."""
        self.path = path
        self.wait = 0.0
        """Seconds for which a method that writes waits while another process does."""
        self._readers = access.Readers(path)
        self._engines = engines.Engines(path, self._readers, engine)
        self.entries = Entries(self._readers)
        """The indexes over what was extracted."""
        self.webs = Webs(path, self._readers)
        """The graph of names and chunks."""

    @classmethod
    def create(cls, path: Path, engine: Choice = Choice()) -> Self:  # noqa: B008 - frozen
        """A new, empty one. Raises `KnowledgeBaseError` when there is one already."""
        schema.create(path)
        return cls(path, engine)

    @classmethod
    def open(cls, path: Path, engine: Choice = Choice()) -> Self:  # noqa: B008 - frozen
        """One that exists, searched by `engine`.

        Raises `KnowledgeBaseMissing` (no folder, or nothing in it) and
        `KnowledgeBaseMismatch` (another schema, or a file that is none of ours).
        """
        schema.check(path)
        return cls(path, engine)

    def close(self) -> None:
        self._engines.close()
        self.webs.close()
        self._readers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    # Writing

    def add(
        self,
        paths: Iterable[Path],
        *,
        source: str,
        fmt: str | None = None,
        licence: str = "",
        illustrative: bool = False,
        trust: int | None = None,
        chunk: str = "omni",
        progress: Progress | None = None,
        runner: Runner | None = None,
    ) -> Added:
        """Reads files, folders and archives into `source`; each file wholly or not at all.

        A file with the content that it had is skipped; of one whose content changed, the
        documents that changed are replaced. The paths are remembered, with these terms, for
        `update`. `fmt` names the format instead of finding it out; `licence` holds where a
        document states none; `illustrative` marks all as samples; `trust` (1 least, to 5)
        stands in place of the source's own (`osler.kb.store.trust_of`); `chunk` says how texts
        are cut (`osler.kb.chunk.chunking`): added again with another, a file is cut anew.
        The workers of `runner` read the files; without one, this process and another do.
        Raises `BadConfig` for a bad way of cutting, `KnowledgeBaseError` for a bad source name
        or while another process writes.
        """
        check_source(source)
        if trust is not None and not 1 <= trust <= 5:
            raise KnowledgeBaseError(f"{trust} is no trust", fix="give a number from 1 to 5")
        how = How(source, fmt, licence, illustrative, trust, chunk=chunking(chunk).name)
        named, told = list(paths), progress or _silent
        with self._writing(progress) as db:
            if runner is None:
                return ingest.add(db, named, how, told)
            from osler.kb import bulk

            with bulk.spool(self.path) as folder:
                outcomes = bulk.prepare(db, named, how, folder, runner, told)
                return ingest.add(db, named, how, told, outcomes)

    def add_export(
        self,
        paths: Iterable[Path],
        *,
        licence: str = "",
        trust: int | None = None,
        progress: Progress | None = None,
    ) -> Added:
        """Adds exports of Osler's, each document to the source that it came from.

        Raises `KnowledgeBaseError` for a file that is none, and while another process writes.
        """
        each = [(path, source) for path in paths for source in _sources_of(path)]
        for _, source in each:
            check_source(source)
        added = []
        with self._writing(progress) as db:
            for path, source in each:
                how = How(source, OslerJsonl.name, licence, trust=trust, only=True)
                added.append(ingest.add(db, [path], how, progress or _silent))
        return ingest.together(added)

    def update(
        self,
        *,
        source: str | None = None,
        checksum: bool = False,
        retry: bool = False,
        prune: bool = False,
        progress: Progress | None = None,
    ) -> Added:
        """Reads again what was added, into one source or all: the files that are new or changed.

        A file of the same size and time as when it was read is not opened; `checksum`
        compares contents instead. Files that could not be read are tried again, and those
        with records that could not be read when this version reads more, or with `retry`.
        Files that are gone are listed in `vanished`; `prune` takes their documents out.
        Raises `KnowledgeBaseError` when nothing was added, or while another process writes.
        """
        with self._writing(progress) as db:
            care = Care(checksum=checksum, retry=retry, prune=prune)
            return ingest.update(db, source, care, progress or _silent)

    def build(
        self,
        encoder: Encoder | None,
        *,
        rebuild: bool = False,
        progress: Progress | None = None,
        batch: int = 64,
    ) -> Built:
        """Gives each passage that wants one its vector, then takes the snapshot.

        `None` builds for search by words alone. A build that was killed goes on where
        it stopped, and several at a time share the work. `rebuild` throws away what
        another encoder made; without it that raises `KnowledgeBaseMismatch`. Raises
        `ModelError` for vectors that are not finite, of length 1 and of the encoder's
        dimension.
        """
        told = progress or _silent

        def finish(db: sqlite3.Connection) -> Built:
            def beside(number: str) -> None:
                self._engines.follow(db, number, told, afresh=rebuild)

            return index.build(
                db, encoder, rebuild=False, progress=told, batch=batch, beside=beside
            )

        return building.build(
            building.Site(self.path, self.wait, told),
            finish,
            encoder,
            rebuild=rebuild,
            batch=batch,
        )

    def build_on(
        self,
        runner: Runner,
        make: Callable[[], Encoder],
        *,
        rebuild: bool = False,
        progress: Progress | None = None,
    ) -> Built:
        """As `build`, with the encoder that each worker of `runner` makes for itself.

        The folder must be one that all workers see. Raises what `build` raises, and
        `KnowledgeBaseError` for a batch of which worker after worker dies.
        """
        from osler.kb import bulk

        encoder, told = make(), progress or _silent
        with self._writing(progress) as db, bulk.spool(self.path) as folder:
            index.begin(db, encoder, rebuild=rebuild)
            total = index.pending(db)
            encoded = bulk.encode(db, folder, make, runner, progress=told, total=total)
        built = self.build(encoder, progress=progress)
        return replace(built, encoded=built.encoded + encoded)

    def push(
        self, to: Choice, *, rebuild: bool = False, progress: Progress | None = None
    ) -> Pushed:
        """Makes the collections of the Qdrant server `to` hold what this holds; only what
        changed travels, and a push that was cut short goes on where it stopped.

        Raises what `require_built` raises, `BadConfig` without the extra `qdrant`,
        `KnowledgeBaseMismatch` for collections of another encoder unless `rebuild`
        replaces them, and `KnowledgeBaseError` for a server that fails.
        """
        from osler.kb.engines import push, remote

        self.require_built(None)
        with (
            closing(remote.client(to)) as client,
            remote.translated(to.url),
            self._readers.borrow() as db,
            access.still(db),
        ):
            return push.push(db, client, to.name, progress or _silent, afresh=rebuild)

    def remove(self, *, source: str, document: str | None = None) -> int:
        """Takes out one document, or a whole source; returns how many passages went.

        Adding its file again brings a document back. Raises `KnowledgeBaseError` when
        there is no such thing.
        """
        with self._writing(None) as db, access.transaction(db):
            gone = filed.remove(db, source, document)
            set_meta(db, built="")
        return gone

    def take_snapshot(self, name: str, *, progress: Progress | None = None) -> Snapshot:
        """A consistent copy of it all under a name, checked before it gets it.

        Raises `KnowledgeBaseError` for a bad or used name, when there is no room, and while
        another process writes.
        """
        return snapshots.take(self.path, name, progress or _silent, wait=self.wait)

    @classmethod
    def restore(
        cls, path: Path, name: str, *, wait: float = 0.0, progress: Progress | None = None
    ) -> Snapshot:
        """Makes the knowledge base in `path` what it was when the snapshot was taken.

        In one transaction: readers see the one or the other, and whoever holds its vectors
        reads them again. Works also where the file is damaged or lost. Raises
        `KnowledgeBaseError` when there is no such snapshot and while another process writes.
        """
        found = snapshots.restore(path, name, progress or _silent, wait=wait)
        with access.writing(path, wait=max(wait, _PATIENCE)) as db:
            _withdraw(path, db)
        return found

    # Reading

    def export(
        self,
        path: Path,
        *,
        form: Form | None = None,
        source: str | None = None,
        since: datetime | None = None,
        progress: Progress | None = None,
    ) -> Exported:
        """Writes every passage with its provenance; the file is whole or not there.

        `form` is told by the name's ending where it is not given; only of one `source`, and
        only of documents that came in at or after `since`. JSON Lines may be added again,
        under the same ids. Raises `BadConfig` for an unknown ending or without the extra
        `parquet`, `KnowledgeBaseError` when it cannot be written.
        """
        chosen = exporting.form_of(path, form)
        first = 0 if since is None else int(since.timestamp())
        with self._readers.borrow() as db, access.still(db):
            return exporting.export(
                db, path, chosen, source=source, since=first, progress=progress or _silent
            )

    def dead_letters(self, source: str | None = None) -> list[DeadLetter]:
        """What was to be read and could not be, the latest first."""
        with self._readers.borrow() as db, access.still(db):
            return list(dropped.dead(db, source))

    def provenance(self, id: str) -> Provenance:
        """Where the passage's document comes from. Raises `UnknownPassage` as `get` does."""
        self.get(id)
        with self._readers.borrow() as db:
            return check.provenance(db, id)

    def snapshots(self) -> list[Snapshot]:
        """All named copies, the oldest first."""
        return snapshots.listed(self.path)

    def drop_snapshot(self, name: str) -> None:
        """Deletes a named copy. Raises `KnowledgeBaseError` when there is none."""
        snapshots.drop(self.path, name)

    @property
    def snapshot(self) -> str:
        """Names the passages and the encoder of the last build; empty before the first."""
        with self._readers.borrow() as db:
            return meta(db, "snapshot")

    @property
    def sources(self) -> tuple[str, ...]:
        """Those that hold a document, in alphabetical order."""
        with self._readers.borrow() as db:
            return tuple(row[0] for row in db.execute(_SOURCES))

    def lacking(self, sources: Iterable[str]) -> tuple[str, ...]:
        """Those of `sources` that hold no document."""
        held = "SELECT 1 FROM document WHERE source = ? LIMIT 1"
        with self._readers.borrow() as db:
            return tuple(name for name in sources if not db.execute(held, (name,)).fetchone())

    def require_built(self, encoder: str | None) -> None:
        """Raises unless it can be searched with the encoder of this identity.

        `None` = with whatever encoder, or by words alone. Raises `KnowledgeBaseUnbuilt`
        ("12 of 240 passages are not indexed") and `KnowledgeBaseMismatch` (another encoder).
        """
        with self._readers.borrow() as db:
            index.require(db, encoder)
        self._engines.require()

    def get(self, id: str) -> Passage:
        """Raises `UnknownPassage`, whose `fix` names the nearest ids that exist."""
        (passage,) = self.neighbours(id, 0)
        return passage

    def neighbours(self, id: str, n: int = 1) -> tuple[Passage, ...]:
        """The passage with the `n` before and the `n` after it in its document, in order.

        Raises `UnknownPassage` as `get` does.
        """
        id = id.encode(
            errors="replace"
        ).decode()  # half a character, from a shell in another coding
        with self._readers.borrow() as db:
            row = db.execute("SELECT document, n FROM passage WHERE id = ?", (id,)).fetchone()
            if row is None:
                raise UnknownPassage(f"there is no passage {id!r}", fix=_nearest_ids(db, id))
            document, place = row
            around = "SELECT * FROM passage WHERE document = ? AND n BETWEEN ? AND ? ORDER BY n"
            near = numbered(db, around, (document, place - n, place + n))
            return tuple(passage for _, passage in near)

    def documents(self, source: str) -> Iterator[tuple[Passage, ...]]:
        """The passages of each document of a source, in order; memory holds one document."""
        with self._readers.borrow() as db, access.still(db):
            every = "SELECT * FROM passage WHERE source = ? ORDER BY document, n"
            passages = (passage for _, passage in numbered(db, every, (source,)))
            for _, group in groupby(passages, key=lambda passage: passage.id.rpartition("#")[0]):
                yield tuple(group)

    def info(self) -> Info:
        with self._readers.borrow() as db, access.still(db):
            return check.info(db, self.path)

    def verify(self) -> list[str]:
        """Every problem found, in words; empty when all is well. Reads everything."""
        with self._readers.borrow() as db, access.still(db):
            found = [*check.verify(db), *extracted.problems(db), *indexes.problems(db)]
            if (self.path / GRAPH_FILE).is_file():
                from osler.kb.extract import publish

                found += publish.problems(self.path, db)
        return [*found, *self._engines.problems()]

    def extracted(self, id: str) -> list[Anchored]:
        """What was extracted from a passage (`osler.kb.extract`), in the order of its runs.

        Raises `UnknownPassage` as `get` does.
        """
        self.get(id)
        with self._readers.borrow() as db:
            return extracted.of_passage(db, id)

    def extractions(self) -> list[Account]:
        """What each extractor has done so far, and what it cost."""
        with self._readers.borrow() as db, access.still(db):
            return extracted.accounts(db)

    # Searching: `osler.retrieve` puts the `Retriever` Protocol over these

    def by_words(
        self, terms: Sequence[str], *, k: int, within: Filter = EVERYTHING
    ) -> list[Scored]:
        """The `k` best by BM25 among passages with any of `terms`; equal ones by id."""
        return self._scored(self._engines.words().by_words(terms, k=k + TIES, within=within))[:k]

    def by_vector(
        self, query: Floats, *, encoder: str, k: int, within: Filter = EVERYTHING
    ) -> list[Scored]:
        """The `k` best by inner product; equal ones by id; none at zero or below.

        Raises `KnowledgeBaseMismatch` when the vectors are of another encoder than `encoder`:
        they may have been made anew since this knowledge base was opened.
        """
        engine = self._engines.vectors(encoder)
        return self._scored(engine.by_vector(query, k=k, within=within))

    def rankings(
        self,
        terms: Sequence[str],
        query: Floats | None,
        *,
        encoder: str,
        k: int,
        within: Filter = EVERYTHING,
    ) -> tuple[Ranking, Ranking]:
        """Passage numbers by vector and by words, in one request, for a fusion; see `passages`.

        Without `query` the first is empty. Raises what `by_vector` raises.
        """
        engine = self._engines.vectors(encoder)
        if query is None:
            return [], engine.by_words(terms, k=k, within=within)
        return engine.by_both(terms, query, k=k, within=within)

    def ranking(self, terms: Sequence[str], *, k: int, within: Filter = EVERYTHING) -> Ranking:
        """Passage numbers by words alone, for a fusion; see `passages`."""
        return self._engines.words().by_words(terms, k=k, within=within)

    def passages(self, numbers: Iterable[int]) -> dict[int, Passage]:
        """Those that still exist."""
        with self._readers.borrow() as db:
            return by_number(db, numbers)

    def rarity(self, terms: Sequence[str]) -> dict[str, float]:
        """How much each term tells, by how few passages hold it (inverse document frequency)."""
        with self._readers.borrow() as db:
            return lexicon.rarity(db, terms)

    def _scored(self, found: Ranking) -> list[Scored]:
        passages = self.passages(number for number, _ in found)
        scored = [(passages[number], score) for number, score in found if number in passages]
        return sorted(scored, key=lambda pair: (-pair[1], pair[0].id))

    @contextmanager
    def _writing(self, progress: Progress | None) -> Iterator[sqlite3.Connection]:
        say = progress or _silent
        with access.writing(
            self.path, wait=self.wait, waiting=lambda: say("waiting", 0, None)
        ) as db:
            yield db
            _withdraw(self.path, db)


def _withdraw(path: Path, db: sqlite3.Connection) -> None:
    """Takes out of the concept graph what texts said that are gone now."""
    if (path / GRAPH_FILE).is_file():
        from osler.kb.extract import publish  # most have no graph, and this reads a lot

        publish.withdraw(path, db)


def _sources_of(path: Path) -> tuple[str, ...]:
    if found := sources_of(path) if path.exists() else ("",):
        return found
    raise KnowledgeBaseError(
        f"{path} does not say to which source it belongs", fix="give it with --source"
    )


def _silent(what: str, done: int, total: int | None) -> None:
    """The progress of a job that nobody watches."""


def _nearest_ids(db: sqlite3.Connection, id: str) -> str:
    """What is there instead: the range of the same document, or the ids beside it."""
    document, _, _ = id.partition("#")
    # "$" is the character after "#": between the two lie the passages of this document.
    range_of = db.execute(
        "SELECT id FROM passage WHERE id >= ? AND id < ? ORDER BY n",
        (f"{document}#", f"{document}$"),
    ).fetchall()
    if range_of:
        return f"the document has {len(range_of)}, {range_of[0][0]} to {range_of[-1][0]}"
    beside = db.execute(
        "SELECT * FROM (SELECT id FROM passage WHERE id < ? ORDER BY id DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT id FROM passage WHERE id > ? ORDER BY id LIMIT 1)",
        (id, id),
    ).fetchall()
    if not beside:
        return "the knowledge base is empty"
    return f"the nearest are {' and '.join(row[0] for row in beside)}"

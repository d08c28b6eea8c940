"""A knowledge base: one folder with everything that can be searched and cited."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Self

from osler.errors import KnowledgeBaseError, MissingPath, UnnamedSource
from osler.kb import index, store
from osler.kb.index import BuildResult
from osler.kb.reader import Derived, KnowledgeBaseReader
from osler.kb.search.base import BackendChoice
from osler.kb.store import access
from osler.kb.store.passages import (
    Progress,
    check_source,
    ignore_progress,
    set_meta,
)
from osler.sources.catalogue import SOURCES
from osler.types import Passage

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder
    from osler.kb.ingest.bulk import WorkerPool
    from osler.kb.ingest.files import IngestResult
    from osler.kb.ingest.reader_process import ReadLimits
    from osler.kb.retractions import MarkedWorks
    from osler.kb.search.push import PushResult
    from osler.kb.store.snapshots import Snapshot


__all__ = ["BuildResult", "KnowledgeBase", "Progress"]

_PATIENCE = 10.0
"""Seconds for which tidying up waits while another process writes."""


class KnowledgeBase(KnowledgeBaseReader):
    """One knowledge base: the methods that write; `KnowledgeBaseReader` has those that read.

    Any number of processes and threads may read, also while one writes; a method that writes
    takes the writer's lock. Every method blocks: an async caller puts it in a thread. Every
    method raises `KnowledgeBaseError` when the file is damaged or gone.
    """

    wait = 0.0
    """Seconds for which a method that writes waits while another process does."""
    deidentified: tuple[str, ...] = ()
    """Sources whose texts lose what identifies a person when they are added."""

    @classmethod
    def create(
        cls,
        path: Path,
        engine: BackendChoice = BackendChoice(),  # noqa: B008 - frozen
        derived: Derived | None = None,
    ) -> Self:
        """Creates an empty one. Raises `KnowledgeBaseError` when there is one already."""
        store.create_store(path)
        return cls(path, engine, derived)

    @classmethod
    def open(
        cls,
        path: Path,
        engine: BackendChoice = BackendChoice(),  # noqa: B008 - frozen
        derived: Derived | None = None,
    ) -> Self:
        """Opens an existing one, searched by `engine`.

        Raises `KnowledgeBaseMissing` (no folder, or nothing in it) and
        `KnowledgeBaseMismatch` (another schema, or a file of another kind).
        """
        store.check_store(path)
        return cls(path, engine, derived)

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
        limits: ReadLimits | None = None,
    ) -> IngestResult:
        """Reads files, folders and archives into `source`; each file wholly or not at all.

        A file with unchanged content is skipped; of a changed one, the documents that changed
        are replaced. The paths are remembered, with these terms, for `update`. `fmt` names the
        format instead of detecting it; `licence` holds where a document states none;
        `illustrative` marks all as samples; `trust` (1 least, to 5) replaces the source's own
        (`osler.sources.catalogue.trust_of`); `chunk` names the chunking
        (`osler.kb.ingest.chunk.parse_chunking`): with another one, a file is cut anew. Files of
        strangers are read within `limits`, one that is over them raises `FileTooCostly`. Raises
        `BadConfig` for an unknown chunking, `KnowledgeBaseError` for a bad source name or while
        another process writes.
        """
        from osler.kb.ingest import files
        from osler.kb.ingest.chunk import parse_chunking
        from osler.kb.ingest.prepare import IngestOptions
        from osler.kb.ingest.reader_process import read_outcomes

        check_source(source)
        if trust is not None and not 1 <= trust <= 5:
            raise KnowledgeBaseError(
                f"trust must be 1 to 5, not {trust}", fix="give a number from 1 to 5"
            )
        how = IngestOptions(
            source, fmt, licence, illustrative, trust, chunk=parse_chunking(chunk).name
        )
        roots, report = list(paths), progress or ignore_progress
        with self._open_for_writing(progress) as db:
            bound = partial(read_outcomes, limits=limits)
            return files.add_paths(db, roots, how, report, bound)

    def put(self, passages: Iterable[Passage], *, progress: Progress | None = None) -> IngestResult:
        """Adds ready-made passages, each under its own id, `source:document#n`.

        The passages of a document come in one call, in order, and take the place of those that
        were put before: a document whose passages are equal stays, with its vectors. No file
        stands behind them, so that `update` leaves them alone. A document that a file has brought
        already, or with the words of another, is counted among the drops. Nothing is written where
        one passage is refused: raises `KnowledgeBaseError` for an id of another form or one that
        comes twice, a text of blanks, and while another process writes.

            >>> import osler
            >>> from pathlib import Path
            >>> kb = osler.KnowledgeBase.create(Path("kb"))
            >>> text = "Oral iron treats iron deficiency anaemia."
            >>> iron = osler.Passage("notes:iron#0", text, source="notes", title="Iron")
            >>> kb.put([iron]).documents
            1
            >>> kb.get("notes:iron#0").text
            'Oral iron treats iron deficiency anaemia.'
        """
        from osler.kb.ingest import files

        with self._open_for_writing(progress) as db:
            return files.put_passages(db, passages, progress or ignore_progress)

    def add_export(
        self,
        paths: Iterable[Path],
        *,
        licence: str = "",
        trust: int | None = None,
        progress: Progress | None = None,
    ) -> IngestResult:
        """Adds exports of Osler's, each document to the source that it came from.

        Raises `KnowledgeBaseError` for another kind of file, and while another process writes,
        and `MalformedSource` for a path that does not exist.
        """
        from osler.kb.ingest import files
        from osler.kb.ingest.prepare import IngestOptions
        from osler.sources.formats.json_lines import OslerJsonl

        each = [(path, source) for path in paths for source in _sources_of(path)]
        for _, source in each:
            check_source(source)
        added = []
        with self._open_for_writing(progress) as db:
            for path, source in each:
                how = IngestOptions(source, OslerJsonl.name, licence, trust=trust, only=True)
                added.append(files.add_paths(db, [path], how, progress or ignore_progress))
        return files.sum_results(added)

    def update(
        self,
        *,
        source: str | None = None,
        checksum: bool = False,
        retry: bool = False,
        prune: bool | Path = False,
        progress: Progress | None = None,
        limits: ReadLimits | None = None,
    ) -> IngestResult:
        """Reads again what was added, into one source or all: the files that are new or changed.

        A file of the same size and time as when it was read is not opened; `checksum`
        compares contents instead. Files that could not be read are tried again, and those
        with records that could not be read when this version reads more, or with `retry`.
        Files that are gone are listed in `vanished`; `prune` takes their documents out, a folder
        only those of what was added as it or, unless that is an empty folder now, below it.
        `limits` as for `add`.
        Raises `KnowledgeBaseError` when nothing was added, or while another process writes.
        """
        from osler.kb import retractions
        from osler.kb.ingest import files
        from osler.kb.ingest.reader_process import read_outcomes

        with self._open_for_writing(progress) as db:
            outcomes = partial(read_outcomes, limits=limits)
            care = files.UpdateOptions(checksum, retry, prune, outcomes=outcomes)
            retractions.mark_again(db)
            return files.update_roots(db, source, care, progress or ignore_progress)

    def mark_retractions(self, path: Path) -> MarkedWorks:
        """Marks the works that a list of Retraction Watch's (CSV) names by PMID or DOI: retracted,
        corrected, under concern; marks of an earlier list go.

        Documents that come in later are marked as they come, and `update` reads the file again
        where it has changed. What is retracted is found only where it is asked for. Raises
        `MalformedSource` for another table, and `KnowledgeBaseError` while another process writes.
        """
        from osler.kb import retractions

        with self._open_for_writing(None) as db:
            return retractions.mark_works(db, path)

    def build(
        self,
        encoder: Encoder | None,
        *,
        rebuild: bool = False,
        progress: Progress | None = None,
        batch: int = 64,
    ) -> BuildResult:
        """Encodes every passage in the encoder's languages, then declares the index built.

        `None` builds for search by words alone. A build that was killed goes on where
        it stopped, and several at a time share the work. `rebuild` throws away what
        another encoder made; without it that raises `KnowledgeBaseMismatch`. Raises
        `ModelError` for vectors that are not finite, of length 1 and of the encoder's
        dimension.
        """
        report = progress or ignore_progress

        def follow(db: sqlite3.Connection, number: str) -> None:
            self._engines.follow_build(db, number, report, afresh=rebuild)

        site = index.BuildSite(self.path, self.wait, report)
        return index.build_together(site, encoder, rebuild=rebuild, batch=batch, follow=follow)

    def build_on(
        self,
        runner: WorkerPool,
        make: Callable[[], Encoder],
        *,
        rebuild: bool = False,
        progress: Progress | None = None,
    ) -> BuildResult:
        """Builds as `build` does, with an encoder that each worker of `runner` makes for itself.

        The folder must be one that all workers see. Raises what `build` raises, and
        `KnowledgeBaseError` for a batch of which worker after worker dies.
        """
        from osler.kb.ingest import bulk

        began, encoder, report = monotonic(), make(), progress or ignore_progress
        with self._open_for_writing(progress) as db, bulk.open_spool(self.path) as folder:
            index.begin_build(db, encoder, rebuild=rebuild)
            encoded = bulk.encode_pending(db, folder, make, runner, progress=report)
        built = self.build(encoder, progress=progress)
        return replace(built, encoded=built.encoded + encoded, seconds=monotonic() - began)

    def encode_some(self, encoder: Encoder, most: int) -> int:
        """Gives up to `most` passages their vector; returns how many still want one.

        For a build in small steps, which `build` ends. Raises what that raises.
        """
        with self._open_for_writing(None) as db:
            return index.encode_some(db, encoder, most)

    def correct(self, id: str, text: str, encoder: Encoder | None) -> Passage:
        """Gives one passage another text, which the next search finds: no build is needed.

        With the encoder of the last build its vector is made too; a knowledge base that was not
        built stays so. The file that the passage came from is left as it is: when it changes, its
        own text comes back. Raises `UnknownPassage`, and `KnowledgeBaseError` for an empty text
        or while another process writes.
        """
        from osler.kb.ingest.document_upsert import replace_text

        with self._open_for_writing(None) as db:
            built = index.is_built(db)
            if built and encoder is not None:
                index.require_built(db, encoder.identity)
            with access.write_transaction(db):
                replacement = replace_text(db, id, text, encoder if built else None)
                if built and replacement.is_change:
                    index.declare_corrected(db, replacement)
        return replacement.new

    def push(
        self, to: BackendChoice, *, rebuild: bool = False, progress: Progress | None = None
    ) -> PushResult:
        """Pushes the passages to the collections of the Qdrant server `to`.

        Only changes travel, and a push that was cut short goes on where it stopped.

        Raises what `require_built` raises, `BadConfig` without the extra `qdrant`,
        `KnowledgeBaseMismatch` for collections of another encoder unless `rebuild`
        replaces them, and `KnowledgeBaseError` for a server that fails.
        """
        from osler.kb.search import push, remote

        self.require_built(None)
        with (
            closing(remote.make_client(to)) as client,
            remote.translate_errors(to.url),
            self.readers.borrow() as db,
            access.read_transaction(db),
        ):
            report = progress or ignore_progress
            return push.push_passages(db, client, to.name, report, afresh=rebuild)

    def remove(self, *, source: str, document: str | None = None) -> int:
        """Takes out one document, or a whole source; returns how many passages went.

        Adding its file again brings a document back. Raises `KnowledgeBaseError` when
        there is no such thing.
        """
        from osler.kb.ingest import file_table

        with self._open_for_writing(None) as db, access.write_transaction(db):
            removed = file_table.remove_documents(db, source, document)
            set_meta(db, built="")
        return removed

    def take_snapshot(self, name: str, *, progress: Progress | None = None) -> Snapshot:
        """Makes a consistent copy of everything, checked before it gets its name.

        Raises `KnowledgeBaseError` for a bad or used name, when there is no room, and while
        another process writes.
        """
        from osler.kb.store import snapshots

        return snapshots.take_snapshot(self.path, name, progress or ignore_progress, wait=self.wait)

    @classmethod
    def restore(
        cls,
        path: Path,
        name: str,
        *,
        derived: Derived | None = None,
        wait: float = 0.0,
        progress: Progress | None = None,
    ) -> Snapshot:
        """Restores the knowledge base in `path` to a snapshot.

        In one transaction: readers see the one or the other, and whoever holds its vectors
        reads them again. Works also where the file is damaged or lost. Raises
        `KnowledgeBaseError` when there is no such snapshot and while another process writes.
        """
        from osler.kb.store import snapshots

        snapshot = snapshots.restore_snapshot(path, name, progress or ignore_progress, wait=wait)
        if derived is not None:
            with access.open_for_writing(path, wait=max(wait, _PATIENCE)) as db:
                derived.bring_in_step(path, db)
        return snapshot

    def drop_snapshot(self, name: str) -> None:
        """Deletes a named copy. Raises `KnowledgeBaseError` when there is none."""
        from osler.kb.store import snapshots

        snapshots.drop_snapshot(self.path, name)

    @contextmanager
    def _open_for_writing(self, progress: Progress | None) -> Iterator[sqlite3.Connection]:
        # What writes texts is imported when something is written: a question reads.
        from osler.sources.patients import use_secret

        say = progress or ignore_progress
        with (
            use_secret(self.path, self.deidentified),
            access.open_for_writing(
                self.path, wait=self.wait, waiting=lambda: say("waiting", 0, None)
            ) as db,
        ):
            yield db
            if self._derived is not None:
                self._derived.bring_in_step(self.path, db)


def _sources_of(path: Path) -> tuple[str, ...]:
    from osler.sources.formats.json_lines import sources_of

    if not path.exists():
        raise MissingPath(f"{path} does not exist", fix="check the path")
    if sources := sources_of(path):
        return sources
    raise UnnamedSource(
        f"{path} does not name its source",
        fix=f"give it with --source: {', '.join(SOURCES)}, or a name of your own",
    )

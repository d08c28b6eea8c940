"""A knowledge base as it is read and searched; what writes is `osler.kb.base`."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, TypeVar, cast

from osler.errors import UnknownPassage
from osler.kb import index
from osler.kb.search import sparse
from osler.kb.search.backends import SearchBackends
from osler.kb.search.base import (
    EVERYTHING,
    TIES,
    BackendChoice,
    Floats,
    PassageFilter,
    Ranking,
    read_vectors,
)
from osler.kb.search.known import known_until
from osler.kb.store import access
from osler.kb.store.passages import (
    Progress,
    ignore_progress,
    read_by_number,
    read_meta,
    read_numbered,
)
from osler.types import Language, Passage

if TYPE_CHECKING:
    from osler.kb.check import KnowledgeBaseInfo, Provenance
    from osler.kb.ingest.prepare import DeadLetter
    from osler.kb.store.export import ExportResult
    from osler.kb.store.snapshots import Snapshot

Scored = tuple[Passage, float]
_SOURCES = """
WITH RECURSIVE held(source) AS (
  SELECT min(source) FROM document
  UNION ALL SELECT (SELECT min(source) FROM document WHERE source > held.source)
  FROM held WHERE held.source IS NOT NULL)
SELECT source FROM held WHERE source IS NOT NULL"""
"""One step in the index for each source, where DISTINCT reads a row for each document: every
search asks for them."""


class Attached(Protocol):
    """A resource that is closed together with a knowledge base."""

    def close(self) -> None: ...


A = TypeVar("A", bound=Attached)


class Derived(Protocol):
    """Data derived from passages and stored beside them (`osler.extract.derived`)."""

    def bring_in_step(self, folder: Path, db: sqlite3.Connection) -> None:
        """Drops what rested on passages that are gone; called under the writer's lock."""

    def find_problems(self, folder: Path, db: sqlite3.Connection) -> Iterable[str]:
        """Every disagreement between passages and what is derived from them, in words."""


class KnowledgeBaseReader:
    """The half of a `KnowledgeBase` that reads and searches; it takes no lock."""

    def __init__(
        self,
        path: Path,
        engine: BackendChoice = BackendChoice(),  # noqa: B008 - frozen
        derived: Derived | None = None,
    ) -> None:
        """Use `KnowledgeBase.create` or `open`."""
        self.path = path
        self._derived = derived
        self._attached: dict[type[Attached], Attached] = {}
        self._attaching = threading.Lock()
        self.readers = access.ReaderPool(path)
        self._engines = SearchBackends(path, self.readers, engine)

    def attach(self, kind: type[A], make: Callable[[], A]) -> A:
        """Returns the one object of its kind that is kept open with this knowledge base.

        `make` is called the first time. It lets upper layers hold caches whose life is this
        object's without this layer knowing them.
        """
        with self._attaching:
            if kind not in self._attached:
                self._attached[kind] = make()
            return cast(A, self._attached[kind])

    def close(self) -> None:
        for resource in self._attached.values():
            resource.close()
        self._engines.close()
        self.readers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def export(
        self,
        path: Path,
        *,
        source: str | None = None,
        since: datetime | None = None,
        progress: Progress | None = None,
    ) -> ExportResult:
        """Writes every passage with its provenance; the file is whole or not there.

        JSON Lines, which may be added again under the same ids; only of one `source`, and only of
        documents that came in at or after `since`. Raises `BadConfig` for another ending than
        .jsonl, `KnowledgeBaseError` when it cannot be written.
        """
        from osler.kb.store import export as exporting

        first = 0 if since is None else int(since.timestamp())
        with self.readers.borrow() as db, access.read_transaction(db):
            return exporting.write_export(
                db, path, source=source, since=first, progress=progress or ignore_progress
            )

    def dead_letters(self, source: str | None = None) -> list[DeadLetter]:
        """What was to be read and could not be, the latest first."""
        from osler.kb.ingest import prepare

        with self.readers.borrow() as db, access.read_transaction(db):
            return list(prepare.list_dead_letters(db, source))

    def provenance(self, id: str) -> Provenance:
        """Where the passage's document comes from. Raises `UnknownPassage` as `get` does."""
        from osler.kb import check

        self.get(id)
        with self.readers.borrow() as db:
            return check.read_provenance(db, id)

    def list_snapshots(self) -> list[Snapshot]:
        """All named copies, the oldest first."""
        from osler.kb.store import snapshots

        return snapshots.list_snapshots(self.path)

    @property
    def snapshot(self) -> str:
        """Names the passages and the encoder of the last build; empty before the first."""
        with self.readers.borrow() as db:
            return read_meta(db, "snapshot")

    @property
    def sources(self) -> tuple[str, ...]:
        """Those that hold a document, in alphabetical order."""
        with self.readers.borrow() as db:
            return tuple(row[0] for row in db.execute(_SOURCES))

    def missing_sources(self, sources: Iterable[str]) -> tuple[str, ...]:
        """Those of `sources` that hold no document."""
        has_document = "SELECT 1 FROM document WHERE source = ? LIMIT 1"
        with self.readers.borrow() as db:
            return tuple(
                name for name in sources if not db.execute(has_document, (name,)).fetchone()
            )

    def require_built(self, encoder: str | None) -> None:
        """Raises unless it can be searched with the encoder of this identity.

        `None` = with whatever encoder, or by words alone. Raises `KnowledgeBaseUnbuilt`
        ("12 of 240 passages are not indexed") and `KnowledgeBaseMismatch` (another encoder).
        """
        with self.readers.borrow() as db:
            index.require_built(db, encoder)
        self._engines.chosen_backend()

    def count_unindexed(self, encoder: str | None) -> int:
        """The passages that still wait for their vector: these are found by words alone.

        Raises what `require_built` raises, except where passages wait.
        """
        with self.readers.borrow() as db:
            waiting = index.count_unindexed(db, encoder)
        self._engines.chosen_backend()
        return waiting

    def has_vectors(self, encoder: str) -> bool:
        """Whether any passage has its vector of this encoder, or none needs one."""
        with self.readers.borrow() as db:
            waiting = index.count_unindexed(db, encoder)
            return not waiting or (
                read_meta(db, "encoder") == encoder and waiting < index.count_passages(db)
            )

    def get(self, id: str) -> Passage:
        """Raises `UnknownPassage`, whose `fix` names the nearest ids that exist."""
        (passage,) = self.neighbours(id, 0)
        return passage

    def neighbours(self, id: str, n: int = 1) -> tuple[Passage, ...]:
        """The passage with the `n` before and the `n` after it in its document, in order.

        Raises `UnknownPassage` as `get` does.
        """
        # Half a character may come from a shell in another coding.
        id = id.encode(errors="replace").decode()
        with self.readers.borrow() as db:
            row = db.execute("SELECT document, n FROM passage WHERE id = ?", (id,)).fetchone()
            if row is None:
                raise UnknownPassage(f"there is no passage {id!r}", fix=_nearest_ids(db, id))
            document, place = row
            around = "SELECT * FROM passage WHERE document = ? AND n BETWEEN ? AND ? ORDER BY n"
            near = read_numbered(db, around, (document, place - n, place + n))
            return tuple(passage for _, passage in near)

    def first_passages(self, documents: Sequence[str]) -> list[Passage]:
        """The first passage of each document that has one of these ids, in any source."""
        select = (
            "SELECT passage.* FROM document JOIN passage ON passage.document = document.number"
            " WHERE document.source = ? AND document.id IN (SELECT value FROM json_each(?))"
            " AND passage.n = 0"
        )
        with self.readers.borrow() as db:
            wanted = json.dumps(list(documents))
            rows = [read_numbered(db, select, (source, wanted)) for source in self.sources]
            return [passage for ranked in rows for _, passage in ranked]

    def documents_of_kind(self, kind: str) -> list[tuple[str, str, str]]:
        """Source, id and title of each document of a publication type."""
        select = (
            "SELECT source, id, title FROM document"
            " WHERE instr(char(10) || kinds || char(10), char(10) || ? || char(10))"
        )
        with self.readers.borrow() as db:
            return db.execute(select, (kind,)).fetchall()

    def read_documents(self, source: str) -> Iterator[tuple[Passage, ...]]:
        """The passages of each document of a source, in order; memory holds one document."""
        with self.readers.borrow() as db, access.read_transaction(db):
            select = "SELECT * FROM passage WHERE source = ? ORDER BY document, n"
            passages = (passage for _, passage in read_numbered(db, select, (source,)))
            for _, group in groupby(passages, key=lambda passage: passage.id.rpartition("#")[0]):
                yield tuple(group)

    def list_retracted(self) -> frozenset[str]:
        """The retracted documents, each as "source:document"."""
        from osler.kb import retractions

        with self.readers.borrow() as db:
            return retractions.list_retracted(db)

    def info(self) -> KnowledgeBaseInfo:
        """Counts of what it holds, by source."""
        from osler.kb import check

        with self.readers.borrow() as db, access.read_transaction(db):
            return check.read_info(db, self.path)

    def verify(self) -> list[str]:
        """Every problem found, in words; empty when all is well. Reads everything."""
        from osler.kb import check

        with self.readers.borrow() as db, access.read_transaction(db):
            problems = [*check.find_problems(db)]
            if self._derived is not None:
                problems += self._derived.find_problems(self.path, db)
            problems += check.find_bad_secret(self.path)
        return [*problems, *self._engines.find_problems()]

    # Searching: `osler.retrieve` puts the `Retriever` Protocol over these

    def by_words(
        self, terms: Sequence[str], *, k: int, within: PassageFilter = EVERYTHING
    ) -> list[Scored]:
        """The `k` best by BM25 among passages with any of `terms`; equal ones by id."""
        ranking = self._engines.chosen_backend().by_words(terms, k=k + TIES, within=within)
        return self._score_passages(ranking, within)[:k]

    def by_vector(
        self, query: Floats, *, encoder: str, k: int, within: PassageFilter = EVERYTHING
    ) -> list[Scored]:
        """The `k` best by inner product; equal ones by id; none at zero or below.

        Raises `KnowledgeBaseMismatch` when the vectors are of another encoder than `encoder`:
        they may have been made anew since this knowledge base was opened.
        """
        engine = self._engines.vector_backend(encoder)
        return self._score_passages(engine.by_vector(query, k=k, within=within), within)

    def rank_by_both(
        self,
        terms: Sequence[str],
        query: Floats | None,
        *,
        encoder: str,
        k: int,
        within: PassageFilter = EVERYTHING,
        languages: Collection[Language] | None = None,
    ) -> tuple[Ranking, Ranking]:
        """Passage numbers by vector and by words, in one request, for a fusion; see `passages`.

        Without `query` the first is empty; of passages in other languages than `languages` it has
        none, since their vectors may be of another encoder. Raises what `by_vector` raises.
        """
        engine = self._engines.vector_backend(encoder)
        if query is None:
            return [], engine.by_words(terms, k=k, within=within)
        dense, lexical = engine.by_both(terms, query, k=k, within=within)
        return dense if languages is None else self._keep_languages(dense, languages), lexical

    def rank_by_words(
        self, terms: Sequence[str], *, k: int, within: PassageFilter = EVERYTHING
    ) -> Ranking:
        """Passage numbers by words alone, for a fusion; see `passages`."""
        return self._engines.chosen_backend().by_words(terms, k=k, within=within)

    def get_passages(self, numbers: Iterable[int]) -> dict[int, Passage]:
        """Those that still exist."""
        with self.readers.borrow() as db:
            return read_by_number(db, numbers)

    def get_vectors(self, numbers: Iterable[int]) -> dict[int, Floats]:
        """The vectors of passages that have one."""
        with self.readers.borrow() as db:
            return read_vectors(db, numbers)

    def term_rarity(self, terms: Sequence[str], *, as_of: int | None = None) -> dict[str, float]:
        """How much each term tells, by how few passages hold it (inverse document frequency);
        `as_of`: of documents up to this day, as 20240131."""
        with self.readers.borrow() as db:
            if as_of is not None:
                return known_until(db, as_of).term_rarity(db, terms)
            return sparse.term_rarity(db, terms)

    def near_terms(self, word: str, *, as_of: int | None = None) -> list[str]:
        """Indexed terms that a misspelt word may have meant: they begin alike, and are about as
        long. `as_of` as for `term_rarity`."""
        with self.readers.borrow() as db:
            if as_of is not None:
                return known_until(db, as_of).near_terms(db, word)
            return sparse.near_terms(db, word)

    def _keep_languages(self, ranking: Ranking, languages: Collection[Language]) -> Ranking:
        # Afterwards and without searching on: vectors of two encoders are nearly at right angles,
        # so that what is dropped stands at the end.
        kept = (
            "SELECT number FROM passage WHERE number IN (SELECT value FROM json_each(?))"
            " AND language IN (SELECT value FROM json_each(?))"
        )
        asked = json.dumps([number for number, _ in ranking]), json.dumps([*languages])
        with self.readers.borrow() as db:
            numbers = {number for (number,) in db.execute(kept, asked)}
        return [pair for pair in ranking if pair[0] in numbers]

    def _score_passages(self, ranking: Ranking, within: PassageFilter) -> list[Scored]:
        passages = self.get_passages(number for number, _ in ranking)
        scored = [(passages[number], score) for number, score in ranking if number in passages]
        return order_scored(scored, within)


def order_scored(scored: Iterable[Scored], within: PassageFilter) -> list[Scored]:
    """The best first, equal ones by id, retracted ones behind all others. An index of before a
    retraction still finds it: where it was not asked for it goes."""
    kept = (pair for pair in scored if within.retracted or not pair[0].locator.is_retracted)
    return sorted(kept, key=lambda pair: (pair[0].locator.is_retracted, -pair[1], pair[0].id))


def _nearest_ids(db: sqlite3.Connection, id: str) -> str:
    """What is there instead: the range of the same document, or the ids beside it."""
    sources = db.execute("SELECT DISTINCT source FROM document ORDER BY source").fetchall()
    if sources and ((source := id.partition(":")[0]),) not in sources:
        return f"there is no source {source!r}, but {', '.join(name for (name,) in sources)}"
    document, _, _ = id.partition("#")
    # "$" comes after "#": between the two lie the passages of this document.
    wanted = "SELECT id FROM passage WHERE id >= ? AND id < ? ORDER BY n"
    if range_of := db.execute(wanted, (f"{document}#", f"{document}$")).fetchall():
        return f"the document has {len(range_of)}, {range_of[0][0]} to {range_of[-1][0]}"
    beside = db.execute(
        "SELECT * FROM (SELECT id FROM passage WHERE id < ? ORDER BY id DESC LIMIT 1)"
        " UNION ALL SELECT * FROM (SELECT id FROM passage WHERE id > ? ORDER BY id LIMIT 1)",
        (id, id),
    ).fetchall()
    named = " and ".join(id for (id,) in beside)
    return f"the nearest are {named}" if beside else "the knowledge base is empty"

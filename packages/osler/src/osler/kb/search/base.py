"""The interface between a knowledge base and its search backends; exact search by vectors.

100,000 vectors of 384 numbers are 150 MB and are searched in about 6 ms. Beyond that
the embedded engine (`osler.kb.search.edge`) is faster.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from osler.errors import KnowledgeBaseError
from osler.kb.store.passages import Scope, in_scope
from osler.sources.catalogue import EMR
from osler.types import Language

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class VectorMatrix:
    """Row `i` of `matrix` is the vector of passage `numbers[i]`, in order of passage id."""

    numbers: npt.NDArray[np.int64]
    matrix: Floats
    runs: tuple[tuple[str, int, int], ...]
    """Source, first row, last row + 1. An id begins with its source, so a source is one run."""
    patches: Mapping[int, Floats] = field(default_factory=dict)
    """Vectors of rows that were corrected since `matrix` was read; zeros for one without."""

    def replace_rows(
        self, corrections: Sequence[tuple[int, int]], new: Mapping[int, Floats]
    ) -> VectorMatrix | None:
        """The matrix after corrections, each a number before and after, in order; `new` are the
        vectors of those after. `None` where a passage had no vector before: it has no row."""
        numbers, patches = self.numbers.copy(), dict(self.patches)
        for before, after in corrections:
            (rows,) = np.nonzero(numbers == before)
            if not len(rows):
                return None
            numbers[rows[0]] = after
            nothing = np.zeros(self.matrix.shape[1], np.float32)
            patches[int(rows[0])] = new.get(after, nothing)
        return VectorMatrix(numbers, self.matrix, self.runs, patches)

    def score_rows(self, query: Floats, scope: Scope) -> Floats:
        """Returns each row's inner product with the query; zero outside the sources of `scope`."""
        scores = np.zeros(len(self.numbers), np.float32)
        for source, start, end in self.runs:
            if in_scope(source, scope):
                # Row by row in one thread: as fast as a matrix product, the same whatever the
                # number of threads, and without its tail of 10 ms where cores are shared.
                np.vecdot(self.matrix[start:end], query, out=scores[start:end])
                for row, vector in self.patches.items():
                    if start <= row < end:
                        scores[row] = np.vecdot(vector, query)
        return scores

    def best_rows(self, scores: Floats, k: int) -> list[tuple[int, float]]:
        """Ranks passage numbers by score, best first; equal ones by passage id.

        Products of zero or less are no likeness and are left out.
        """
        (rows,) = np.nonzero(scores >= _kth_best(scores, k))
        rows = rows[np.argsort(-scores[rows], kind="stable")][:k]
        return [(int(self.numbers[row]), float(scores[row])) for row in rows if scores[row] > 0]


def _kth_best(scores: Floats, k: int) -> float:
    if len(scores) <= k:
        return 0.0
    return max(0.0, float(np.partition(scores, -k)[-k]))


def load_vectors(db: sqlite3.Connection, dimension: int) -> VectorMatrix:
    """Reads all vectors. Raises `KnowledgeBaseError` for one of another length."""
    (count,) = db.execute("SELECT count(*) FROM vector").fetchone()
    numbers = np.zeros(count, np.int64)
    matrix = np.zeros((count, dimension), np.float32)
    sources: list[str] = []
    rows = db.execute(
        "SELECT vector.passage, source, value FROM passage JOIN vector"
        " ON vector.passage = passage.number ORDER BY passage.id"
    )
    for i, (number, source, value) in enumerate(rows):
        if len(value) != 4 * dimension:
            raise KnowledgeBaseError(
                f"a vector has {len(value)} bytes instead of {4 * dimension}",
                fix="run `osler kb build --rebuild`",
            )
        numbers[i], matrix[i] = number, np.frombuffer(value, np.float32)
        sources.append(source)
    return VectorMatrix(numbers, matrix, source_runs(sources))


def read_vectors(db: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Floats]:
    """Reads the vectors of passages, as far as they are encoded."""
    wanted = "SELECT passage, value FROM vector WHERE passage IN (SELECT value FROM json_each(?))"
    rows = db.execute(wanted, (json.dumps(list(numbers)),))
    return {number: np.frombuffer(value, np.float32) for number, value in rows}


def source_runs(sources: Iterable[str]) -> tuple[tuple[str, int, int], ...]:
    """Finds where each source begins and ends in rows that are sorted by source."""
    ends = {source: row for row, source in enumerate(sources, 1)}
    starts = (0, *ends.values())
    return tuple(
        (source, start, end) for (source, end), start in zip(ends.items(), starts, strict=False)
    )


def unit_problem(vectors: Floats, shape: tuple[int, int]) -> str:
    """Describes what is wrong with new or stored vectors; empty when nothing is."""
    if vectors.shape != shape:
        return f"of shape {vectors.shape} instead of {shape}"
    if not np.isfinite(vectors).all():
        return "not finite"
    norms = np.linalg.norm(vectors, axis=1)
    if not np.allclose(norms, 1.0, atol=1e-3):
        return f"not of length 1 but {norms[np.abs(norms - 1).argmax()]:.3f}"
    return ""


Kind = Literal["auto", "sqlite", "edge", "qdrant"]

Ranking = list[tuple[int, float]]
"""Passage numbers with their scores, best first; scores compare within one ranking only."""

TIES = 32
"""Passages read beyond the last one asked for, so that equal ones are cut by their id."""


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """Settings that choose the search backend."""

    kind: Kind = "auto"
    """auto: the server where `url` is set, else the embedded engine where the last build
    made its index, else the index in the SQLite file."""
    url: str = ""
    """The Qdrant server, "http://HOST:6333"."""
    key: str | None = None
    """Its API key."""
    name: str = "osler"
    """Prefix of its collections' names."""


DAY = "day"
"""Payload field of documents of which more than the year is known; compared with the first and the
last day, and without it the year with the two years behind them."""
LAST_OF_YEAR = 1231


@dataclass(frozen=True, slots=True)
class PassageFilter:
    """Conditions on the passages that may be found; each condition that is set must hold."""

    sources: Scope = None
    years: tuple[int | None, int | None] = (None, None)
    """First and last, both included; with either set, a document without a year is out."""
    days: tuple[int | None, int | None] = (None, None)
    """First and last, as 20240131, where they are finer than years. A document of which the month
    or the year alone is known counts as of its last day."""
    languages: tuple[Language, ...] = ()
    kinds: tuple[str, ...] = ()
    """Publication or study types, any of them, whatever their case."""
    retracted: bool = False
    """Lets retracted documents through too."""
    trust: int = 1
    """At least this much, 1 to 5 (`osler.sources.catalogue.trust_of`)."""
    as_of: int | None = None
    """Words are weighed as if no document had come after this day, as 20240131; `years` and
    `days` leave them out."""

    @property
    def folded_kinds(self) -> tuple[str, ...]:
        """Its kinds as the indexes hold them."""
        folded = map(fold_kind, self.kinds)
        return tuple(name for kind in folded for name in KIND_NAMES.get(kind, (kind,)))

    def conditions(self) -> dict[str, list[Any]]:
        """Returns the values of each payload field, or two bounds of those in `RANGES`, or
        those of `DAY`.

        Sources and retraction are left out: shelves and collections take care of them.
        """
        conditions: dict[str, list[Any]] = {
            "language": list(self.languages),
            "kind": list(self.folded_kinds),
            "year": [] if self.years == (None, None) else list(self.years),
            DAY: [] if self.days == (None, None) else [*self.days, *self.years_of_days()],
            "trust": [self.trust, None] if self.trust > 1 else [],
        }
        return {field: values for field, values in conditions.items() if values}

    def years_of_days(self) -> tuple[int | None, int | None]:
        """The years that count as within `days`, where no more is known of a document."""
        first, last = self.days
        whole = last is None or last % 10_000 >= LAST_OF_YEAR
        return first and first // 10_000, last and last // 10_000 - (not whole)

    def without_sources(self) -> PassageFilter:
        return replace(self, sources=None)


KIND_NAMES: dict[str, tuple[str, ...]] = {
    "guideline": ("guideline", "practice guideline"),
    "rct": ("randomized controlled trial",),
    "trial": ("clinical trial", "randomized controlled trial", "controlled clinical trial"),
    "review": ("review", "systematic review"),
    "systematic-review": ("systematic review",),
    "meta-analysis": ("meta-analysis",),
    "case": ("case reports",),
}
"""Short names of publication types, and what PubMed calls them, folded."""

RANGES = ("year", "trust")
"""Payload fields that are compared with a lower and an upper bound, None for open."""

EVERYTHING = PassageFilter()
"""All but patients' records and what was retracted."""


def fold_kind(kind: str) -> str:
    """Normalises a publication type for comparison."""
    return " ".join(kind.split()).casefold()


TEXTS, PATIENTS, RETRACTED = "texts", "patients", "retracted"
"""The shelves of an index that is not SQLite's. What is hardly ever wanted stands apart, so
that a search of everything else needs no condition: excluding 16 of 100,000 passages by a
condition took five times as long as the search itself."""


def shelves_for(within: PassageFilter) -> tuple[str, ...]:
    """Lists the shelves that can hold what `within` lets through."""
    names = within.sources
    shelves = [TEXTS] if names is None or set(names) - {EMR} else []
    if names is not None and EMR in names:
        shelves.append(PATIENTS)
    if shelves and within.retracted:
        shelves.append(RETRACTED)
    return tuple(shelves)


class SearchBackend(Protocol):
    """Finds passage numbers by words and by vectors. Any number of threads may ask.

    Passages added or taken out since the last build may be missing or, as numbers that no
    longer exist, too many. Equal searches give equal rankings.
    """

    def by_words(self, terms: Sequence[str], *, k: int, within: PassageFilter) -> Ranking:
        """The best by BM25 with any of `terms` (`osler.text.split_words`)."""

    def by_vector(self, query: Floats, *, k: int, within: PassageFilter) -> Ranking:
        """The best by inner product, none at zero or below."""

    def by_both(
        self, terms: Sequence[str], query: Floats, *, k: int, within: PassageFilter
    ) -> tuple[Ranking, Ranking]:
        """`by_vector` and `by_words` of one request."""

    def close(self) -> None: ...


def fetch_allowed(
    fetch: Callable[[int], Ranking], allowed: Callable[[Ranking], Ranking], k: int
) -> Ranking:
    """Fetches until at least `k` allowed passages are found, or no more are left.

    `fetch` gives the n best of all; it is asked for more until enough are allowed.
    """
    n = k
    while True:
        ranking = fetch(n)
        kept = allowed(ranking)
        if len(kept) >= k or len(ranking) < n:
            return kept
        n *= 4


Key = TypeVar("Key", int, str)


def merge_rankings(rankings: Sequence[list[tuple[Key, float]]], k: int) -> list[tuple[Key, float]]:
    """Merges rankings whose scores compare; equal ones in order of their keys."""
    if len(rankings) == 1:
        return rankings[0]
    together = [pair for ranking in rankings for pair in ranking]
    return sorted(together, key=lambda pair: (-pair[1], pair[0]))[:k]

"""The matrix of all vectors of a knowledge base, searched exactly.

100,000 vectors of 384 numbers are 150 MB and are searched in about 6 ms. Beyond that
the embedded engine (`osler.kb.search.edge`) is faster.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from osler.errors import KnowledgeBaseError
from osler.kb.store.passages import Scope, in_scope

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

"""Records of patients that a record system opened for one user: in memory, for as long as it does.

A record is named by an id that nobody guesses, and found by the caller whose scope names it
(`access.patients`) and by no other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from osler.retrieve.relevance import OverlapRelevance
from osler.types import Hit, Passage

FINDER = "open-record"


@dataclass
class OpenRecords:
    """By document id. Any thread may call it."""

    _held: dict[str, tuple[Passage, ...]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hold(self, id: str, passages: Sequence[Passage]) -> None:
        with self._lock:
            self._held[id] = tuple(passages)

    def drop(self, id: str) -> None:
        with self._lock:
            self._held.pop(id, None)

    def list_passages(self, ids: Iterable[str]) -> tuple[Passage, ...]:
        """Of the records among these that are held."""
        with self._lock:
            return tuple(one for id in ids for one in self._held.get(id, ()))

    def find_passage(self, id: str) -> Passage | None:
        found = self.list_passages([id.partition("#")[0]])
        return next((one for one in found if one.id == id), None)


# One for the process: which record a run may read, its settings say.
OPEN_RECORDS = OpenRecords()


@dataclass(frozen=True)
class OpenRecordRetriever:
    """Searches the open records of these ids by words; a record is short: all of it is ranked."""

    ids: tuple[str, ...]

    async def search(self, query: str, *, k: int) -> list[Hit]:
        held = OPEN_RECORDS.list_passages(self.ids)
        scores = await OverlapRelevance().relevance(query, [one.text for one in held])
        order = sorted(range(len(held)), key=lambda n: (-scores[n], n))[:k]
        return [Hit(held[n], scores[n], rank, query, FINDER) for rank, n in enumerate(order, 1)]

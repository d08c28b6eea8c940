"""Notes of a sample's searches: what a trace leaves out, as equal runs have equal traces.

The seconds of a search, and title, code and address of what it found. A watched retriever tells
them to the sample that is being tried in its task.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from osler.types import Hit, Retriever

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class RecordedDocument:
    """What is known of the document that a passage is of; unknown parts are empty."""

    title: str = ""
    code: str = ""
    url: str = ""


@dataclass
class SearchNotes:
    """Notes of the searches of one sample."""

    clock: Clock = time.perf_counter
    documents: dict[str, RecordedDocument] = field(default_factory=dict)
    """By passage id."""
    seconds: float = 0.0
    """Wall clock during which at least one search was under way."""
    _running: int = 0
    _since: float = 0.0

    @contextmanager
    def time_search(self) -> Iterator[None]:
        """Times a search; searches at the same time count once."""
        if not self._running:
            self._since = self.clock()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self.seconds += self.clock() - self._since

    def note_hits(self, hits: list[Hit]) -> None:
        for hit in hits:
            locator = hit.passage.locator
            self.documents[hit.passage.id] = RecordedDocument(
                hit.passage.title, locator.code, locator.url
            )


_NOTES: ContextVar[SearchNotes | None] = ContextVar("notes of the sample", default=None)


@contextmanager
def note_searches() -> Iterator[SearchNotes]:
    """Gives the notes of the searches that this task and the tasks that it starts make."""
    notes = SearchNotes()
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


@dataclass(frozen=True)
class WatchedRetriever:
    """A retriever whose searches are noted; outside `note_searches` it is the retriever itself."""

    retriever: Retriever

    async def search(self, query: str, *, k: int) -> list[Hit]:
        notes = _NOTES.get()
        if notes is None:
            return await self.retriever.search(query, k=k)
        with notes.time_search():
            hits = await self.retriever.search(query, k=k)
        notes.note_hits(hits)
        return hits

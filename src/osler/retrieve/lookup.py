"""A search that a run can see: an event before, an event after, and none when it is down."""

from __future__ import annotations

from dataclasses import dataclass

from osler.errors import SourceUnavailable
from osler.trace import Retrieved, Run, Searched
from osler.types import Hit, Retriever, Usage


@dataclass(frozen=True, slots=True)
class LookupResult:
    hits: tuple[Hit, ...]
    failed: str = ""
    """Why the source could not be searched; then `hits` is empty for that reason alone."""


async def look_up(
    retriever: Retriever, query: str, run: Run, *, k: int, sources: tuple[str, ...] = ()
) -> LookupResult:
    """Searches, and says so in the run. A source that is down is told, not raised.

    Raises `BudgetExceeded` where the run's budget has no room for a search.
    """
    run.require_budget("search")
    run.emit(Searched(query, k, sources))
    run.spend(Usage(searches=1))
    try:
        hits = tuple(await retriever.search(query, k=k))
    except SourceUnavailable as error:
        run.emit(Retrieved(query, (), (error.message,)))
        return LookupResult((), error.message)
    run.emit(Retrieved.of(query, hits))
    return LookupResult(hits)

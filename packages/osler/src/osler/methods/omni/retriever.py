"""The planned retriever: sends each source its queries, all at once (Omni-RAG §5.1.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from types import MappingProxyType

from osler.errors import SourceUnavailable
from osler.methods.omni.plan import Query, SourcePlan
from osler.retrieve import LookupResult
from osler.retrieve.pooled import PooledOrder
from osler.sources.catalogue import GRAPH
from osler.trace import BudgetExceeded, Noted, Retrieved, Run, Searched
from osler.trace.ordered import gather
from osler.types import Hit, Retriever, Usage

Found = Mapping[Query, LookupResult]
"""What each query found."""
_NOTHING: Found = MappingProxyType({})


@dataclass(frozen=True)
class PlannedRetriever:
    sources: Mapping[str, Retriever]
    """Retriever of each source, reranked where a reranker is configured: the first 20 in, 10
    out."""
    k: int = 10
    """Documents of one query; from the graph a definition and as many relations."""

    async def gather_results(
        self, plan: SourcePlan, run: Run, *, known: Found = _NOTHING
    ) -> dict[Query, LookupResult]:
        """The results of each query in plan order; queries in `known` are not repeated, unless
        they failed.

        All queries run concurrently; their events are emitted in plan order. A source that is down
        or missing says why in its `LookupResult`; the others go on. Queries beyond the run's
        budget are left out, and noted. Never raises `BudgetExceeded`.
        """
        asked = self._affordable_queries(
            [query for query in plan.queries if query not in known or known[query].failed], run
        )
        results = await gather([self._search_source(query) for query in asked])
        for query, result in zip(asked, results, strict=True):
            failed = (result.failed,) if result.failed else ()
            run.emit(Retrieved.of(query.wire, result.hits, failed))
        fresh = dict(zip(asked, results, strict=True))
        # In plan order, whether found now or before.
        every = {**known, **fresh}
        return {query: every[query] for query in plan.queries if query in every}

    def _affordable_queries(self, queries: Sequence[Query], run: Run) -> list[Query]:
        asked: list[Query] = []
        for query in queries:
            try:
                run.require_budget("search")
            except BudgetExceeded as spent:
                left = len(queries) - len(asked)
                run.emit(Noted(f"{left} of {len(queries)} queries were not asked: {spent}"))
                break
            run.emit(Searched(query.wire, self._wanted_hits(query), (query.source,)))
            run.spend(Usage(searches=1))
            asked.append(query)
        return asked

    def _wanted_hits(self, query: Query) -> int:
        return self.k + 1 if query.source == GRAPH else self.k

    async def _search_source(self, query: Query) -> LookupResult:
        retriever = self.sources.get(query.source)
        if retriever is None:
            there = ", ".join(self.sources) or "none"
            return LookupResult((), f"there is no source {query.source} (there are: {there})")
        try:
            return LookupResult(
                tuple(await retriever.search(query.wire, k=self._wanted_hits(query)))
            )
        except SourceUnavailable as error:
            return LookupResult((), error.message)


async def order_results(
    question: str,
    found: Found,
    per_source: int,
    order: PooledOrder | None,
) -> tuple[Hit, ...]:
    """The passages to read, `per_source` for each source that found any.

    In a single fused ranking they are the best of all, whichever source they are of: a bound for
    each would leave out what answers where one source has it all. In turns each source has its
    share. What one query alone has found keeps its order: there is nothing to merge, and its
    retriever has read more than words.
    """
    if order is None or sum(bool(result.hits) for result in found.values()) == 1:
        return interleave_hits(found, per_source)
    sources = {query.source for query, result in found.items() if result.hits}
    lists = [result.hits for result in found.values()]
    return await order.order_hits(question, lists, most=per_source * len(sources))


def interleave_hits(found: Found, per_source: int) -> tuple[Hit, ...]:
    """Interleaves results: the first of every query in plan order, then the second, and so on.

    Each passage occurs once and counts for the source whose query found it first; each source
    contributes at most `per_source`.
    """
    kept: dict[str, Hit] = {}
    counts: Counter[str] = Counter()
    columns = [[(query.source, hit) for hit in result.hits] for query, result in found.items()]
    # Row by row: the best hit of every query before any second-best.
    for row in zip_longest(*columns):
        for source, hit in filter(None, row):
            if hit.passage.id not in kept and counts[source] < per_source:
                kept[hit.passage.id] = hit
                counts[source] += 1
    return tuple(kept.values())


def missing_sources(found: Found) -> tuple[str, ...]:
    """The sources that could not be searched, each with its reason, without repeats."""
    return tuple(
        dict.fromkeys(
            f"{query.source}: {each.failed}" for query, each in found.items() if each.failed
        )
    )

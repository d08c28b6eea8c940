"""Retrieval: from a query to ranked passages.

This module has the shared parts: the words of queries, the making and fusing of rankings, the
errors of sources, and the search within a run. The retrievers are in modules of their own:

| Module | Finds |
|---|---|
| `hybrid` | passages by words (`LexicalRetriever`), and by words and meaning (`HybridRetriever`) |
| `indexed` | passages by the extracted indexes and the graph of names |
| `graph` | concepts of a text; definitions, relations and chains of the concept graph |
| `graph_communities` | communities and their summaries |
| `patients` | records of similar patients |
| `web` | passages of online services, and several retrievers as one |
| `pooled`, `rerankers`, `relevance` | the order of what others found |

`asked` and `naming` read queries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from osler.errors import KnowledgeBaseDamaged, KnowledgeBaseError, SourceUnavailable
from osler.text import is_cjk, split_words
from osler.trace import PassagesOrdered, Retrieved, Run, Searched
from osler.types import Hit, Passage, Retriever, Usage

if TYPE_CHECKING:
    from osler.kb.base import KnowledgeBase
    from osler.kb.store.passages import Scope

# "who" is none of them: in medicine it is also the WHO. Nor is "not".
_FUNCTION_WORDS = (
    "a about after all also am an and any are as at be because been before being between both but"
    " by can could did do does doing during each for from had has have having he her here him his"
    " how i if in into is it its itself me more most my of on once only or other our ours out over"
    " own s same she should so some such than that the their them then there these they this"
    " those through to too under until up very was we were what when where which while why will"
    " with would you your"
)
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
# Characters that hardly ever occur inside a content word.
_PARTICLES = frozenset("的了吗呢吧啊么什怎哪是")
# Function characters that also occur inside words, unlike particles.
STOP_CHARACTERS = _PARTICLES | frozenset(
    "在和与或些个有就也都而及其被把对为以于这那之你我他她它们请问如何"
)


def content_terms(text: str) -> list[str]:
    """Distinct content words in order of appearance; possibly none.

    A pair of Chinese characters is dropped when both are function characters ("如何") or one is a
    particle ("病的"): such a pair is no word, and rare enough to distort the ranking.
    """
    return list(dict.fromkeys(word for word in split_words(text) if not _is_empty(word)))


def _is_empty(word: str) -> bool:
    if word in STOP_WORDS or STOP_CHARACTERS.issuperset(word):
        return True
    return not _PARTICLES.isdisjoint(word)


def term_weight(term: str) -> float:
    """Weight of a term: a single Chinese character counts half, since it recurs in one or two
    pairs."""
    return 0.5 if len(term) == 1 and is_cjk(term) else 1.0


class Ordered(Protocol):
    """A hashable value with an order, which breaks ties between equal sums."""

    def __lt__(self, other: Any, /) -> bool: ...
    def __hash__(self) -> int: ...


Item = TypeVar("Item", bound=Ordered)


def rrf(
    rankings: Sequence[Sequence[Item]], *, weights: Sequence[float] = (), k: float = 10.0
) -> list[tuple[Item, float]]:
    """Reciprocal Rank Fusion (Cormack, Clarke and Büttcher, SIGIR 2009).

    Items by the sum of `weight / (k + rank)` over the rankings that have them, best first. Ranks
    count from 1; of repeated items in one ranking the better rank counts; ties are in the order of
    the items themselves. `weights` are all 1 by default. The paper has k = 60; 10 did better on
    2,000 medical questions, most of which have one right passage.
    """
    shares: dict[Item, list[float]] = defaultdict(list)
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, item in enumerate(dict.fromkeys(ranking), 1):
            shares[item].append(weight / (k + rank))
    # fsum: the sum must not depend on the order of the rankings, not even in its last bit.
    sums = [(item, fsum(parts)) for item, parts in shares.items()]
    return sorted(sums, key=lambda pair: (-pair[1], pair[0]))


def rank_hits(scored: Iterable[tuple[Passage, float]], query: str, finder: str) -> list[Hit]:
    """Makes hits of scored passages, ranked from 1 in the order given."""
    return [
        Hit(passage, score, rank, query, finder) for rank, (passage, score) in enumerate(scored, 1)
    ]


@contextmanager
def search_errors(what: str = "the graph") -> Iterator[None]:
    """Turns failures of the knowledge base or the graph into `SourceUnavailable`, but for damage:
    without what is damaged there would be another answer."""
    try:
        yield
    except KnowledgeBaseDamaged:
        raise
    except KnowledgeBaseError as error:
        message = f"{what} cannot be searched: {error.message}"
        raise SourceUnavailable(message, fix=error.fix) from error
    except OSError as error:
        raise SourceUnavailable(f"{what} cannot be searched: {error}") from error


@contextmanager
def source_errors(kb: KnowledgeBase, scope: Scope) -> Iterator[None]:
    """Turns missing sources and failing searches into `SourceUnavailable`."""
    names = "the knowledge base" if scope is None else f"source {', '.join(scope)}"
    with search_errors(names):
        if lacking := kb.missing_sources(scope or ()):
            raise SourceUnavailable(
                f"the knowledge base has no source {', '.join(lacking)}",
                fix=f"run `osler kb add PATH --source {lacking[0]}`",
            )
        yield


@dataclass(frozen=True, slots=True)
class LookupResult:
    """Hits of one search, or why there are none."""

    hits: tuple[Hit, ...]
    failed: str = ""
    """Reason why the source could not be searched; `hits` is then empty."""


async def look_up(
    retriever: Retriever, query: str, run: Run, *, k: int, sources: tuple[str, ...] = ()
) -> LookupResult:
    """Searches and emits the events. A source that is down is reported, not raised.

    Raises `BudgetExceeded` when the budget allows no further search.
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


def tell_order(hits: Sequence[Hit], run: Run) -> None:
    """Says which of the passages that were found are read, in their order."""
    if hits:
        run.emit(PassagesOrdered(tuple(hit.passage.id for hit in hits)))

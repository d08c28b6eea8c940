"""The interface between a knowledge base and its search backends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from osler.kb.store.passages import Scope
from osler.sources.catalogue import EMR
from osler.types import Language

if TYPE_CHECKING:
    from osler.kb.search.vectors import Floats

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


@dataclass(frozen=True, slots=True)
class PassageFilter:
    """Conditions on the passages that may be found; each condition that is set must hold."""

    sources: Scope = None
    years: tuple[int | None, int | None] = (None, None)
    """First and last, both included; with either set, a document without a year is out."""
    languages: tuple[Language, ...] = ()
    kinds: tuple[str, ...] = ()
    """Publication or study types, any of them, whatever their case."""
    retracted: bool = False
    """Lets retracted documents through too."""
    trust: int = 1
    """At least this much, 1 to 5 (`osler.sources.catalogue.trust_of`)."""

    @property
    def folded_kinds(self) -> tuple[str, ...]:
        """Its kinds as the indexes hold them."""
        return tuple(map(fold_kind, self.kinds))

    def conditions(self) -> dict[str, list[Any]]:
        """Returns the values of each payload field, or two bounds of those in `RANGES`.

        Sources and retraction are left out: shelves and collections take care of them.
        """
        conditions: dict[str, list[Any]] = {
            "language": list(self.languages),
            "kind": list(self.folded_kinds),
            "year": [] if self.years == (None, None) else list(self.years),
            "trust": [self.trust, None] if self.trust > 1 else [],
        }
        return {field: values for field, values in conditions.items() if values}

    def without_sources(self) -> PassageFilter:
        return PassageFilter(
            None, self.years, self.languages, self.kinds, self.retracted, self.trust
        )


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

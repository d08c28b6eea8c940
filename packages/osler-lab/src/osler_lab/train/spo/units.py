"""Units in which a judge reads documents, and the verdicts on queries that follow.

| Unit | Shown at once | A query is positive when |
|---|---|---|
| set | what a query found, as in the paper | its set supports the answer |
| document | one document | one of its documents does |
| list | up to ten documents, numbered | one of its documents does |

Whatever the unit, nothing is judged twice. By document and by list those come first that decide
most queries, and a query that is positive needs no further document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Literal

from osler_lab.train.spo.explore import SearchedQuery

Unit = Literal["set", "document", "list"]
LIST = 10
"""Documents of a list."""

Said = bool | None
"""Whether it supports the gold answer; `None` = it cannot be told."""
Decide = Callable[[tuple[str, ...]], Awaitable[Said]]
"""Decides on these passages together."""
DecideEach = Callable[[tuple[str, ...]], Awaitable[Sequence[Said]]]
"""Decides on each of these passages, in order."""


def better_half(found: Sequence[str]) -> tuple[str, ...]:
    """The better half, rounded up: the latter is left out while judging (§5.1.2)."""
    # §5.1.2 leaves out "the latter half"; of an odd number the middle one stays.
    return tuple(found[: (len(found) + 1) // 2])


async def by_set(queries: Sequence[SearchedQuery], decide: Decide) -> tuple[list[Said], int]:
    """Judges each query by all it found; also returns how often the judge was asked."""
    # By set, not by order: the verdict is about the documents together.
    known: dict[frozenset[str], Said] = {}
    for query in queries:
        read = better_half(query.found)
        if frozenset(read) not in known:
            known[frozenset(read)] = await decide(read) if read else False
    # An empty search is negative without a call.
    asked = len(known) - (frozenset() in known)
    return [known[frozenset(better_half(query.found))] for query in queries], asked


async def by_document(queries: Sequence[SearchedQuery], decide: Decide) -> tuple[list[Said], int]:
    """Judges like `by_list`, one document at a time."""

    async def verdicts_of(read: tuple[str, ...]) -> list[Said]:
        return [await decide(read)]

    return await by_list(queries, verdicts_of, 1)


async def by_list(
    queries: Sequence[SearchedQuery], decide: DecideEach, size: int = LIST
) -> tuple[list[Said], int]:
    """Judges documents, `size` at a time, while they may still decide a query.

    A query is positive when one of its documents is, negative when none is, and undecided
    (`None`) when none is and one of them could not be read.
    """
    read = [better_half(query.found) for query in queries]
    known: dict[str, Said] = {}
    asked = 0
    while True:
        # A query with one supporting document is decided; its other documents need no call.
        undecided = [found for found in read if not any(known.get(id) for id in found)]
        shown = _most_telling(undecided, known, size)
        if not shown:
            return [_any_yes([known.get(id, False) for id in found]) for found in read], asked
        known.update(zip(shown, await decide(shown), strict=True))
        asked += 1


def _most_telling(
    read: Iterable[Sequence[str]], known: Mapping[str, Said], size: int
) -> tuple[str, ...]:
    """Documents that most undecided queries found; of equals those that stand highest."""
    lists = list(read)
    # Greedy set cover: each call decides as many queries as one list can.
    counts = Counter(id for found in lists for id in found if id not in known)
    place = {id: min(f.index(id) for f in lists if id in f) for id in counts}
    return tuple(sorted(counts, key=lambda id: (-counts[id], place[id], id))[:size])


def _any_yes(said: Sequence[Said]) -> Said:
    if any(said):
        return True
    return None if None in said else False

"""Reciprocal Rank Fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import fsum
from typing import Any, Protocol, TypeVar


class Ordered(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...
    def __hash__(self) -> int: ...


Item = TypeVar("Item", bound=Ordered)


def rrf(
    rankings: Sequence[Sequence[Item]], *, weights: Sequence[float] = (), k: float = 10.0
) -> list[tuple[Item, float]]:
    """Items by the sum of `weight / (k + rank)` over the rankings that hold them, best first.

    Ranks count from 1; of an item twice in one ranking the better rank counts; equal
    sums stand in the order of the items themselves. `weights` are all 1 by default.
    The paper has k = 60; 10 did better on 2,000 medical questions, of which most have
    one right passage.
    """
    shares: dict[Item, list[float]] = defaultdict(list)
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, item in enumerate(dict.fromkeys(ranking), 1):
            shares[item].append(weight / (k + rank))
    # fsum: the sum must not depend on the order of the rankings, not in its last bit.
    sums = [(item, fsum(parts)) for item, parts in shares.items()]
    return sorted(sums, key=lambda pair: (-pair[1], pair[0]))

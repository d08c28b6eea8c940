"""Texts as windows of one size, and windows of several sources mixed by weights. Pure.

A source's texts stand in one row, an end after each, and the row is cut into windows. A window
begins with the token that the one before ended with, which is read and not learnt: so every
token of every text, and every end, is learnt exactly once.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload

from osler_lab.train.tune.encode import EncodedText


@dataclass(frozen=True, slots=True)
class PackedWindows:
    """Windows of one source: four bytes a token; a window is made when it is asked for."""

    name: str
    row: array[int]
    """An end, then every text with its end."""
    size: int
    """Tokens of a window, at least 2."""

    def __len__(self) -> int:
        # Neighbouring windows overlap by one token.
        return math.ceil((len(self.row) - 1) / (self.size - 1))

    def __getitem__(self, place: int) -> EncodedText:
        if not 0 <= place < len(self):
            raise IndexError(place)
        begin = place * (self.size - 1)
        tokens = tuple(self.row[begin : begin + self.size])
        return EncodedText(f"{self.name}.{place}", tokens, (False, *[True] * (len(tokens) - 1)))


def pack_windows(
    name: str, texts: Iterable[Sequence[int]], *, end: int, size: int
) -> PackedWindows:
    """The texts, as tokens and in this order, as windows of `size`; only the last is shorter."""
    # Begins with an end, so that the first token of the first text is learnt, too.
    row = array("I", [end])
    for text in texts:
        row.extend(text)
        row.append(end)
    return PackedWindows(name, row, size)


def mix_windows(
    counts: Sequence[int], weights: Sequence[float] | None, seed: int
) -> list[tuple[int, int]]:
    """Chooses the windows of an epoch: (source, window) pairs, as many as there are windows.

    Without weights every window once. With them each source has its weight's share of the
    epoch, to within one window: of a source that is asked for more than it has, all windows are
    taken as often, or once more; of one that is asked for less, some are drawn by the seed.
    """
    if weights is None:
        return [(source, n) for source, count in enumerate(counts) for n in range(count)]
    places: list[tuple[int, int]] = []
    for source, (count, wanted) in enumerate(
        zip(counts, deal_quotas(counts, weights), strict=True)
    ):
        rounds, rest = divmod(wanted, count)
        drawn = random.Random(f"{seed}/{source}").sample(range(count), rest)
        places += [(source, n) for n in range(count) for _ in range(rounds)]
        places += [(source, n) for n in sorted(drawn)]
    return places


def deal_quotas(counts: Sequence[int], weights: Sequence[float]) -> list[int]:
    """The sum of the counts, dealt out by the weights: the largest remainders get the rest."""
    total = sum(counts)
    exact = [total * weight / sum(weights) for weight in weights]
    dealt = [int(share) for share in exact]
    # Largest remainder (Hamilton); of equal remainders the first source.
    by_rest = sorted(range(len(exact)), key=lambda n: (dealt[n] - exact[n], n))
    for source in by_rest[: total - sum(dealt)]:
        dealt[source] += 1
    return dealt


@dataclass(frozen=True, slots=True)
class MixedWindows(Sequence[EncodedText]):
    """Windows of all sources as one sequence of samples."""

    sources: tuple[PackedWindows, ...]
    places: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, place: int) -> EncodedText: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[EncodedText]: ...
    def __getitem__(self, place: int | slice) -> EncodedText | Sequence[EncodedText]:
        if isinstance(place, slice):
            return MixedWindows(self.sources, self.places[place])
        source, window = self.places[place]
        return self.sources[source][window]

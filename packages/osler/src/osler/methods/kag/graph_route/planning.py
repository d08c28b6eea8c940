"""A question as queries over the graph, the likeliest first.

Every chain of one or two relations that the kinds of concepts allow, and every way to join the
chains of two concepts, has the share that the network of pieces gives it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

from osler.methods.kag.graph_route.pieces import HELD, NONE, OPERATIONS, Shares
from osler.methods.kag.graph_route.queries import GraphQuery, Hop
from osler.methods.kag.graph_route.reading import NamedStart, QuestionReading
from osler.methods.kag.graph_route.vocabulary import name_hops, read_vocabulary, step_kinds

_COMBINED = 6
"""Chains of a concept that are joined with those of another."""
_TRIED = 24
"""Queries that are looked up."""
_JOINT = OPERATIONS[3:]
_COUNTED = ("intersection", "union", "difference")

Chain = tuple[float, tuple[str, ...]]
"""The logarithm of its share, and its hops as `name_hops` has them."""


def plan_queries(reading: QuestionReading, shares: Sequence[Shares]) -> list[GraphQuery]:
    """The likeliest queries of a question of one or two concepts, with what the network says of
    each."""
    planner = _Planner(reading, shares)
    found = planner.single() if len(reading.starts) == 1 else planner.paired()
    return nlargest(_TRIED, found, key=lambda query: query.share)


@dataclass(frozen=True)
class _Planner:
    reading: QuestionReading
    shares: Sequence[Shares]

    def mean(self, group: str, end: object) -> float:
        return sum(one[group][end] for one in self.shares) / len(self.shares)

    def single(self) -> Iterator[GraphQuery]:
        (start,) = self.reading.starts
        asked = self.mean("operation", "")
        for share, hops in self._chains(0):
            for counted in (False, True) if hops else ():
                told = asked + share + self.mean("counted", counted)
                yield GraphQuery((start,), (self._hops(start, hops),), "", (), counted, told)

    def paired(self) -> Iterator[GraphQuery]:
        chains = [nlargest(_COMBINED, self._chains(n), key=lambda one: one[0]) for n in (0, 1)]
        for one, other in itertools.product(*chains):
            ends = [self._end(n, hops) for n, (_, hops) in enumerate((one, other))]
            if not ends[0] & ends[1] or not (one[1] or other[1]):
                continue
            asked = self.mean("operation", "judgement")
            for permits in (True,) if self.reading.permits else (False, True):
                told = asked + (0.0 if self.reading.permits else self.mean("permits", permits))
                yield self._join((0, 1), (one, other), "judgement", told, permits=permits)
            if one[1] and other[1]:
                yield from self._joint(one, other)

    def _joint(self, one: Chain, other: Chain) -> Iterator[GraphQuery]:
        for operation in _JOINT:
            asked = self.mean("operation", operation)
            for counted in (False, True) if operation in _COUNTED else (False,):
                told = asked + self.mean("counted", counted)
                for order in ((0, 1), (1, 0)) if operation == "difference" else ((0, 1),):
                    kept, gone = (self.shares[n]["taken"] for n in order)
                    taken = kept[False] + gone[True] if operation == "difference" else 0.0
                    yield from self._continue(
                        self._join(order, (one, other), operation, told + taken, counted=counted)
                    )

    def _continue(self, query: GraphQuery) -> Iterator[GraphQuery]:
        """The query, and what is reached by one hop from its answer."""
        yield replace(query, share=query.share + self.mean("after", NONE))
        if query.counted or query.operation in ("most", "fewest"):
            return
        kinds = frozenset({query.kinds[-1]})
        for hop in name_hops():
            if reached := step_kinds(kinds, hop):
                after = (_make_hop(hop, reached, self.reading.asked),)
                yield replace(query, after=after, share=query.share + self.mean("after", hop))

    def _join(
        self,
        order: tuple[int, int],
        chains: Sequence[Chain],
        operation: str,
        told: float,
        *,
        counted: bool = False,
        permits: bool = False,
    ) -> GraphQuery:
        starts = tuple(self.reading.starts[n] for n in order)
        hops = [self._hops(self.reading.starts[n], chains[n][1]) for n in order]
        kinds = {one[-1].kind for one in hops if one}
        if len(kinds) > 1:  # what causes both X and Y: of the kind that one of them says
            kind = min(kinds - {"concept"})
            hops = [(*one[:-1], replace(one[-1], kind=kind)) if one else one for one in hops]
        share = told + sum(one for one, _ in chains)
        return GraphQuery(starts, tuple(hops), operation, (), counted, share, permits)

    def _chains(self, n: int) -> Iterator[Chain]:
        shares, kinds = self.shares[n], self.reading.starts[n].kinds
        ended = shares["second"][NONE]
        yield shares["first"][HELD] + ended, ()
        for first in name_hops():
            if reached := step_kinds(kinds, first):
                yield shares["first"][first] + ended, (first,)
                for second in name_hops():
                    if step_kinds(reached, second):
                        yield shares["first"][first] + shares["second"][second], (first, second)

    def _end(self, n: int, chain: Sequence[str]) -> frozenset[str]:
        kinds = self.reading.starts[n].kinds
        for hop in chain:
            kinds = step_kinds(kinds, hop)
        return kinds

    def _hops(self, start: NamedStart, chain: Sequence[str]) -> tuple[Hop, ...]:
        """The hops with the kind that each reaches: one from which the next goes on, or one that
        the question names."""
        kinds, hops = start.kinds, []
        for hop, following in itertools.zip_longest(chain, chain[1:]):
            kinds = step_kinds(kinds, hop)
            if following is not None:
                kinds = frozenset(one for one in kinds if step_kinds(frozenset({one}), following))
            hops.append(_make_hop(hop, kinds, frozenset() if following else self.reading.asked))
        return tuple(hops)


def _make_hop(hop: str, kinds: frozenset[str], named: frozenset[str]) -> Hop:
    wanted = kinds & named if len(kinds & named) == 1 else kinds
    kind = min(wanted) if len(wanted) == 1 else "concept"
    return Hop(read_vocabulary().relations[hop.rstrip("<>")], not hop.endswith("<"), kind)

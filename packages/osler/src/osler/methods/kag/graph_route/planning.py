"""A question as a plan over the graph: the likeliest way to put its words together.

Every way to assign the relations that a question names to the concepts that it names is tried;
those that fit the kinds of the vocabulary are scored by how near the words stand, and the best is
written as logical forms. Without one that uses every word of content there is no plan, and the
question is asked in another way.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nsmallest

from osler.methods.kag.graph_route.queries import GraphQuery, Hop
from osler.methods.kag.graph_route.reading import NamedStart, QuestionReading, RelationCue
from osler.methods.kag.graph_route.vocabulary import RelationKind, Vocabulary, read_vocabulary

MOST_STARTS = 3
MOST_CUES = 4
# Cost of a step that no word of the question names, in characters of distance.
_IMPLICIT = 25.0
# Cost of a kind that the question names and the plan does not pass through.
_UNUSED_KIND = 15.0
_UNUSED_CUE = 30.0
# Cost of two relations that are followed against the order of the words.
_TURNED = 8.0
# Other readings of a question that are tried where the likeliest finds nothing in the graph.
_NEAR = 40.0
# Cost of going back over the relation just followed: "the drugs for what X treats" is rarely meant.
_BACK = 30.0
# Cost of what acts as what is acted on; a Chinese yes or no is never told at that cost.
_AGAINST = 40.0
# Characters of " by the ".
_BY = 8
_MOST_TRIED = 8
# "Is there a drug that …" asks for it; what it is to be told is said by "which" or "list".
_EXISTS = re.compile(r"有没有|有无|是否有|^(?:is|are) there\b", re.IGNORECASE)
_EXCEPT = re.compile(r"除[了去开]?$")
_OTHERS = re.compile(r"还|其[他它]|别的|另")
_TWO_OTHERS = re.compile(r"\banother\b.*\bother\b", re.IGNORECASE | re.DOTALL)
_LISTED = re.compile(r"列|哪[些个种几]")
# Ways to follow cues from one concept that are combined with those of others: bounds the search.
_MOST_CHAINS = 8


def plan_queries(reading: QuestionReading) -> list[GraphQuery]:
    """The likeliest queries of a question, best first; none where none uses all that it says, or
    where it asks for two things."""
    if not 1 <= len(reading.starts) <= MOST_STARTS or len(reading.relations) > MOST_CUES:
        return []
    # "Another drug … the other drug", and what is denied twice: no words of a plan tell them apart.
    if _TWO_OTHERS.search(reading.text) or len(reading.negations) > 1:
        return []
    builder = _QueryBuilder(reading)
    if reading.asks > 1 or builder.operation == "refused":
        return []
    if reading.unexplained or (reading.qualifiers and builder.operation):
        return []
    ranked = nsmallest(_MOST_TRIED, builder.queries(), key=lambda query: query.cost)
    if builder.is_chinese and reading.asked is None and not builder.operation:
        ranked = _ask_any_kind(ranked)
    return [query for query in ranked if query.cost <= ranked[0].cost + _NEAR]


def _ask_any_kind(ranked: Sequence[GraphQuery]) -> list[GraphQuery]:
    """Queries that differ in the kind of what they end in, as one: "what causes X" is a drug or a
    disease."""
    merged: dict[GraphQuery, GraphQuery] = {}
    for query in ranked:
        *_, last = (*query.chains[0], *query.after)
        end = replace(last, kind="concept")
        is_after = bool(query.after)
        after = (*query.after[:-1], end) if is_after else ()
        chains = query.chains if is_after else ((*query.chains[0][:-1], end), *query.chains[1:])
        anyway = replace(query, after=after, chains=chains)
        merged[anyway] = anyway if anyway in merged else query
    return list(merged.values())


@dataclass
class _QueryBuilder:
    reading: QuestionReading

    def __post_init__(self) -> None:
        self.vocabulary: Vocabulary = read_vocabulary()
        self.is_chinese = self.reading.language == "zh"

    def queries(self) -> Iterator[GraphQuery]:
        reading = self.reading
        places = range(-1, len(reading.starts) + 1)  # -1: not used; n: after the operation
        for spread in itertools.product(places, repeat=len(reading.relations)):
            if spread.count(-1) <= 1 and self._may_drop(spread):
                yield from self._spread_queries(spread)

    def _may_drop(self, spread: Sequence[int]) -> bool:
        """Whether a relation that is not used is said twice; in English any may be."""
        cues = self.reading.relations
        if -1 not in spread or not self.is_chinese:
            return True
        gone = spread.index(-1)
        return any(n != gone and one.relations & cues[gone].relations for n, one in enumerate(cues))

    @cached_property
    def excepted(self) -> list[int]:
        """The starts that a Chinese question excepts: 除了X."""
        return [
            n
            for n, one in enumerate(self.reading.starts)
            if self.is_chinese and _EXCEPT.search(self.reading.text[: one.start])
        ]

    @cached_property
    def operation(self) -> str:
        operators, several = self.reading.operators, len(self.reading.starts) > 1
        if not several:  # all but what is named is no set of the graph's
            return "refused" if "not" in operators else ""
        text = self.reading.text
        if self.excepted:
            return "refused" if operators - {"count"} else "difference"
        if operators & {"more", "fewer"}:
            # "Are there more … than …?" wants a yes or no of the comparison: not asked of sets.
            compared = "most" if "more" in operators else "fewest"
            return compared if "whether" not in operators or "or" in operators else "refused"
        if "whether" in operators and not (_EXISTS.search(text) and _LISTED.search(text)):
            if "not" not in operators:
                return "judgement"
            if not _EXISTS.search(text) or self.reading.asked is None:
                return "refused"  # that something is not stated is no fact
        if "not" in operators:
            return "difference"
        return "union" if "or" in operators else "intersection"

    def _spread_queries(self, spread: Sequence[int]) -> Iterator[GraphQuery]:
        """Queries in which cue i belongs to start `spread[i]`; a start without one takes the
        nearest start's."""
        starts, operation = self.reading.starts, self.operation
        cues = list(zip(self.reading.relations, spread, strict=True))
        after = [cue for cue, place in cues if place == len(starts)]
        own = [[cue for cue, place in cues if place == n] for n in range(len(starts))]
        unused = _UNUSED_CUE * sum(place == -1 for place in spread)
        if not any(own) and after:
            return  # the same as cues of the starts
        chains = [
            nsmallest(_MOST_CHAINS, self._chains_of(n, own, operation), key=_cost_of)
            for n in range(len(starts))
        ]
        for chosen in itertools.product(*chains):
            kinds = [self._end_kinds(*pair) for pair in zip(starts, chosen, strict=True)]
            for kind in sorted(frozenset.intersection(*kinds)):
                ends = (*(one.end for one in starts), *(cue.end for each in own for cue in each))
                for cost, hops in self._continuations(kind, after, max(ends)):
                    total = cost + unused + sum(one for one, _ in chosen)
                    hops_each = [chain for _, chain in chosen]
                    yield from self._make_query(hops_each, hops, total, self._negated(own))

    def _chains_of(
        self, n: int, own: Sequence[list[RelationCue]], operation: str
    ) -> Iterator[tuple[float, tuple[Hop, ...]]]:
        start = self.reading.starts[n]
        held = operation == "judgement" and not own[n]
        if held or n in self.excepted:
            yield 0.0, ()  # the concept itself is held against what the other reaches
        else:
            yield from self._chains(start, own[n] or _nearest_cues(n, own))
            if not own[n] and any(own):  # "AF drugs that interact with …": the kind says it all
                yield from self._chains(start, ())

    def _end_kinds(self, start: NamedStart, chain: tuple[float, tuple[Hop, ...]]) -> frozenset[str]:
        hops = chain[1]
        return frozenset({hops[-1].kind}) if hops else start.kinds

    def _make_query(
        self,
        chains: list[tuple[Hop, ...]],
        after: tuple[Hop, ...],
        cost: float,
        negated: Sequence[int],
    ) -> Iterator[GraphQuery]:
        starts, operation = list(self.reading.starts), self.operation
        if operation == "difference":  # what "not" speaks of is taken away, so it comes last
            order = sorted(range(len(starts)), key=lambda n: n in negated)
            starts, chains = [starts[n] for n in order], [chains[n] for n in order]
            if len(negated) + 1 != len(starts):
                return  # of two that are meant and one that is not no form is written
        counted = "count" in self.reading.operators
        permits = "may" in self.reading.operators
        query = GraphQuery(tuple(starts), tuple(chains), operation, after, counted, cost, permits)
        misfit = self._misfit(query) if query.kinds else None
        if not operation:
            hops = (*chains[0], *after)
            if self._asks_for_others(hops):
                return  # the concept itself would be among them
            cost += _BACK * sum(map(self._goes_back, hops, hops[1:]))
        if operation == "judgement" and self.is_chinese and cost >= _AGAINST:
            return
        if misfit is not None:
            yield replace(query, cost=cost + misfit, is_complete=not misfit)

    def _asks_for_others(self, hops: Sequence[Hop]) -> bool:
        """Whether the question asks what else, by a way that leads back to where it began."""
        returns = len(hops) > 1 and hops[-1].kind in self.reading.starts[0].kinds
        else_ = self.is_chinese and _OTHERS.search(self.reading.text) is not None
        return else_ and returns and any(map(self._goes_back, hops, hops[1:]))

    def _goes_back(self, one: Hop, other: Hop) -> bool:
        # English says "genes that a gene that regulates X regulates"; there the order tells.
        differs = one.kind != other.kind or self.is_chinese
        return differs and one.relation is other.relation and one.forward != other.forward

    def _negated(self, own: Sequence[list[RelationCue]]) -> list[int]:
        """The starts that "not" speaks of: in Chinese those between it and the relation that
        follows, and that relation's own; else the start after it, or the last."""
        starts, spoken = self.reading.starts, set[int]()
        if self.excepted or not self.reading.negations:
            return self.excepted
        for at in self.reading.negations if self.is_chinese else ():
            cue = next((cue for cue in self.reading.relations if cue.start >= at), None)
            spoken |= {
                n
                for n, one in enumerate(starts)
                if cue is not None and (cue in own[n] or at < one.start < cue.start)
            }
        if spoken:
            return sorted(spoken)
        later = [n for n, one in enumerate(starts) if one.start > self.reading.negations[0]]
        return later[:1] or [len(starts) - 1]

    def _misfit(self, query: GraphQuery) -> float | None:
        """The cost of kinds that the question names in vain; `None` where the answer is of another
        kind than what is asked for."""
        asked, kinds = self.reading.asked, query.kinds
        compares = query.operation in ("most", "fewest")
        # "Which has more targets": what is counted is named; else the compared concepts are.
        names_start = asked is not None and any(asked.kind in one.kinds for one in query.starts)
        free = (compares and names_start) or query.operation == "judgement"
        if asked is not None and kinds[-1] != asked.kind and not free:
            return None
        named = {cue.kind for cue in self.reading.kinds}
        own = {kind for start in query.starts for kind in start.kinds}
        return _UNUSED_KIND * len(named - set(kinds) - own)

    def _chains(
        self, start: NamedStart, cues: Sequence[RelationCue]
    ) -> Iterator[tuple[float, tuple[Hop, ...]]]:
        """Hops from a start that use each of the cues once, with their cost."""
        for order in itertools.permutations(cues):
            away = [_distance(start, cue) for cue in order]
            # What stands nearest is followed first.
            turns = sum(one > other for one, other in itertools.pairwise(away))
            distance = 0.1 * sum(away) + _TURNED * turns
            for kind in sorted(start.kinds):
                for cost, hops in self._hops(kind, order, start.end, is_start=True):
                    yield cost + distance, hops

    def _continuations(
        self, kind: str, cues: Sequence[RelationCue], at: int
    ) -> Iterator[tuple[float, tuple[Hop, ...]]]:
        """Hops after the operation: by cues, else none or one that the asked kind implies."""
        for order in itertools.permutations(cues):
            yield from self._hops(kind, order, at if self.is_chinese else None, is_start=False)

    def _hops(
        self, kind: str, cues: Sequence[RelationCue], at: int | None, *, is_start: bool
    ) -> Iterator[tuple[float, tuple[Hop, ...]]]:
        """Hops by the cues in order, with at most one implied step before, between or after."""
        named = [cue.kind for cue in self.reading.kinds]
        routes: list[tuple[float, str, tuple[Hop, ...]]] = [(0.0, kind, ())]
        for cue in cues:
            routes = [
                (cost + extra, hop.kind, (*hops, *more))
                for cost, reached, hops in routes
                for extra, more in self._steps_by_cue(
                    reached, cue, self._subject_end(at, cues, cue), named
                )
                for hop in more[-1:]
            ]
        for cost, reached, hops in routes:
            if hops or not is_start:
                yield cost, hops
            # "What must not be given in X": no treatment of X is meant.
            barred = self.is_chinese and hops and hops[-1].relation.name == "contraindicates"
            for extra, hop in () if barred else self._implied(reached, named):
                yield cost + extra, (*hops, hop)

    def _steps_by_cue(
        self, kind: str, cue: RelationCue, at: int | None, named: Sequence[str]
    ) -> Iterator[tuple[float, tuple[Hop, ...]]]:
        for name in sorted(cue.relations):
            relation = self.vocabulary.relations[name]
            for forward, other in relation.steps_from(kind):
                cost = self._direction_cost(relation, forward, cue, at)
                yield cost, (Hop(relation, forward, other),)
            for extra, hop in self._implied(kind, named):
                for forward, other in relation.steps_from(hop.kind):
                    cost = self._direction_cost(relation, forward, cue, None)
                    yield extra + cost, (hop, Hop(relation, forward, other))

    def _implied(self, kind: str, named: Sequence[str]) -> Iterator[tuple[float, Hop]]:
        """Steps to a kind that the question names, by the usual relation between the two."""
        for wanted in dict.fromkeys(named):
            if self.is_chinese and wanted == kind:
                continue  # nobody leaves unsaid that drugs resemble each other
            if found := self.vocabulary.default_relation(kind, wanted):
                relation, forward = found
                yield _IMPLICIT, Hop(relation, forward, wanted)

    def _subject_end(
        self, at: int | None, cues: Sequence[RelationCue], cue: RelationCue
    ) -> int | None:
        """Where what the relation is followed from ends in the text; `None` where the words do not
        tell. In Chinese a clause stands before its noun, so what was reached stands after both."""
        before = cues[: cues.index(cue)]
        if at is None or (before and not self.is_chinese):
            return None
        return max((at, *(one.end for one in before)))

    def _direction_cost(
        self, relation: RelationKind, forward: bool, cue: RelationCue, at: int | None
    ) -> float:
        """Of two concepts of one kind the words' order says which is the subject."""
        if relation.symmetric or not any(a == b for a, b in relation.ends) or at is None:
            return 0.0
        is_subject = (at <= cue.start) != cue.passive
        if self.is_chinese:
            # "A 是 B 引起的": what stands nearest to the verb is its subject.
            nearer = any(at < one.start < cue.start for one in self.reading.starts)
            is_subject = not (nearer and self.operation == "judgement")
            is_subject = is_subject and not self.reading.is_object(at, cue)
        return 0.0 if is_subject == forward else _AGAINST


def _cost_of(chain: tuple[float, tuple[Hop, ...]]) -> float:
    return chain[0]


def _distance(start: NamedStart, cue: RelationCue) -> float:
    if cue.passive and 0 <= start.start - cue.end <= _BY:  # "treated by X" is one phrase
        return 0.0
    return float(max(cue.start - start.end, start.start - cue.end, 0))


def _nearest_cues(n: int, own: Sequence[list[RelationCue]]) -> list[RelationCue]:
    """The cues of the nearest start that has any: "treat X but not Y"."""
    having = [m for m, cues in enumerate(own) if cues]
    return own[min(having, key=lambda m: (abs(m - n), m))] if having else []

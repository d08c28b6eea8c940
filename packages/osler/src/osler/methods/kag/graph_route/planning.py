"""A question as a plan over the graph: the likeliest way to put its words together.

Every way to assign the relations that a question names to the concepts that it names is tried;
those that fit the kinds of the vocabulary are scored by how near the words stand, and the best is
written as logical forms. Without one that uses every word of content there is no plan, and the
question is asked in another way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nsmallest

from osler.methods.kag.graph_route.reading import (
    NamedStart,
    QuestionReading,
    RelationCue,
    RelationKind,
    Vocabulary,
    read_vocabulary,
)
from osler.methods.kag.logical_forms import (
    Deduce,
    Form,
    LogicalPlan,
    Math,
    Operation,
    Output,
    PlanStep,
    Retrieval,
    SpoNode,
)

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
# Characters of " by the ".
_BY = 8
_MOST_TRIED = 8
# Ways to follow cues from one concept that are combined with those of others: bounds the search.
_MOST_CHAINS = 8


@dataclass(frozen=True, slots=True)
class Hop:
    """One relation followed from a set, to concepts of a kind."""

    relation: RelationKind
    forward: bool
    kind: str


@dataclass(frozen=True, slots=True)
class GraphQuery:
    """Chains of hops from each named concept, joined by an operation, and hops from there on."""

    starts: tuple[NamedStart, ...]
    chains: tuple[tuple[Hop, ...], ...]
    """One for each start; of the same kind at their ends."""
    operation: str
    """"" for one start; "intersection", "union", "difference", "most", "fewest", "judgement"."""
    after: tuple[Hop, ...]
    counted: bool
    cost: float
    is_complete: bool = True
    """Whether it passes through every kind that the question names."""

    @property
    def kinds(self) -> list[str]:
        """The kinds that the query passes through."""
        return [hop.kind for hops in (*self.chains, self.after) for hop in hops]


def plan_queries(reading: QuestionReading) -> list[GraphQuery]:
    """The likeliest queries of a question, best first; none where none uses all that it says, or
    where it asks for two things."""
    if not 1 <= len(reading.starts) <= MOST_STARTS or len(reading.relations) > MOST_CUES:
        return []
    builder = _QueryBuilder(reading)
    if reading.asks > 1 or builder.operation == "refused":
        return []
    if reading.unexplained or (reading.qualifiers and builder.operation):
        return []
    ranked = nsmallest(_MOST_TRIED, builder.queries(), key=lambda query: query.cost)
    return [query for query in ranked if query.cost <= ranked[0].cost + _NEAR]


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
            if spread.count(-1) <= 1:
                yield from self._spread_queries(spread)

    @cached_property
    def operation(self) -> str:
        operators, several = self.reading.operators, len(self.reading.starts) > 1
        if not several:
            return ""
        if operators & {"more", "fewer"}:
            # "Are there more … than …?" wants a yes or no of the comparison: not asked of sets.
            compared = "most" if "more" in operators else "fewest"
            return compared if "whether" not in operators or "or" in operators else "refused"
        if "whether" in operators:
            return "judgement"
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
                for cost, hops in self._continuations(kind, after):
                    total = cost + unused + sum(one for one, _ in chosen)
                    yield from self._make_query([chain for _, chain in chosen], hops, total)

    def _chains_of(
        self, n: int, own: Sequence[list[RelationCue]], operation: str
    ) -> Iterator[tuple[float, tuple[Hop, ...]]]:
        start = self.reading.starts[n]
        if operation == "judgement" and not own[n]:
            yield 0.0, ()  # the concept itself is held against what the other reaches
        else:
            yield from self._chains(start, own[n] or _nearest_cues(n, own))
            if not own[n] and any(own):  # "AF drugs that interact with …": the kind says it all
                yield from self._chains(start, ())

    def _end_kinds(self, start: NamedStart, chain: tuple[float, tuple[Hop, ...]]) -> frozenset[str]:
        hops = chain[1]
        return frozenset({hops[-1].kind}) if hops else start.kinds

    def _make_query(
        self, chains: list[tuple[Hop, ...]], after: tuple[Hop, ...], cost: float
    ) -> Iterator[GraphQuery]:
        starts, operation = list(self.reading.starts), self.operation
        if operation == "difference":  # what "not" speaks of is taken away, so it comes last
            gone = self._negated()
            starts.append(starts.pop(gone))
            chains = [*chains[:gone], *chains[gone + 1 :], chains[gone]]
        counted = "count" in self.reading.operators
        query = GraphQuery(tuple(starts), tuple(chains), operation, after, counted, cost)
        misfit = self._misfit(query) if query.kinds else None
        if not operation:
            hops = (*chains[0], *after)
            cost += _BACK * sum(map(self._goes_back, hops, hops[1:]))
        if misfit is not None:
            yield replace(query, cost=cost + misfit, is_complete=not misfit)

    def _goes_back(self, one: Hop, other: Hop) -> bool:
        # English says "genes that a gene that regulates X regulates"; there the order tells.
        differs = one.kind != other.kind or self.is_chinese
        return differs and one.relation is other.relation and one.forward != other.forward

    def _negated(self) -> int:
        """The start after the negation, else the last one."""
        starts = self.reading.starts
        later = [n for n, one in enumerate(starts) if one.start > self.reading.negation]
        return later[0] if later else len(starts) - 1

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
                for cost, hops in self._hops(kind, order, start):
                    yield cost + distance, hops

    def _continuations(
        self, kind: str, cues: Sequence[RelationCue]
    ) -> Iterator[tuple[float, tuple[Hop, ...]]]:
        """Hops after the operation: by cues, else none or one that the asked kind implies."""
        for order in itertools.permutations(cues):
            yield from self._hops(kind, order, None)

    def _hops(
        self, kind: str, cues: Sequence[RelationCue], start: NamedStart | None
    ) -> Iterator[tuple[float, tuple[Hop, ...]]]:
        """Hops by the cues in order, with at most one implied step before, between or after."""
        named = [cue.kind for cue in self.reading.kinds]
        routes: list[tuple[float, str, tuple[Hop, ...]]] = [(0.0, kind, ())]
        for cue in cues:
            routes = [
                (cost + extra, hop.kind, (*hops, *more))
                for cost, at, hops in routes
                for extra, more in self._steps_by_cue(at, cue, start if not hops else None, named)
                for hop in more[-1:]
            ]
        for cost, at, hops in routes:
            if hops or start is None:
                yield cost, hops
            for extra, hop in self._implied(at, named):
                yield cost + extra, (*hops, hop)

    def _steps_by_cue(
        self, kind: str, cue: RelationCue, start: NamedStart | None, named: Sequence[str]
    ) -> Iterator[tuple[float, tuple[Hop, ...]]]:
        for name in sorted(cue.relations):
            relation = self.vocabulary.relations[name]
            for forward, other in relation.steps_from(kind):
                cost = self._direction_cost(relation, forward, cue, start)
                yield cost, (Hop(relation, forward, other),)
            for extra, hop in self._implied(kind, named):
                for forward, other in relation.steps_from(hop.kind):
                    cost = self._direction_cost(relation, forward, cue, None)
                    yield extra + cost, (hop, Hop(relation, forward, other))

    def _implied(self, kind: str, named: Sequence[str]) -> Iterator[tuple[float, Hop]]:
        """Steps to a kind that the question names, by the usual relation between the two."""
        for wanted in dict.fromkeys(named):
            if found := self.vocabulary.default_relation(kind, wanted):
                relation, forward = found
                yield _IMPLICIT, Hop(relation, forward, wanted)

    def _direction_cost(
        self, relation: RelationKind, forward: bool, cue: RelationCue, start: NamedStart | None
    ) -> float:
        """Of two concepts of one kind the words' order says which is the subject."""
        if relation.symmetric or not any(a == b for a, b in relation.ends) or start is None:
            return 0.0
        is_subject = (start.end <= cue.start) != cue.passive
        if self.is_chinese:
            # 被X调控的基因, 由X引起的疾病: what stands before the verb is its subject.
            is_subject = (start.end <= cue.start) != cue.passive
        return 0.0 if is_subject == forward else 40.0


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


def write_plan(query: GraphQuery) -> LogicalPlan:
    """The query as logical forms (§3.1.1)."""
    steps: list[PlanStep] = []
    ends = [
        _write_chain(steps, f"'{start.name}'", SpoNode(f"s{n}", min(start.kinds), start.name), hops)
        for n, (start, hops) in enumerate(zip(query.starts, query.chains, strict=True), 1)
    ]
    last = ends[0]
    if query.operation == "judgement":
        names = [
            end if hops else one.name
            for end, one, hops in zip(ends, query.starts, query.chains, strict=True)
        ]
        words = f"Do {' and '.join(names)} share anything?"
        n = len(steps) + 1
        steps.append(
            PlanStep(n, words, Deduce(Operation.JUDGEMENT, tuple(names), "shared", f"d{n}"))
        )
        steps.append(PlanStep(n + 1, "The answer", Output((f"d{n}",))))
        return LogicalPlan(tuple(steps))
    if query.operation:
        last = f"m{len(steps) + 1}"
        words = f"The {query.operation} of {', '.join(f'#{end[1:]}' for end in ends)}"
        steps.append(PlanStep(len(steps) + 1, words, Math(tuple(ends), query.operation, last)))
    last = (
        _write_chain(steps, f"#{len(steps)}", SpoNode(last), query.after) if query.after else last
    )
    if query.counted:
        count = f"m{len(steps) + 1}"
        steps.append(
            PlanStep(len(steps) + 1, f"The count of #{len(steps)}", Math((last,), "count", count))
        )
        last = count
    steps.append(PlanStep(len(steps) + 1, "The answer", Output((last,))))
    return LogicalPlan(tuple(steps))


def _write_chain(steps: list[PlanStep], said: str, node: SpoNode, hops: Sequence[Hop]) -> str:
    """Adds a Retrieval for each hop; the alias of the last result."""
    for hop in hops:
        n = len(steps) + 1
        reached = SpoNode(f"o{n}", hop.kind)
        predicate = SpoNode(f"p{n}", hop.relation.name)
        form: Form = (
            Retrieval(node, predicate, reached)
            if hop.forward
            else Retrieval(reached, predicate, node)
        )
        shared = hop.relation.symmetric and hop.relation.name != "resembles"
        verb = f"{hop.relation.name}{' with' if shared else ''}"
        words = (
            f"{hop.kind} that {said} {verb}" if hop.forward else f"{hop.kind} that {verb} {said}"
        )
        steps.append(PlanStep(n, words, form))
        said, node = f"#{n}", SpoNode(reached.alias)
    return node.alias

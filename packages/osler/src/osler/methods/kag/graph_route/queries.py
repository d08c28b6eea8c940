"""A question's query over the graph, and how it is written as logical forms (§3.1.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from osler.methods.kag.graph_route.reading import NamedStart
    from osler.methods.kag.graph_route.vocabulary import RelationKind


@dataclass(frozen=True, slots=True)
class Hop:
    """One relation followed from a set, to concepts of a kind; of any where that is "concept"."""

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
    permits: bool = False
    """Whether a relation says that what is asked may not be done."""
    is_complete: bool = True
    """Whether it passes through every kind that the question names."""

    @property
    def kinds(self) -> list[str]:
        """The kinds that the query passes through."""
        return [hop.kind for hops in (*self.chains, self.after) for hop in hops]


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
        target = "permitted" if query.permits else "shared"
        words = f"Do {' and '.join(names)} share anything?"
        n = len(steps) + 1
        steps.append(PlanStep(n, words, Deduce(Operation.JUDGEMENT, tuple(names), target, f"d{n}")))
        steps.append(PlanStep(n + 1, "The answer", Output((f"d{n}",))))
        return LogicalPlan(tuple(steps))
    if query.operation:
        # What is excepted is named, and reached from nothing.
        chained = list(zip(ends, query.starts, query.chains, strict=True))
        ends = [end if hops else one.name for end, one, hops in chained]
        named = (f"#{end[1:]}" if hops else one.name for end, one, hops in chained)
        last = f"m{len(steps) + 1}"
        words = f"The {query.operation} of {', '.join(named)}"
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

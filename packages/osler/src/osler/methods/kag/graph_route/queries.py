"""A question's query over the graph, and how it is written as logical forms (§3.1.1).

A plan executed over relations that a search found, so that a tape replays it without a graph.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from osler.graph.items import Edge
from osler.methods.kag.graph_route.sets import ConceptSet, Member, Values
from osler.methods.kag.graph_route.vocabulary import read_vocabulary
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
from osler.text import language_of
from osler.types import Hit, Language

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
    share: float
    """The logarithm of how likely it is meant."""
    permits: bool = False
    """Whether a relation says that what is asked may not be done."""

    @property
    def denies(self) -> bool:
        """Whether it has an answer to a question with "not" in it: a yes or no has."""
        hops = [hop.relation.name for hops in (*self.chains, self.after) for hop in hops]
        return self.operation in ("difference", "judgement") or "contraindicates" in hops

    @property
    def kinds(self) -> list[str]:
        """The kinds that the query passes through."""
        return [hop.kind for hops in (*self.chains, self.after) for hop in hops]


def write_plan(query: GraphQuery) -> LogicalPlan:
    """The query as logical forms (§3.1.1)."""
    steps: list[PlanStep] = []

    def add(words: str, form: Form) -> None:
        steps.append(PlanStep(len(steps) + 1, words, form))

    ends = [
        _write_chain(steps, f"'{start.name}'", SpoNode(f"s{n}", min(start.kinds), start.name), hops)
        for n, (start, hops) in enumerate(zip(query.starts, query.chains, strict=True), 1)
    ]
    last = ends[0]
    # What is excepted is named, and reached from nothing.
    chained = list(zip(ends, query.starts, query.chains, strict=True))
    content = tuple(end if hops else one.name for end, one, hops in chained)
    if query.operation == "judgement":
        target, last = "permitted" if query.permits else "shared", f"d{len(steps) + 1}"
        words = f"Do {' and '.join(content)} share anything?"
        add(words, Deduce(Operation.JUDGEMENT, content, target, last))
    elif query.operation:
        named = (f"#{end[1:]}" if hops else one.name for end, one, hops in chained)
        last = f"m{len(steps) + 1}"
        add(f"The {query.operation} of {', '.join(named)}", Math(content, query.operation, last))
    if query.after:
        last = _write_chain(steps, f"#{len(steps)}", SpoNode(last), query.after)
    if query.counted:
        last, counted = f"m{len(steps) + 1}", last
        add(f"The count of #{len(steps)}", Math((counted,), "count", last))
    add("The answer", Output((last,)))
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


STEP = "step "
"""Before the number of the step that a hit answers, as its source."""
_RELATION = re.compile(r"Relation: \((.*?)\)\.(?: |$)", re.DOTALL)


@dataclass(frozen=True)
class FoundRelations:
    """Retrievals carried out before: the relations of their members are the hits of a search."""

    plan: LogicalPlan
    hits: Sequence[Hit]
    language: Language = "en"
    """Of the names that members are told by, where they have one."""

    @cached_property
    def passages(self) -> Mapping[Edge, Hit]:
        """A hit of each relation."""
        return dict(self._relations)

    @cached_property
    def _relations(self) -> list[tuple[Edge, Hit]]:
        forms = {step.n: step.action for step in self.plan.steps}
        read = [(_read_edge(hit, forms[_step_of(hit)]), hit) for hit in self.hits]
        return [(edge, hit) for edge, hit in read if edge is not None]

    def named(self, name: str) -> ConceptSet:
        """The concept of this name among the members, so that it is the same as theirs."""
        wanted = name.casefold()
        ids = [h.passage.locator.code for h in self.hits if wanted in _folded_names(h)] or [wanted]
        return ConceptSet({id: Member(id, name) for id in ids}, name)

    def retrieve(self, n: int, form: Retrieval, values: Values) -> ConceptSet:
        """The members of step `n`, each behind the relations of the member that it hangs on."""
        near, far = (form.s, form.o) if form.s.name or form.s.alias in values else (form.o, form.s)
        start = values.get(near.alias)
        known = start.members.values() if isinstance(start, ConceptSet) else ()
        behind = {name: one.edges for one in known for name in self.names_of(one.concept)}
        members: dict[str, Member] = {}
        for edge, hit in self._relations:
            if _step_of(hit) == n:
                ends = (edge.subject, edge.object)
                before = next((behind[end] for end in ends if end in behind), ())
                one = Member(hit.passage.locator.code, self._tell_name(edge, hit), (*before, edge))
                members.setdefault(one.concept, one)
        origin = start.origin if isinstance(start, ConceptSet) else near.name
        reached = values[far.alias] = ConceptSet(members, origin)
        return reached

    def names_of(self, concept: str) -> frozenset[str]:
        """All names of a member, in small letters."""
        own = (_folded_names(hit) for hit in self.hits if hit.passage.locator.code == concept)
        return next(own, frozenset({concept.casefold()}))

    def _tell_name(self, edge: Edge, hit: Hit) -> str:
        """The member's name in the question's language, else as the relation has it."""
        title = hit.passage.title
        own = edge.subject_name if edge.subject in _folded_names(hit) else edge.object_name
        if self.language == language_of(own):
            return own
        return next((n for n in title.split("/") if language_of(n) == self.language), own)


def _step_of(hit: Hit) -> int:
    return int(hit.source.removeprefix(STEP))


def _folded_names(hit: Hit) -> frozenset[str]:
    # All names in one line; a single name may have a slash of its own.
    title = hit.passage.title.casefold()
    return frozenset((title, *title.split("/")))


def _read_edge(hit: Hit, form: Form) -> Edge | None:
    """The relation that a hit states; its ends are named in small letters."""
    stated = _RELATION.match(hit.passage.text)
    if stated is None or not isinstance(form, Retrieval):
        return None
    relation = read_vocabulary().relations[form.p.type]
    for predicate in sorted(relation.out | relation.inverse):
        subject, separator, object_ = stated[1].partition(f", {predicate}, ")
        if separator:
            return Edge(subject.casefold(), predicate, object_.casefold(), subject, object_)
    return None

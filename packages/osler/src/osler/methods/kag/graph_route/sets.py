"""Executes a plan of logical forms over the concept graph with sets and without a model (§3.4).

A variable is a set of concepts, each with the relations that put it there, a number, or a truth.
Retrievals follow relations from a set, in either direction, join where an alias stands twice, and
keep what meets their constraints. A Math counts, intersects, unites, subtracts and compares sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from osler.errors import BadCalculation
from osler.graph.items import Edge
from osler.graph.store import Graph
from osler.methods.kag.graph_route.vocabulary import RelationKind, read_vocabulary
from osler.methods.kag.logical_forms import (
    Constraint,
    Deduce,
    LogicalPlan,
    Math,
    Output,
    Retrieval,
    SpoNode,
    constraint_holds,
)
from osler.methods.kag.variables import find_dependencies

MOST_MEMBERS = 100_000
"""Members of a set; a larger one is refused, since nobody can check it."""


@dataclass(frozen=True, slots=True)
class Member:
    """A concept in a set and the relations that lead to it, in order from the given concept."""

    concept: str
    name: str
    edges: tuple[Edge, ...] = ()


@dataclass(frozen=True, slots=True)
class ConceptSet:
    """Concepts, each once, in the order in which the graph states them."""

    members: Mapping[str, Member]
    origin: str = ""
    """Name of the given concept that the set was reached from; "" where there are several."""

    def __len__(self) -> int:
        return len(self.members)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members.values())


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, with the set that was counted."""

    value: float
    concepts: ConceptSet


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the graph states it, with the relations that do."""

    holds: bool
    concepts: ConceptSet
    denies: bool
    """Whether what is stated means no: it may not be given."""

    @property
    def said(self) -> str:
        """The verdict in a word."""
        return ("no" if self.denies else "yes") if self.holds else "not stated"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The given concept whose set is the largest or smallest, with the size of each."""

    concepts: ConceptSet
    sizes: tuple[tuple[str, float], ...]


Value = ConceptSet | Amount | Verdict | Comparison
Values = dict[str, Value]


def execute_plan(plan: LogicalPlan, lookups: FormLookup) -> dict[int, Value]:
    """The value of each step. Raises `BadCalculation` for a step that cannot be carried out:
    nothing given, an unknown name or operation, a set above `MOST_MEMBERS`."""
    values: Values = {}
    found: dict[int, Value] = {}
    for n in find_dependencies(plan).solving_order():
        match plan.step_numbered(n).action:
            case Retrieval() as form:
                found[n] = lookups.retrieve(n, form, values)
            case Math(content, target, alias):
                told = [_value_of(item, values, lookups) for item in content]
                found[n] = values[alias or f"#{n}"] = _compute(target, told)
            case Deduce(_, content, target, alias):
                told = [_value_of(item, values, lookups) for item in content]
                shared = _combine("intersection", _sets_of(told, 2))
                verdict = Verdict(bool(shared.members), shared, denies=target == "permitted")
                found[n] = values[alias or f"#{n}"] = verdict
            case Output(variables):
                told = [_value_of(item, values, lookups) for item in variables]
                found[n] = told[0] if len(told) == 1 else _combine("union", _sets_of(told, 2))
    return found


def _value_of(item: str, values: Values, lookups: FormLookup) -> Value:
    """The value of an alias; another text is the name of a concept."""
    return values[item] if item in values else lookups.named(item)


class FormLookup(Protocol):
    """What carries out the Retrievals of a plan."""

    def retrieve(self, n: int, form: Retrieval, values: Values) -> ConceptSet:
        """The set of step `n`, which `values` gets under its alias."""

    def named(self, name: str) -> ConceptSet:
        """The concepts of this name. Raises `BadCalculation` for none."""


@dataclass(frozen=True)
class GraphLookup:
    """Looks forms up in a concept graph. Blocks: an async caller puts it in a thread."""

    graph: Graph

    def retrieve(self, n: int, form: Retrieval, values: Values) -> ConceptSet:
        """Follows one relation, and narrows what the form's aliases stand for already."""
        subjects, objects = (self._resolve(node, values) for node in (form.s, form.o))
        forward, start = (True, subjects) if subjects is not None else (False, objects)
        if start is None:
            raise BadCalculation(f"nothing is given of {form.s.alias} and {form.o.alias}")
        asked = form.p.type or form.p.name
        relation = read_vocabulary().relations.get(asked.casefold().replace(" ", "_"))
        reached = self._follow(start, _edge_test(relation, asked, forward))
        wanted = form.o if forward else form.s
        reached = self._keep_kind(reached, wanted.type)
        if subjects is not None and objects is not None:
            reached = self._join(form, reached, subjects, objects, values)
        reached = self._meet_constraints(reached, form.constraints, "o" if forward else "s")
        if wanted.alias:
            values[wanted.alias] = reached
        return reached

    def _join(
        self,
        form: Retrieval,
        reached: ConceptSet,
        subjects: ConceptSet,
        objects: ConceptSet,
        values: Values,
    ) -> ConceptSet:
        """Both ends are known: each keeps the members that a relation joins to the other."""
        shared = _restrict(reached, lambda id: id in objects.members)
        touching: dict[str, list[Edge]] = {}
        for edge in (member.edges[-1] for member in shared.members.values()):
            touching.setdefault(edge.subject, []).append(edge)
            touching.setdefault(edge.object, []).append(edge)
        joined = {
            id: replace(one, edges=_join_edges(one.edges, touching[id]))
            for id, one in subjects.members.items()
            if id in touching
        }
        values[form.s.alias] = ConceptSet(joined, subjects.origin)
        return shared

    def _resolve(self, node: SpoNode, values: Values) -> ConceptSet | None:
        known = values.get(node.alias)
        if isinstance(known, ConceptSet):
            return known
        if node.id:
            return ConceptSet({node.id: Member(node.id, node.name)}, node.name)
        return self._name_set(node.name, node.type) if node.name else None

    def named(self, name: str) -> ConceptSet:
        return self._name_set(name, "")

    def _name_set(self, name: str, kind: str) -> ConceptSet:
        named = [found.concept for found in self.graph.find_exact(name)]
        # Two vocabularies may have the concept, one of them without this name.
        told = [concept.name for id in named if (concept := self.graph.get_concept(id))]
        same = [found.concept for other in told for found in self.graph.find_exact(other)]
        ids = list(dict.fromkeys((*named, *same)))
        known = read_vocabulary().kinds.get(kind)
        typed = self.graph.types_of(ids) if known and len(ids) > 1 else {}
        ids = [id for id in ids if known and typed.get(id, frozenset()) & known] or ids
        if not ids:
            raise BadCalculation(f"the graph has no concept {name!r}")
        return ConceptSet({id: Member(id, name) for id in ids}, name)

    def _follow(self, start: ConceptSet, leads: Callable[[Edge, bool], bool]) -> ConceptSet:
        """The far ends of the relations of a set that `leads` accepts."""
        found: dict[str, Member] = {}
        for edge in self.graph.find_neighbours(list(start.members)):
            for is_subject in (True, False):
                near, far, name = (
                    (edge.subject, edge.object, edge.object_name)
                    if is_subject
                    else (edge.object, edge.subject, edge.subject_name)
                )
                source = start.members.get(near)
                if source is None or not leads(edge, is_subject):
                    continue
                found.setdefault(far, Member(far, name, (*source.edges, edge)))
                if len(found) > MOST_MEMBERS:
                    raise BadCalculation(f"more than {MOST_MEMBERS:,} concepts: ask more narrowly")
        return ConceptSet(found, start.origin)

    def _keep_kind(self, reached: ConceptSet, kind: str) -> ConceptSet:
        """The members of a kind; all of them where the kind is none of the vocabulary's."""
        known = read_vocabulary().kinds.get(kind)
        if known is None or not reached.members:
            return reached
        typed = self.graph.types_of(list(reached.members))
        return _restrict(reached, lambda id: bool(typed[id] & known))

    def _meet_constraints(
        self, reached: ConceptSet, constraints: Sequence[Constraint], place: str
    ) -> ConceptSet:
        for constraint in constraints:
            if constraint.on == place:
                values = self._property_values(reached, constraint.property)
                reached = _restrict(
                    reached,
                    lambda id, values=values, constraint=constraint: any(  # type: ignore[misc]
                        constraint_holds(constraint, value) for value in values.get(id, ())
                    ),
                )
        return reached

    def _property_values(self, reached: ConceptSet, property: str) -> dict[str, list[str]]:
        if property == "name":
            return {id: [member.name] for id, member in reached.members.items()}
        if property == "type":
            typed = self.graph.types_of(list(reached.members))
            return {id: sorted(types) for id, types in typed.items()}
        values: dict[str, list[str]] = {}
        leads = _edge_test(read_vocabulary().relations.get(property), property, True)
        for edge in self.graph.find_neighbours(list(reached.members)):
            if edge.subject in reached.members and leads(edge, True):
                values.setdefault(edge.subject, []).append(edge.object_name)
            if edge.object in reached.members and leads(edge, False):
                values.setdefault(edge.object, []).append(edge.subject_name)
        return values


def _edge_test(
    relation: RelationKind | None, asked: str, forward: bool
) -> Callable[[Edge, bool], bool]:
    """Whether an edge, of which the near end is the subject or not, is the relation asked for."""
    if relation is None:
        wanted = _plain(asked)
        return lambda edge, is_subject: is_subject is forward and _plain(edge.predicate) == wanted

    def leads(edge: Edge, is_subject: bool) -> bool:
        if relation.symmetric:
            return edge.predicate in relation.out
        along = relation.out if is_subject is forward else relation.inverse
        return edge.predicate in along

    return leads


def _plain(text: str) -> str:
    return text.casefold().replace("_", " ").strip()


def _restrict(found: ConceptSet, keep: Callable[[str], bool]) -> ConceptSet:
    return replace(found, members={id: one for id, one in found.members.items() if keep(id)})


def _sets_of(values: Sequence[Value], least: int) -> list[ConceptSet]:
    sets = [value for value in values if isinstance(value, ConceptSet)]
    if len(sets) < max(least, len(values)):
        raise BadCalculation(f"needs {least} or more sets of concepts, has {len(sets)}")
    return sets


def _compute(target: str, values: Sequence[Value]) -> Value:
    operation = target.casefold().strip()
    match operation:
        case "count":
            (one,) = _sets_of(values, 1)[:1]
            return Amount(float(len(one)), one)
        case "intersection" | "union" | "difference":
            return _combine(operation, _sets_of(values, 2))
        case "most" | "fewest":
            return compare_sets(_sets_of(values, 2), largest=operation == "most")
    raise BadCalculation(f"no operation on sets is called {target!r}")


def _combine(operation: str, sets: Sequence[ConceptSet]) -> ConceptSet:
    first, *others = sets
    if operation == "difference":
        gone = {id for each in others for id in each.members}
        return _restrict(first, lambda id: id not in gone)
    members = dict(first.members)
    for other in others:
        if operation == "union":
            members = {**other.members, **members}
        else:  # a member of both rests on the relations of both
            members = {
                id: replace(one, edges=_join_edges(one.edges, other.members[id].edges))
                for id, one in members.items()
                if id in other.members
            }
    return ConceptSet(members)


def _join_edges(one: Iterable[Edge], other: Iterable[Edge]) -> tuple[Edge, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def compare_sets(sets: Sequence[ConceptSet], *, largest: bool) -> Comparison:
    """The given concept whose set is largest or smallest. Raises where two are equal, and where
    the graph states nothing of one: it is not known to be smaller."""
    if empty := [each.origin for each in sets if not each.members]:
        raise BadCalculation(f"the graph states nothing of {' and '.join(empty)}")
    sizes = [float(len(each)) for each in sets]
    size_of_best = max(sizes) if largest else min(sizes)
    chosen = [each for each, size in zip(sets, sizes, strict=True) if size == size_of_best]
    if len(chosen) > 1:
        raise BadCalculation(f"{' and '.join(each.origin for each in chosen)} are equal")
    (one,) = chosen
    edges = tuple(
        dict.fromkeys(edge for each in sets for m in each.members.values() for edge in m.edges)
    )
    best = ConceptSet({one.origin: Member(one.origin, one.origin, edges)}, one.origin)
    return Comparison(best, tuple((s.origin, size) for s, size in zip(sets, sizes, strict=True)))

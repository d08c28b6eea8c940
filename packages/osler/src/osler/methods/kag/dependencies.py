"""Dependencies between steps: "#n" in the words, aliases in the actions (§3.1.1).

The released executor runs steps in a chain; here steps that do not wait for each
other may run at once.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from osler.methods.kag.logical_forms import (
    Deduce,
    Form,
    LogicalPlan,
    Math,
    Output,
    PlanStep,
    Retrieval,
)

REFERENCE = re.compile(r"#(\d{1,4})(?!\d)")
"""The whole number: "#1" is not found in "#10"."""
ALIAS = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Dependencies:
    """The dependency graph of a plan and the plan's defects."""

    waits: Mapping[int, frozenset[int]]
    """Step → the steps whose results it needs; broken references are left out."""
    bound: Mapping[str, int]
    """Alias of a result → the step that produces it."""
    given: Mapping[str, str]
    """Alias of a named entity → its name, known before any step runs."""
    problems: tuple[str, ...]
    """Defects in words: undeclared names, missing steps, cycles."""
    types: Mapping[int, str] = field(default_factory=dict)
    """Step → the declared type of what it finds; steps without one are left out."""

    def solving_order(self) -> tuple[int, ...]:
        """The steps in an order in which each follows its dependencies; ties in plan order."""
        return tuple(n for level in self.solving_levels() for n in level)

    def solving_levels(self) -> tuple[tuple[int, ...], ...]:
        """The steps level by level; the steps of a level can run concurrently."""
        # Levels come from the standard sorter; sorting each keeps the order deterministic.
        sorter = TopologicalSorter(self.waits)
        sorter.prepare()
        found = []
        while sorter.is_active():
            ready = tuple(sorted(sorter.get_ready()))
            sorter.done(*ready)
            found.append(ready)
        return tuple(found)


def find_dependencies(plan: LogicalPlan) -> Dependencies:
    """Builds the dependency graph of `plan` without cycles; edges that close one become
    problems."""
    problems: list[str] = []
    bound, given = _declared_aliases(plan)
    waits: dict[int, frozenset[int]] = {}
    for step in plan.steps:
        needed = set()
        for n, how in _step_needs(step, plan, bound, given, problems):
            if n == step.n:
                problems.append(f"step {step.n} waits for itself ({how})")
            else:
                needed.add(n)
        waits[step.n] = frozenset(needed)
    types = {
        step.n: step.action.o.type
        for step in plan.steps
        if isinstance(step.action, Retrieval) and step.action.o.type
    }
    return Dependencies(_without_cycles(waits, problems), bound, given, tuple(problems), types)


def fill_references(question: str, answers: Mapping[int, str]) -> str:
    """Replaces "#n" in the question by the answer of step n, where there is one."""
    return REFERENCE.sub(lambda m: answers.get(int(m.group(1)), m.group(0)), question)


def bound_aliases(form: Form) -> tuple[str, ...]:
    """The aliases that a form may bind: the target of a Retrieval, the alias of the rest."""
    match form:
        case Retrieval():
            # The paper's plans ask for the object; subject and predicate are unknowns only
            # rarely.
            unknown = [n for n in (form.o, form.s, form.p) if n.alias and not n.name]
            # A typed predicate is an edge to follow, not something to find.
            return tuple(n.alias for n in unknown if not (n is form.p and n.type))
        case Math() | Deduce():
            return (form.alias,) if form.alias else ()
        case Output():
            return ()


def _declared_aliases(plan: LogicalPlan) -> tuple[dict[str, int], dict[str, str]]:
    bound: dict[str, int] = {}
    given: dict[str, str] = {}
    for step in plan.steps:
        if isinstance(step.action, Retrieval):
            for node in step.action.nodes:
                if node.name and node.alias not in bound:
                    given.setdefault(node.alias, node.name)
        for alias in bound_aliases(step.action):
            if alias not in given and alias not in bound and _declares_alias(step.action, alias):
                bound[alias] = step.n
    return bound, given


def _declares_alias(form: Form, alias: str) -> bool:
    """Whether this form declares the alias; a subject without a type refers back."""
    if not isinstance(form, Retrieval) or form.o.alias == alias:
        return True
    node = form.s if form.s.alias == alias else form.p
    return bool(node.type) or node is form.p


def _step_needs(
    step: PlanStep,
    plan: LogicalPlan,
    bound: Mapping[str, int],
    given: Mapping[str, str],
    problems: list[str],
) -> Iterator[tuple[int, str]]:
    """The steps that a step waits for, each with the reference that says so."""
    numbers = {other.n for other in plan.steps}
    for number in [int(n) for n in REFERENCE.findall(_referring_text(step))]:
        if number in numbers:
            yield number, f"#{number}"
        else:
            problems.append(f"step {step.n} refers to #{number}, and there is no such step")
    for alias, must in _mentioned_aliases(step.action):
        if alias in given:
            continue
        if alias in bound:
            if bound[alias] != step.n or alias not in bound_aliases(step.action):
                yield bound[alias], alias
        elif must:
            problems.append(f"step {step.n} uses {alias}, and nothing declares it")


def _referring_text(step: PlanStep) -> str:
    """The texts of a step that may contain "#n": the question and the free text of the action."""
    match step.action:
        case Math(content=content, target=target) | Deduce(content=content, target=target):
            return " ".join((step.question, *content, target))
        case Output(variables=variables):
            return " ".join((step.question, *variables))
        case Retrieval(constraints=constraints) as form:
            values = (each.value for each in constraints)
            told = (
                value for each in values for value in ((each,) if isinstance(each, str) else each)
            )
            return " ".join((step.question, *(node.name for node in form.nodes), *told))


def _mentioned_aliases(form: Form) -> Iterator[tuple[str, bool]]:
    """Words of a form that may be aliases, and whether they can be nothing else."""
    match form:
        case Retrieval():
            for node in form.nodes:
                if node.alias:
                    yield node.alias, node is form.s and not (node.type or node.name)
            for constraint in form.constraints:
                values = constraint.value
                for value in (values,) if isinstance(values, str) else values:
                    yield value, False
        case Math(content=content) | Deduce(content=content):
            for item in content:
                yield item, re.fullmatch(r"(?:[spo]|math|deduce)\d+", item) is not None
        case Output(variables=variables):
            for name in variables:
                yield name, not REFERENCE.fullmatch(name) and bool(ALIAS.fullmatch(name))


def _without_cycles(
    waits: dict[int, frozenset[int]], problems: list[str]
) -> dict[int, frozenset[int]]:
    """Removes one edge of each cycle, the one that points furthest forward in the plan."""
    while True:
        try:
            TopologicalSorter(waits).prepare()
        except CycleError as error:
            cycle: list[int] = error.args[1]
            problems.append(f"the steps {' → '.join(map(str, cycle))} wait for each other")
            # Along the cycle each step is waited for by the next one.
            edges = [(b, a) for a, b in itertools.pairwise(cycle)]
            waiter, awaited = max(edges, key=lambda edge: edge[1] - edge[0])
            waits = {**waits, waiter: waits[waiter] - {awaited}}
        else:
            return waits

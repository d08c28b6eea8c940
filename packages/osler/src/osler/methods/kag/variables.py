"""The variables of a plan: which steps wait for which, and what "#n" stands for (§3.1.1).

The released executor runs steps in a chain; here steps that do not wait for each other may run at
once. A variable is a set of entities: "aspirin; ibuprofen" is two, and a form that refers to it is
looked up for each. A reference whose step has no answer stays unfilled and is reported, so that
nothing is searched for "#1" or for "unknown".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from osler.methods.kag.logical_forms import (
    Constraint,
    Deduce,
    Form,
    LogicalPlan,
    Math,
    Output,
    PlanStep,
    Retrieval,
    SpoNode,
    SubAnswer,
)
from osler.types import Question

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
            told = (value for each in constraints for value in each.values())
            return " ".join((step.question, *(node.name for node in form.nodes), *told))


def _mentioned_aliases(form: Form) -> Iterator[tuple[str, bool]]:
    """Words of a form that may be aliases, and whether they can be nothing else."""
    match form:
        case Retrieval():
            for node in form.nodes:
                if node.alias:
                    yield node.alias, node is form.s and not (node.type or node.name)
            for constraint in form.constraints:
                yield from ((value, False) for value in constraint.values())
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


MOST = 5
"""Forms that one form with several values becomes, at most."""
_SEPARATOR = re.compile(r"\s*[;；、\n]\s*")
# A list of short names: "aspirin, ibuprofen and naproxen".
_LISTED = re.compile(r"\s*(?:,|，)\s*(?:(?:and|or)\s+)?|\s+(?:and|or)\s+")
_LONGEST_NAME = 40
# "Diabetes Mellitus, Type 2" is one name, as MeSH writes it.
_QUALIFIES = re.compile(
    r"(?:type|stage|grade|class|group|phase)\b.*|acute|chronic|systemic|pulmonary|essential"
    r"|rheumatoid|juvenile|malignant|benign|primary|secondary|congenital|hereditary|familial"
    r"|myeloid|lymphoid|lymphocytic|bacterial|viral|allergic|alcoholic|aplastic|ha?emolytic"
    r"|obstructive|interstitial|ulcerative|atopic|gestational|bipolar|major"
    r"|(?:sickle|basal|squamous|(?:non-)?small)[ -]cell|iron[ -]deficiency",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class EntitySet:
    """What a variable stands for."""

    names: tuple[str, ...]
    type: str = ""
    """As the plan declares it; "" where it does not."""


@dataclass(frozen=True)
class Variables:
    """What the references of step `n` stand for, from the answers of earlier steps."""

    graph: Dependencies
    answers: Mapping[int, SubAnswer]
    n: int

    @cached_property
    def bound(self) -> Mapping[str, str]:
        """Every alias that has a value: given names and results; this step's own are none."""
        results = {
            alias: self.answers[step].text
            for alias, step in self.graph.bound.items()
            if step != self.n and step in self.answers and self.answers[step].text
        }
        return {**self.graph.given, **results}

    @property
    def missing(self) -> tuple[str, ...]:
        """The steps that this one waits for and that have no answer, as "#1"."""
        return tuple(f"#{m}" for m in sorted(self.graph.waits[self.n]) if m not in self._said)

    @property
    def awaited(self) -> list[SubAnswer]:
        """What is known of the steps that this one waits for, in their order."""
        return [self.answers[m] for m in sorted(self.graph.waits[self.n]) if m in self.answers]

    def fill_text(self, text: str) -> str:
        """The text with "#n" replaced by answers; one without an answer stays."""
        return fill_references(text, self._said)

    def fill_item(self, item: str) -> str:
        """An item of a Math's or Deduce's content: an alias as "o1 = value", else its text."""
        if item in self.bound:
            return f"{item} = {self.bound[item]}"
        return self.fill_text(item)

    def fill_computed(
        self, form: Math | Deduce, question: Question
    ) -> tuple[Math | Deduce, list[str]]:
        """A form with its target filled in, and what it is computed from: its content, and the
        question, which may tell what no step found."""
        content = [*map(self.fill_item, form.content), question.text]
        return replace(form, target=self.fill_text(form.target)), content

    def value_of(self, item: str) -> str:
        """The value of an Output's variable; "" when it has none."""
        if item in self.bound:
            return self.bound[item]
        filled = self.fill_text(item)
        is_reference = filled == item and (item in self.graph.bound or item[:1] == "#")
        return "" if is_reference else filled

    def compute_set(self, form: Math) -> str | None:
        """The result of a Math that counts or combines the sets of its content, without a model;
        `None` for another target, and where the content is no set or the sets are of two types."""
        sets = [self._set_of(item) for item in form.content]
        known = [each for each in sets if each is not None]
        operation = form.target.casefold().strip()
        if len(known) < len(sets) or len({one.type for one in known if one.type}) > 1:
            return None
        if operation == "count" and len(known) == 1:
            return str(len(known[0].names))
        if operation not in ("intersection", "union", "difference") or len(known) < 2:
            return None
        first, *others = ({name.casefold(): name for name in one.names} for one in known)
        for other in others:
            if operation == "union":
                first |= {key: name for key, name in other.items() if key not in first}
            else:
                keeps = operation == "intersection"
                first = {key: name for key, name in first.items() if (key in other) is keeps}
        return "; ".join(first.values())

    def _set_of(self, item: str) -> EntitySet | None:
        """What an alias or a "#n" stands for; `None` for a text and for what has no value."""
        name = item.strip()
        step = int(name[1:]) if REFERENCE.fullmatch(name) else 0
        if name not in self.bound and step not in self._said:
            return None
        step = self.graph.bound.get(name, step)
        return EntitySet(self._values(name), self.graph.types.get(step, ""))

    def fill_form(self, form: Retrieval) -> list[Retrieval]:
        """The form with subject, object and constraint values filled in, once for each entity that
        they stand for; at most `MOST` forms."""
        subjects, objects = self._fill_node(form.s), self._fill_node(form.o)
        constraints = tuple(self._fill_constraint(each) for each in form.constraints)
        pairs = itertools.islice(itertools.product(subjects, objects), MOST)
        return [replace(form, s=s, o=o, constraints=constraints) for s, o in pairs]

    @cached_property
    def _said(self) -> Mapping[int, str]:
        return {m: answer.text for m, answer in self.answers.items() if answer.text}

    def _values(self, name: str) -> tuple[str, ...]:
        """The entities that an alias or a text with "#n" stands for."""
        if (filled := self.bound.get(name)) is not None:
            return split_entities(filled)
        if REFERENCE.fullmatch(name.strip()):
            said = self._said.get(int(name.strip()[1:]))
            return split_entities(said) if said else (name,)
        return (self.fill_text(name),)

    def _fill_node(self, node: SpoNode) -> list[SpoNode]:
        if not node.name and node.alias not in self.bound:
            return [node]
        return [replace(node, name=value) for value in self._values(node.name or node.alias)]

    def _fill_constraint(self, constraint: Constraint) -> Constraint:
        filled = (value for each in constraint.values() for value in self._values(each))
        values = tuple(dict.fromkeys(filled))
        if constraint.comparison == "in":
            return replace(constraint, value=values)
        # "is o1" of several entities is "is one of them".
        if len(values) > 1 and constraint.comparison == "=":
            return replace(constraint, comparison="in", value=values)
        return replace(constraint, value=values[0])


def split_entities(text: str) -> tuple[str, ...]:
    """The entities of an answer: parts between semicolons or lines, and of a list of short names
    its commas; a sentence is one."""
    parts = [part for part in _SEPARATOR.split(text.strip()) if part]
    return tuple(dict.fromkeys(name for part in parts for name in _split_names(part))) or (text,)


def _split_names(part: str) -> Iterator[str]:
    names = [name for name in _LISTED.split(part.rstrip(".。")) if name]
    commas = re.search(r"[,，]", part) is not None
    # "1,000 mg", "Hit and Run": a list has a comma, and no part of it is a number or long.
    listed = commas and all(
        len(name) <= _LONGEST_NAME and len(name.split()) <= 4 and not name[0].isdigit()
        for name in names
    )
    inverted = listed and not _QUALIFIES.fullmatch(names[0])
    listed &= not (inverted and all(map(_QUALIFIES.fullmatch, names[1:])))
    yield from names if listed else [part]

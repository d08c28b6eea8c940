"""The variables of a plan while it runs: aliases and "#n", and what they stand for (§3.1.1, §3.4).

A variable is a set of entities: "aspirin; ibuprofen" is two, and a form that refers to it is looked
up for each. A reference whose step has no answer stays unfilled and is reported, so that nothing is
searched for "#1" or for "unknown".
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from osler.methods.kag.dependencies import REFERENCE, Dependencies
from osler.methods.kag.logical_forms import Constraint, Math, Retrieval, SpoNode, SubAnswer

MOST = 5
"""Forms that one form with several values becomes, at most."""
_SEPARATOR = re.compile(r"\s*[;；、\n]\s*")
# A list of short names: "aspirin, ibuprofen and naproxen".
_LISTED = re.compile(r"\s*(?:,|，)\s*(?:(?:and|or)\s+)?|\s+(?:and|or)\s+")
_LONGEST_NAME = 40


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
        waits = sorted(self.graph.waits[self.n])
        return tuple(f"#{m}" for m in waits if not self._said.get(m))

    def fill_text(self, text: str) -> str:
        """The text with "#n" replaced by answers; one without an answer stays."""
        return REFERENCE.sub(lambda match: self._said.get(int(match[1])) or match[0], text)

    def fill_item(self, item: str) -> str:
        """An item of a Math's or Deduce's content: an alias as "o1 = value", else its text."""
        if item in self.bound:
            return f"{item} = {self.bound[item]}"
        return self.fill_text(item)

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
        is_reference = name in self.bound or (
            REFERENCE.fullmatch(name) and self._said.get(int(name[1:]))
        )
        if not is_reference:
            return None
        step = self.graph.bound.get(name, int(name[1:]) if REFERENCE.fullmatch(name) else 0)
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
        return {m: answer.text for m, answer in self.answers.items()}

    def _values(self, name: str) -> tuple[str, ...]:
        """The entities that an alias or a text with "#n" stands for."""
        if (filled := self.bound.get(name)) is not None:
            return split_entities(filled)
        if REFERENCE.fullmatch(name.strip()):
            said = self._said.get(int(name.strip()[1:]), "")
            return split_entities(said) if said else (name,)
        return (self.fill_text(name),)

    def _fill_node(self, node: SpoNode) -> list[SpoNode]:
        if node.name:
            return [replace(node, name=value) for value in self._values(node.name)]
        if node.alias in self.bound:
            return [replace(node, name=value) for value in self._values(node.alias)]
        return [node]

    def _fill_constraint(self, constraint: Constraint) -> Constraint:
        told = constraint.value if isinstance(constraint.value, tuple) else (constraint.value,)
        values = tuple(dict.fromkeys(value for each in told for value in self._values(each)))
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
    commas = re.search(r"[,，]", part)
    # "1,000 mg", "Hit and Run": a list has a comma, and no part of it is a number or long.
    listed = commas and all(
        len(name) <= _LONGEST_NAME and len(name.split()) <= 4 and not name[0].isdigit()
        for name in names
    )
    yield from names if listed else [part]

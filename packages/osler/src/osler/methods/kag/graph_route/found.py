"""A plan executed over relations that a search found, so that a tape replays it without a graph."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from osler.graph.items import Edge
from osler.methods.kag.graph_route.sets import ConceptSet, Member, Values
from osler.methods.kag.graph_route.vocabulary import read_vocabulary
from osler.methods.kag.logical_forms import Form, LogicalPlan, Retrieval
from osler.text import language_of
from osler.types import Hit, Language

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

"""Answers questions of several steps by the concept graph alone, without a model (§3.4).

The question is read, planned and looked up by one search, so that a tape holds all that the answer
needs; the plan is then executed over what was found. A question that the graph's words do not cover
whole, or that it has no answer to, is left to the rest of the method.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from osler.errors import BadCalculation
from osler.graph.items import Edge
from osler.graph.store import Graph
from osler.methods.kag.graph_route.planning import GraphQuery, plan_queries, write_plan
from osler.methods.kag.graph_route.reading import QuestionReader, read_vocabulary
from osler.methods.kag.graph_route.sets import (
    Amount,
    Comparison,
    ConceptSet,
    GraphLookup,
    Member,
    Value,
    Values,
    Verdict,
    execute_plan,
)
from osler.methods.kag.logical_forms import Form, LogicalPlan, Retrieval, render_plan
from osler.methods.kag.parse import read_plan
from osler.methods.kag.planner import plan_event
from osler.retrieve import look_up, rank_hits, search_errors
from osler.sources.catalogue import GRAPH
from osler.text import has_cjk, language_of
from osler.trace import FormSolved, Noted, Run
from osler.types import (
    Answer,
    DecidedBy,
    Evidence,
    Halt,
    Hit,
    Language,
    Passage,
    Question,
    Retriever,
    Solution,
    Statement,
)

GRAPH_SETS = "graph-sets"
"""Its name among the retrievers of a run, and so on its tape."""
MOST_RELATIONS = 500
"""Relations that an answer may rest on; one that needs more is left to the rest of the method."""
SHOWN = 20
"""Concepts that an answer lists with their evidence; of the others it says how many."""
_EQUAL = 0.5
"""Difference in cost below which of two readings neither is the likelier."""
_STEP = "step "
_WIRE = "Step1:"
"""How a plan begins; asked in place of a question, it is run as it stands."""
_RELATION = re.compile(r"Relation: \((.*?)\)\.(?: |$)", re.DOTALL)
_YES: dict[Language, str] = {"en": "Yes: {facts}.", "zh": "是：{facts}。"}
_COUNT: dict[Language, str] = {"en": "{value:.0f}: {names}.", "zh": "{value:.0f} 个：{names}。"}
_BEST: dict[Language, str] = {"en": "{best} ({sizes}).", "zh": "{best}（{sizes}）。"}
_MEMBER: dict[Language, str] = {"en": "{name}: {facts}.", "zh": "{name}：{facts}。"}
_MORE: dict[Language, str] = {
    "en": "{count} more are not listed: {names}.",
    "zh": "另有 {count} 个未列出：{names}。",
}


@dataclass(frozen=True)
class GraphSets:
    """Everything that the plan of a question needs from the graph, as one search."""

    graph: Graph

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """The relations of each step, at most `k` in all; none where there is no plan, or where
        it needs more. Raises `SourceUnavailable`."""
        with search_errors():
            return await asyncio.to_thread(self._find_relations, query, k)

    def _find_relations(self, question: str, k: int) -> list[Hit]:
        if question.startswith(_WIRE):
            return self._run_given(read_plan(question), k)
        reading = QuestionReader(self.graph).read(question, language_of(question))
        queries = plan_queries(reading)
        for n, query in enumerate(queries):
            plan = write_plan(query)
            try:
                values = execute_plan(plan, GraphLookup(self.graph))
            except BadCalculation:
                return []
            value = values[plan.steps[-1].n]
            answer = _set_of(value).members
            if len(plan.steps) < 3:  # one fact and the output: searched as any question is
                # The words may say more than one fact, and this reading then is none.
                if answer or (len(query.kinds) >= reading.passed_kinds and query.is_complete):
                    return []
            elif answer:
                hits = self._hits_of(plan, values, reading.qualifiers)
                if len(hits) > k or self._is_doubtful(query, queries[n + 1 :], value):
                    return []
                return hits
        return []

    def _run_given(self, plan: LogicalPlan, k: int) -> list[Hit]:
        try:
            hits = self._hits_of(plan, execute_plan(plan, GraphLookup(self.graph)))
        except BadCalculation:
            return []
        return hits if len(hits) <= k else []

    def _is_doubtful(self, chosen: GraphQuery, others: Sequence[GraphQuery], value: Value) -> bool:
        """Whether drugs are named that another reading, as likely and as short, does not name."""
        for other in others:
            if other.cost - chosen.cost > _EQUAL or len(other.kinds) > len(chosen.kinds):
                continue
            plan = write_plan(other)
            try:
                rival = execute_plan(plan, GraphLookup(self.graph))[plan.steps[-1].n]
            except BadCalculation:
                continue
            differs = _set_of(rival).members and _said(rival) != _said(value)
            if differs and "drug" in (chosen.kinds[-1], other.kinds[-1]):
                return True
        return False

    def _hits_of(
        self, plan: LogicalPlan, values: Mapping[int, Value], words: Sequence[str] = ()
    ) -> list[Hit]:
        text = render_plan(plan)
        last = max(n for n in values if isinstance(plan.step_numbered(n).action, Retrieval))
        return [
            hit
            for n, value in values.items()
            if isinstance(value, ConceptSet) and isinstance(plan.step_numbered(n).action, Retrieval)
            for hit in rank_hits(
                ((passage, 1.0) for passage in self._passages(value, words if n == last else ())),
                text,
                f"{_STEP}{n}",
            )
        ]

    def _passages(self, concepts: ConceptSet, words: Sequence[str]) -> Iterator[Passage]:
        """The last relation of each member, as a passage about the member; only of members whose
        way there names a concept with each of the words ("the ulcer that … causes")."""
        for member in concepts.members.values():
            if words and not self._names_words(member.edges[:-1], words):
                continue
            concept = self.graph.get_concept(member.concept)
            if concept is not None:
                yield self.graph.relation_passage(concept, member.edges[-1])

    def _names_words(self, edges: Sequence[Edge], words: Sequence[str]) -> bool:
        ids = {end for edge in edges for end in (edge.subject, edge.object)}
        known = [concept for id in ids if (concept := self.graph.get_concept(id))]
        names = " ".join(name.casefold() for concept in known for name in concept.names)
        return all(_begins_word(word.casefold(), names) for word in words)


def _begins_word(word: str, text: str) -> bool:
    """Whether a word of the text begins with it, so that "tension" is not found in "hypertension";
    a number stands alone. Chinese has no spaces: there it stands anywhere."""
    if has_cjk(word):
        return word in text
    end = r"(?!\w)" if word.isdigit() else ""
    return re.search(rf"(?<!\w){re.escape(word)}{end}", text) is not None


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
    return int(hit.source.removeprefix(_STEP))


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


@dataclass(frozen=True)
class GraphRoute:
    """Answers a question by the graph; `None` where the graph cannot."""

    sets: Retriever
    forms: str = ""
    """A plan that is run in place of the question's own."""

    async def solve(self, question: Question, run: Run) -> Solution | None:
        """Raises `BudgetExceeded` where no search may be made."""
        asked = self.forms or question.text
        lookup = await look_up(self.sets, asked, run, k=MOST_RELATIONS, sources=(GRAPH,))
        if not lookup.hits:
            return None
        plan = read_plan(lookup.hits[0].query)
        lookups = FoundRelations(plan, lookup.hits, question.language)
        try:
            values = execute_plan(plan, lookups)
        except BadCalculation as error:
            run.emit(Noted(f"the graph does not answer: {error.message}"))
            return None
        return self._conclude(question, plan, values, lookups, run)

    def _conclude(
        self,
        question: Question,
        plan: LogicalPlan,
        values: Mapping[int, Value],
        lookups: FoundRelations,
        run: Run,
    ) -> Solution | None:
        last = plan.steps[-1].n
        answer = _word_value(values[last], lookups.passages, question.language)
        if answer is None:
            run.emit(Noted("the graph states nothing that answers this"))
            return None
        if question.options:
            letters = _options_among(values[last], question, lookups)
            if len(letters) != 1:
                return None
            answer = replace(answer, option=letters[0])
        run.emit(plan_event(plan, "formula"))
        for step in plan.steps:
            value = values[step.n]
            ids = tuple(lookups.passages[e].passage.id for e in _edges_of(value)[:SHOWN])
            run.emit(FormSolved(step.n, "done", _names_of(value), passages=ids))
        why = f"by the graph: {len(plan.steps)} steps"
        return Solution(answer, Halt.CONVERGED, why, run.usage, DecidedBy.METHOD)


def _options_among(value: Value, question: Question, relations: FoundRelations) -> list[str]:
    """The letters of the options that the value names: a member, a number, or yes."""
    if isinstance(value, ConceptSet | Comparison):
        ids = _set_of(value).members
        names = {name for id in ids for name in relations.names_of(id)}
    else:
        names = {_names_of(value).casefold(), *(("是", "有") if isinstance(value, Verdict) else ())}
    return [letter for letter, option in question.lettered if option.casefold().strip() in names]


def _edges_of(value: Value) -> tuple[Edge, ...]:
    """The relations that a value rests on, each once."""
    edges = (edge for member in _set_of(value).members.values() for edge in member.edges)
    return tuple(dict.fromkeys(edges))


def _set_of(value: Value) -> ConceptSet:
    match value:
        case ConceptSet():
            return value
        case Amount(_, counted):
            return counted
        case Verdict(_, because):
            return because
        case Comparison(best, _):
            return best


def _said(value: Value) -> set[str]:
    """What is told of a value: a verdict or an amount, else the members."""
    if isinstance(value, Verdict | Amount):
        return {_names_of(value)}
    return set(_set_of(value).members)


def _names_of(value: Value) -> str:
    match value:
        case Amount(number, _):
            return f"{number:.0f}"
        case Verdict(holds, _):
            return "yes" if holds else "not stated"
        case _:
            return "; ".join(_set_of(value).names)


def _word_value(value: Value, passages: Mapping[Edge, Hit], language: Language) -> Answer | None:
    """The value as statements that cite its relations; `None` for nothing and for "not stated":
    that a graph does not state a relation is no evidence against it."""
    members = list(_set_of(value).members.values())
    if not members or (isinstance(value, Verdict) and not value.holds):
        return None
    joint = "、" if language == "zh" else ", "
    listed, others = members[:SHOWN], members[SHOWN:]
    edges = [e for e in dict.fromkeys(e for m in listed for e in m.edges) if e in passages]
    edges = edges[: 3 * SHOWN]
    numbers = {edge: n for n, edge in enumerate(edges, 1)}
    match value:
        case Amount(number, _):
            names = joint.join(member.name for member in listed)
            head = _COUNT[language].format(value=number, names=names)
            statements = [Statement(head, tuple(numbers.values()))]
        case Comparison(best, sizes):
            summary = joint.join(f"{name} {size:g}" for name, size in sizes)
            head = _BEST[language].format(best=best.origin, sizes=summary)
            statements = [Statement(head, tuple(numbers.values()))]
        case Verdict():
            facts = _word_edges(edges, language)
            statements = [Statement(_YES[language].format(facts=facts), tuple(numbers.values()))]
        case _:
            statements = [
                Statement(
                    _MEMBER[language].format(name=one.name, facts=_word_edges(one.edges, language)),
                    tuple(numbers[edge] for edge in one.edges if edge in numbers),
                )
                for one in listed
            ]
    note = ""
    if others:
        names = joint.join(member.name for member in others[:SHOWN])
        note = _MORE[language].format(count=len(others), names=names)
    evidence = tuple(
        Evidence(passages[edge], 0, len(passages[edge].passage.text), GRAPH) for edge in edges
    )
    return Answer(tuple(statements), evidence, note=note, language=language)


def _word_edges(edges: Sequence[Edge], language: Language) -> str:
    joint = "；" if language == "zh" else "; "
    return joint.join(
        f"{edge.subject_name} {edge.predicate.replace('_', ' ')} {edge.object_name}"
        for edge in edges
    )

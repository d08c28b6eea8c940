"""Answers questions of several steps by the concept graph alone, without a model (§3.4).

The question is read, planned and looked up by one search, so that a tape holds all that the answer
needs; the plan is then executed over what was found. A question that may not be one for the graph,
or that the graph has no answer to, is left to the rest of the method.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import TYPE_CHECKING

from osler.errors import BadCalculation
from osler.graph.items import Edge
from osler.graph.store import Graph
from osler.kb.encoders.network import ReadTokens
from osler.methods.kag.graph_route.queries import STEP, FoundRelations, GraphQuery, write_plan
from osler.methods.kag.graph_route.sets import (
    Amount,
    Comparison,
    ConceptSet,
    GraphLookup,
    Value,
    Verdict,
    execute_plan,
)
from osler.methods.kag.logical_forms import LogicalPlan, Retrieval, render_plan
from osler.methods.kag.parse import read_plan
from osler.methods.kag.planner import plan_event
from osler.retrieve import look_up, rank_hits, search_errors
from osler.sources.catalogue import GRAPH
from osler.text import language_of
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

if TYPE_CHECKING:
    from osler.methods.kag.graph_route.reading import QuestionReading

MOST_RELATIONS = 500
"""Relations that an answer may rest on; one that needs more is left to the rest of the method."""
SHOWN = 20
"""Concepts that an answer lists with their evidence; of the others it says how many."""
LIKELY, LEADS = 0.25, 0.5
"""Share of an answer from which on it is given: of all that a question may mean, and of the
queries that were looked up."""
SURE = 0.8
"""The first for a yes or no, since a question that names two concepts seldom asks just for that,
and where a "not" is no part of the query."""
_WIRE = "Step1:"
"""How a plan begins; asked in place of a question, it is run as it stands."""
_YES: dict[Language, str] = {"en": "Yes: {facts}.", "zh": "是：{facts}。"}
_SAID = {"yes": ("是", "有"), "no": ("否", "不能", "不可以")}
_NO: dict[Language, str] = {"en": "No: {facts}.", "zh": "不宜：{facts}。"}
_COUNT: dict[Language, str] = {"en": "{value:.0f}: {names}.", "zh": "{value:.0f} 个：{names}。"}
_BEST: dict[Language, str] = {"en": "{best} ({sizes}).", "zh": "{best}（{sizes}）。"}
_MEMBER: dict[Language, str] = {"en": "{name}: {facts}.", "zh": "{name}：{facts}。"}
_MORE: dict[Language, str] = {
    "en": "{count} more are not listed: {names}.",
    "zh": "另有 {count} 个未列出：{names}。",
}


SettledPlan = tuple[LogicalPlan, Mapping[int, Value]]


@dataclass(frozen=True)
class GraphSets:
    """Everything that the plan of a question needs from the graph, as one search.

    Without an encoder only plans that are given are run.
    """

    graph: Graph
    read_tokens: ReadTokens | None = None

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """The relations of each step, at most `k` in all; none where there is no plan, or where
        it needs more. Raises `SourceUnavailable`."""
        with search_errors():
            return await asyncio.to_thread(self._find_relations, query, k)

    def _find_relations(self, question: str, k: int) -> list[Hit]:
        if question.startswith(_WIRE):
            found = self._execute(read_plan(question))
        else:
            reading = self._read(question)
            # One fact is searched as any question is, and no English encoder is loaded for it.
            if len(reading.starts) < 2 and not reading.kinds and reading.language == "en":
                return []
            found = self._settle(reading)
            if found is None or len(found[0].steps) < 3:
                return []
        hits = self._hits_of(*found) if found else []
        return hits if len(hits) <= k else []

    def _execute(self, plan: LogicalPlan) -> SettledPlan | None:
        try:
            return plan, execute_plan(plan, GraphLookup(self.graph))
        except BadCalculation:
            return None

    def settle(self, question: str) -> SettledPlan | None:
        """The plan of a question with the value of each step; `None` where no answer is likely."""
        return self._settle(self._read(question))

    def _read(self, question: str) -> QuestionReading:
        # What reads questions is imported once there is a graph to ask.
        from osler.methods.kag.graph_route.reading import QuestionReader

        return QuestionReader(self.graph).read(question, language_of(question))

    def _settle(self, reading: QuestionReading) -> SettledPlan | None:
        from osler.methods.kag.graph_route.pieces import STANDING, NamedPlace, read_shares
        from osler.methods.kag.graph_route.planning import plan_queries

        if self.read_tokens is None or reading.qualified or not 1 <= len(reading.starts) <= 2:
            return None
        places = [
            NamedPlace(one.start, one.end, next((k for k in STANDING if k in one.kinds), ""))
            for one in reading.starts
        ]
        shares = read_shares(reading.text, places, reading.language, self.read_tokens)
        if shares is None:
            return None
        every = 0.0
        answers: dict[frozenset[str], tuple[float, GraphQuery, SettledPlan]] = {}
        for query in plan_queries(reading, shares):
            every += exp(query.share)
            if found := self._look_up(query):
                said = _said(found[1][found[0].steps[-1].n])
                share, likelier, looked_up = answers.get(said, (0.0, query, found))
                answers[said] = share + exp(query.share), likelier, looked_up
        if not answers:
            return None
        best, query, settled = max(answers.values(), key=lambda one: one[0])
        unsaid = reading.denies and not query.denies
        sure = SURE if unsaid or query.operation == "judgement" else LIKELY
        return settled if best >= max(sure, LEADS * every) else None

    def _look_up(self, query: GraphQuery) -> SettledPlan | None:
        """The plan of a query and what it comes to; `None` for nothing. What a question names is no
        answer to it: others are left."""
        settled = self._execute(write_plan(query))
        if settled is None:
            return None
        plan, values = settled
        value = values[plan.steps[-1].n]
        members = _set_of(value).members
        named = members.keys() & {id for start in query.starts for id in start.concepts}
        if isinstance(value, ConceptSet) and named and (query.operation or len(plan.steps) > 2):
            if query.operation:
                return None
            (start,) = query.starts
            both = (start, start), (*query.chains, ())
            without = replace(query, starts=both[0], chains=both[1], operation="difference")
            return self._look_up(without)
        return settled if members or isinstance(value, Verdict) else None

    def _hits_of(self, plan: LogicalPlan, values: Mapping[int, Value]) -> list[Hit]:
        text = render_plan(plan)
        return [
            hit
            for n, value in values.items()
            if isinstance(value, ConceptSet) and isinstance(plan.step_numbered(n).action, Retrieval)
            for hit in rank_hits(
                ((passage, 1.0) for passage in self._passages(value)), text, f"{STEP}{n}"
            )
        ]

    def _passages(self, concepts: ConceptSet) -> Iterator[Passage]:
        """The last relation of each member, as a passage about the member."""
        for member in concepts.members.values():
            concept = self.graph.get_concept(member.concept)
            if concept is not None:
                yield self.graph.relation_passage(concept, member.edges[-1])


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
            run.emit(FormSolved(step.n, "done", tell_value(value), passages=ids))
        why = f"by the graph: {len(plan.steps)} steps"
        return Solution(answer, Halt.CONVERGED, why, run.usage, DecidedBy.METHOD)


def _options_among(value: Value, question: Question, relations: FoundRelations) -> list[str]:
    """The letters of the options that the value names: a member, a number, or yes."""
    if isinstance(value, ConceptSet | Comparison):
        ids = _set_of(value).members
        names = {name for id in ids for name in relations.names_of(id)}
    else:
        names = {tell_value(value).casefold(), *_SAID.get(tell_value(value), ())}
    return [letter for letter, option in question.lettered if option.casefold().strip() in names]


def _edges_of(value: Value) -> tuple[Edge, ...]:
    """The relations that a value rests on, each once."""
    edges = (edge for member in _set_of(value).members.values() for edge in member.edges)
    return tuple(dict.fromkeys(edges))


def _set_of(value: Value) -> ConceptSet:
    return value if isinstance(value, ConceptSet) else value.concepts


def _said(value: Value) -> frozenset[str]:
    """What tells one answer from another: its members, and whether it is a verdict or an amount."""
    kind = "" if isinstance(value, ConceptSet | Comparison) else type(value).__name__
    return frozenset((kind, *_set_of(value).members))


def tell_value(value: Value) -> str:
    """A value in short: names, a number, "yes", "no" or "not stated"."""
    match value:
        case Amount(number, _):
            return f"{number:.0f}"
        case Verdict():
            return value.said
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
            told = [(_COUNT[language].format(value=number, names=names), edges)]
        case Comparison(best, sizes):
            summary = joint.join(f"{name} {size:g}" for name, size in sizes)
            told = [(_BEST[language].format(best=best.origin, sizes=summary), edges)]
        case Verdict():
            words = (_NO if value.denies else _YES)[language]
            told = [(words.format(facts=_word_edges(edges, language)), edges)]
        case _:
            facts = [_word_edges(one.edges, language) for one in listed]
            told = [
                (_MEMBER[language].format(name=one.name, facts=own), list(one.edges))
                for one, own in zip(listed, facts, strict=True)
            ]
    note = ""
    if others:
        names = joint.join(member.name for member in others[:SHOWN])
        note = _MORE[language].format(count=len(others), names=names)
    evidence = tuple(
        Evidence(passages[edge], 0, len(passages[edge].passage.text), GRAPH) for edge in edges
    )
    statements = tuple(
        Statement(text, tuple(numbers[edge] for edge in own if edge in numbers))
        for text, own in told
    )
    return Answer(statements, evidence, note=note, language=language)


def _word_edges(edges: Sequence[Edge], language: Language) -> str:
    joint = "；" if language == "zh" else "; "
    return joint.join(
        f"{edge.subject_name} {edge.predicate.replace('_', ' ')} {edge.object_name}"
        for edge in edges
    )

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

from osler.errors import BadCalculation
from osler.graph.items import Edge
from osler.graph.store import Graph
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


SettledPlan = tuple[LogicalPlan, Mapping[int, Value], Sequence[str]]


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
        found = self.settle(question)
        if found is None or len(found[0].steps) < 3:  # one fact: searched as any question is
            return []
        hits = self._hits_of(*found)
        return hits if len(hits) <= k else []

    def settle(self, question: str) -> SettledPlan | None:
        """The plan of a question with the value of each step, and the words that a concept on the
        way is called by; `None` where none has an answer that is beyond doubt."""
        # What reads questions is imported once there is a graph to ask.
        from osler.methods.kag.graph_route.planning import plan_queries
        from osler.methods.kag.graph_route.reading import QuestionReader

        reader = QuestionReader(self.graph)
        reading = reader.read(question, language_of(question))
        if reading.unexplained and reading.starts:
            reading = reader.read_without_asides(reading)
        queries = plan_queries(reading)
        for n, query in enumerate(queries):
            plan = write_plan(query)
            try:
                values = execute_plan(plan, GraphLookup(self.graph))
            except BadCalculation:
                return None
            value = values[plan.steps[-1].n]
            single, answer = len(plan.steps) < 3, _set_of(value).members
            named = {id for start in reading.starts for id in start.concepts}
            is_set = isinstance(value, ConceptSet) and answer
            if is_set and len(reading.relations) == 1 and named.issuperset(answer):
                return None  # what the question names is no answer to it
            # The words may say more than one fact, and a reading of one fact then is none.
            whole = len(query.kinds) >= reading.passed_kinds and query.is_complete
            if single and not whole and (not answer or reading.language == "zh"):
                continue
            if not answer and not single:
                continue
            refused = single and (not whole or not answer or reading.qualifiers)
            if refused or self._is_doubtful(query, queries[n + 1 :], value, reading.language):
                return None
            return plan, values, reading.qualifiers
        return None

    def _run_given(self, plan: LogicalPlan, k: int) -> list[Hit]:
        try:
            hits = self._hits_of(plan, execute_plan(plan, GraphLookup(self.graph)))
        except BadCalculation:
            return []
        return hits if len(hits) <= k else []

    def _is_doubtful(
        self,
        chosen: GraphQuery,
        others: Sequence[GraphQuery],
        value: Value,
        language: Language,
    ) -> bool:
        """Whether another reading, as likely and as short, says otherwise: in English of drugs, in
        Chinese of anything."""
        for other in others:
            if other.cost - chosen.cost > _EQUAL or len(other.kinds) > len(chosen.kinds):
                continue
            plan = write_plan(other)
            try:
                rival = execute_plan(plan, GraphLookup(self.graph))[plan.steps[-1].n]
            except BadCalculation:
                continue
            differs = _set_of(rival).members and _said(rival) != _said(value)
            if differs and (language == "zh" or "drug" in (chosen.kinds[-1], other.kinds[-1])):
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
                f"{STEP}{n}",
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
    match value:
        case ConceptSet():
            return value
        case Amount(_, counted):
            return counted
        case Verdict(_, because, _):
            return because
        case Comparison(best, _):
            return best


def _said(value: Value) -> set[str]:
    """What is told of a value: a verdict or an amount, else the members."""
    if isinstance(value, Verdict | Amount):
        return {tell_value(value)}
    return set(_set_of(value).members)


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
            head = _COUNT[language].format(value=number, names=names)
            statements = [Statement(head, tuple(numbers.values()))]
        case Comparison(best, sizes):
            summary = joint.join(f"{name} {size:g}" for name, size in sizes)
            head = _BEST[language].format(best=best.origin, sizes=summary)
            statements = [Statement(head, tuple(numbers.values()))]
        case Verdict():
            said = (_NO if value.denies else _YES)[language].format(
                facts=_word_edges(edges, language)
            )
            statements = [Statement(said, tuple(numbers.values()))]
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

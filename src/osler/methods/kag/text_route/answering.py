"""Answers questions that chain stated relations from texts, step by step, without a model (§3.1.2).

Each step searches what the step before found and takes its value from a passage by the span rule,
so that every value has the sentence that states it. A step without a sure span is unknown; what was
found for it is still there to quote.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from osler.answer import UNDECIDED, Composer, who_decided
from osler.errors import BadCalculation
from osler.graph.items import Edge
from osler.methods.kag.graph_route.sets import (
    Comparison,
    ConceptSet,
    Member,
    Value,
    Verdict,
    compare_sets,
    shared_members,
)
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
from osler.methods.kag.planner import plan_event
from osler.methods.kag.pool import QuestionSearch, merge_hits
from osler.methods.kag.text_route.facts import FactFinder, StatedFact
from osler.methods.kag.text_route.open_spans import find_open_span
from osler.methods.kag.text_route.reading import Chain, TextQuery, read_question
from osler.methods.kag.text_route.relations import read_text_vocabulary
from osler.methods.kag.text_route.spans import plain_name, read_date
from osler.trace import FormSolved, Noted, Run
from osler.types import (
    Answer,
    DecidedBy,
    Evidence,
    Halt,
    Hit,
    Question,
    Solution,
    Statement,
)

_LOOSE = 3
_STATES = "states"


Facts = dict[Edge, StatedFact]
"""What the steps of one question have found, in order."""


@dataclass(frozen=True)
class TextRoute:
    """Answers a question by the texts; `None` for one that chains no relations."""

    finder: FactFinder
    composer: Composer
    pool: QuestionSearch | None = None
    leaves_unknown: bool = False
    """Whether a question whose steps are not all found is left to the rest of the method; else it
    is answered by quotes from what was found."""

    async def solve(self, question: Question, run: Run) -> Solution | None:
        """Raises `BudgetExceeded` where no search may be made."""
        if question.language != "en" or question.options:
            return None
        queries = read_question(question.text)
        if not queries:
            return None
        whole = () if self.pool is None else await self.pool.find_passages(question, run)
        tried = []
        for query in queries:
            facts: Facts = {}
            value = await self._execute(query, facts, run)
            if value is not None:
                return _conclude(query, value, facts, run)
            tried.append((query, facts))
        run.emit(Noted("a step of the question has no sure answer in the texts"))
        if self.leaves_unknown:
            return None
        # The reading that came furthest.
        query, facts = max(tried, key=lambda pair: len(pair[1]))
        return await self._quote(question, query, facts, whole, run)

    async def _execute(self, query: TextQuery, facts: Facts, run: Run) -> Value | None:
        """The value of a query; `None` as soon as a step has none."""
        ends = []
        for chain in query.chains:
            end = await self._follow(chain, facts, run)
            if end is None:
                return None
            ends.append(end)
        if query.rest:
            return await self._ask_rest(query.rest, ends[0], facts, run)
        if not query.operation:
            return ends[0]
        if query.operation == "same":
            verdict = shared_members(ends)
            # Two values that differ are a "no" only where both are plainly stated.
            plain = all(fact.span.looseness < _LOOSE for fact in facts.values())
            return verdict if verdict.holds or plain else None
        try:
            sizes = [_size_of(end) for end in ends]
            return compare_sets(ends, sizes, largest=query.operation in ("latest", "largest"))
        except BadCalculation as error:
            run.emit(Noted(error.message))
            return None

    async def _follow(self, chain: Chain, facts: Facts, run: Run) -> ConceptSet | None:
        edges: tuple[Edge, ...] = ()
        name = chain.name
        for hop in chain.hops:
            fact = await self.finder.find_fact(name, hop, run)
            if fact is None:
                return None
            facts[fact.edge] = fact
            edges = (*edges, fact.edge)
            name = fact.edge.object_name
        members = {
            value: Member(value, said, edges) for value, said in _split_values(edges[-1]).items()
        }
        return ConceptSet(members, chain.name)

    async def _ask_rest(
        self, rest: str, end: ConceptSet, facts: Facts, run: Run
    ) -> ConceptSet | None:
        """The typed span of the passage sentence nearest to what is left of the question."""
        (known,) = list(end.members.values())[:1]
        asked = rest.replace("#1", known.name)
        result = await self.finder.search(asked, run)
        nearest = find_open_span(asked, [hit.passage.text for hit in result])
        if nearest is None:
            return None
        at, span = nearest
        value = plain_name(span.value)
        edge = Edge(plain_name(known.name), _STATES, value, known.name, span.value)
        facts[edge] = StatedFact(edge, result[at], span)
        return ConceptSet({value: Member(value, span.value, (*known.edges, edge))}, end.origin)

    async def _quote(
        self, question: Question, query: TextQuery, facts: Facts, whole: Sequence[Hit], run: Run
    ) -> Solution:
        """Quotes from what was found, where a step is unknown."""
        _emit_steps(write_text_plan(query), facts, "", run)
        hits = merge_hits([fact.hit for fact in facts.values()], whole)
        answer = await self.composer.conclude(question, hits, "", run)
        why = f"{len(facts)} of {query.lookups} steps answered by the texts"
        halt = Halt.NO_EVIDENCE if answer.is_silent else Halt.CONVERGED
        return Solution(answer, halt, why, run.usage, who_decided(self.composer, UNDECIDED))


def _emit_steps(plan: LogicalPlan, facts: Facts, value: str, run: Run) -> None:
    """The plan and the result of each step; the steps without a fact have `value`."""
    run.emit(plan_event(plan, "formula"))
    for step, fact in itertools.zip_longest(plan.steps, facts.values()):
        shown = value if fact is None else fact.edge.object_name
        ids = () if fact is None else (fact.hit.passage.id,)
        run.emit(FormSolved(step.n, "done" if shown else "failed", shown, passages=ids))


def _conclude(query: TextQuery, value: Value, facts: Facts, run: Run) -> Solution:
    plan = write_text_plan(query)
    _emit_steps(plan, facts, word_value(value), run)
    why = f"by the texts: {len(plan.steps)} steps"
    return Solution(word_answer(value, facts), Halt.CONVERGED, why, run.usage, DecidedBy.METHOD)


def _split_values(edge: Edge) -> dict[str, str]:
    """The values of a fact by what makes them equal: "Hungarian-American" is of two countries."""
    countries = read_text_vocabulary().countries
    if edge.predicate != "country":
        return {edge.object: edge.object_name}
    parts = [part for part in re.split(r"[-–/ ]+(?=[A-Z])", edge.object_name) if part in countries]
    if edge.object_name in countries or not parts:
        parts = [edge.object_name]
    return {plain_name(countries.get(part, part)): part for part in parts}


def _size_of(found: ConceptSet) -> float:
    """The one value of a set as a date or a number. Raises `BadCalculation` for none."""
    (text,) = found.names
    size = float(text.split()[0]) if text.endswith(" years") else read_date(text)
    if size is None:
        raise BadCalculation(f"{text!r} is no date")
    return size


def write_text_plan(query: TextQuery) -> LogicalPlan:
    """The query as logical forms (§3.1.1)."""
    steps: list[PlanStep] = []
    ends = [_write_chain(steps, chain, n) for n, chain in enumerate(query.chains, 1)]
    last = ends[0]
    n = len(steps) + 1
    form: Form | None = None
    if query.rest:
        last = f"o{n}"
        subject = SpoNode(ends[0])
        form = Retrieval(subject, SpoNode(f"p{n}", "answer"), SpoNode(last))
        steps.append(PlanStep(n, query.rest.replace("#1", f"#{n - 1}"), form))
    elif query.operation == "same":
        last = f"d{n}"
        form = Deduce(Operation.JUDGEMENT, tuple(ends), "shared", last)
        steps.append(PlanStep(n, f"Are {_as_references(ends)} the same?", form))
    elif query.operation:
        last = f"m{n}"
        words = f"The {query.operation} of {_as_references(ends)}"
        steps.append(PlanStep(n, words, Math(tuple(ends), query.operation, last)))
    steps.append(PlanStep(len(steps) + 1, "The answer", Output((last,))))
    return LogicalPlan(tuple(steps))


def _as_references(ends: Sequence[str]) -> str:
    return " and ".join(f"#{end[1:]}" for end in ends)


def _write_chain(steps: list[PlanStep], chain: Chain, number: int) -> str:
    """Adds a Retrieval for each hop; the alias of the last result."""
    node, said = SpoNode(f"s{number}", "thing", chain.name), chain.name
    for hop in chain.hops:
        n = len(steps) + 1
        words = f"{read_text_vocabulary().relations[hop].nouns[0]} of {said}"
        steps.append(PlanStep(n, words, Retrieval(node, SpoNode(f"p{n}", hop), SpoNode(f"o{n}"))))
        node, said = SpoNode(f"o{n}"), f"#{n}"
    return node.alias


def word_value(value: Value) -> str:
    """The value in a few words."""
    match value:
        case Verdict(holds, _):
            return "yes" if holds else "no"
        case Comparison(best, _):
            return best.origin
        case ConceptSet():
            return "; ".join(value.names)
        case _:
            return f"{value.value:g}"


def word_answer(value: Value, facts: Facts) -> Answer:
    """The value, then each fact that it rests on with the sentence that states it.

    A value of no known relation is not claimed: the sentence that it stands in is quoted.
    """
    stated = list(facts.values())
    numbers = tuple(range(1, len(stated) + 1))
    evidence = tuple(
        Evidence(fact.hit, fact.span.start, fact.span.end, "answer") for fact in stated
    )
    *_, last = stated
    if last.edge.predicate == _STATES:
        head = Statement(evidence[-1].quote, (len(stated),))
    else:
        shown = word_value(value)
        head = Statement(f"{shown[0].upper()}{shown[1:]}.", numbers)
    steps = [
        Statement(_word_fact(fact), (n,))
        for n, fact in zip(numbers, stated, strict=True)
        if fact.edge.predicate != _STATES
    ]
    return Answer((head, *steps), evidence)


def _word_fact(fact: StatedFact) -> str:
    noun = read_text_vocabulary().relations[fact.edge.predicate].nouns[0]
    value = fact.edge.object_name
    if value.endswith(" years"):
        value = f"{int(float(value.split()[0]))} years"
    return f"{fact.edge.subject_name}: {noun} {value}."

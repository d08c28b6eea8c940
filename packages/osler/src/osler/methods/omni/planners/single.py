"""Planners that see no results: Original Question, Query2Doc, Prompting, or a plan of the user's.

Original Question is a baseline of Omni-RAG (App. D.3, after MedRAG): the question itself to every
source, and to the graph with the concepts that it is about (App. E.5):

<term>term0 , term1 , …</term>          fewer than four

Query2Doc writes a passage that could answer, in the style of each source (App. D.3, E.6).

Prompting asks a model for the plan (App. D.3, E.7); better ones are asked for by E.8.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from osler.errors import MalformedOutput
from osler.llm.core.ask import Speaker
from osler.llm.core.base import LanguageModel, Message, Sampling
from osler.llm.core.grammar import Grammar, alt, free_text, repeat, seq
from osler.methods.omni.dossier import SavedPlan
from osler.methods.omni.plan import (
    MOST,
    DroppedQuery,
    PlanReading,
    Query,
    SourcePlan,
    expect_source_plan,
    render_source_plan,
    source_plan_grammar,
    term_part,
)
from osler.methods.omni.planners import (
    Proposal,
    SourceDescription,
    as_it_stands,
    plan_fallback,
    queries_of,
    source_variables,
)
from osler.prompts import RenderedPrompt, render_question_prompt
from osler.sources.catalogue import GRAPH
from osler.text import clean_text, one_line
from osler.trace import BudgetExceeded, Noted, Run
from osler.trace.ordered import gather_ordered
from osler.types import Question


@dataclass(frozen=True)
class OriginalQuestion:
    """Sends the question itself to every source; costs one model call, only with a graph."""

    terms: TermExtractor
    offers: tuple[SourceDescription, ...]

    async def plan(self, question: Question, run: Run) -> Proposal:
        queries = as_it_stands(question, self.offers)
        if any(offer.is_graph for offer in self.offers):
            try:
                queries += await self.terms.extract_queries(question, run)
            except BudgetExceeded as spent:
                run.emit(Noted(f"the graph is not asked: {spent}"))
        return Proposal(SourcePlan.of(queries), "fixed")


@dataclass(frozen=True)
class GivenPlan:
    """Runs a plan as it is, with any number of queries per source; stored results are reused."""

    saved: SavedPlan

    async def plan(self, question: Question, run: Run) -> Proposal:
        reading = self.saved.plan_reading
        return Proposal(reading.plan, "user", reading.dropped, self.saved.results_by_query)


TERMS = 3
"""Terms of a question (App. E.5)."""

_TAGGED = re.compile(r"<\s*terms?\s*>(.*?)(?:<\s*/\s*terms?\s*>|$)", re.IGNORECASE | re.DOTALL)
_EXPECTED = "<term>term , term</term> with at least one term"


@dataclass(frozen=True)
class TermExtractor:
    """Extracts at most three terms, each queried in the graph together with the question (App.
    D.3)."""

    speaker: Speaker
    among: Callable[[str], Sequence[str]] | None = None
    """Names found in a question, among which a small model must choose; `None` = any words."""

    async def extract_queries(self, question: Question, run: Run) -> list[Query]:
        """The graph queries; empty, with a note, when no term can be read. Raises
        `BudgetExceeded`."""
        prompt = render_question_prompt("omni/terms", question, at_most=TERMS)
        names = self.among(question.text) if self.among else ()
        try:
            terms = await self.speaker.ask(
                prompt,
                lambda reply: parse_terms(reply.text),
                run,
                grammar=terms_grammar(among=names),
            )
        except MalformedOutput as error:
            run.emit(Noted(f"the graph is not asked: {error.message}"))
            return []
        return [
            query for term in terms for query in queries_of(GRAPH, [question.with_options], term)
        ]


def parse_terms(reply: str, *, at_most: int = TERMS) -> tuple[str, ...]:
    """The first `at_most` terms, none twice; the last tag counts, as the first may be quoted.

    Separated by " , " as in the paper, by ";" or line; a reply that has none of these by other
    commas. Raises `MalformedOutput` for a reply without a tag or without a term in it.
    """
    tags = _TAGGED.findall(clean_text(reply))
    if not tags:
        raise MalformedOutput(reply, expected=_EXPECTED)
    parts = re.split(r"\s,\s|[;；、\n]", tags[-1])
    if len(parts) == 1:
        parts = re.split(r",\s|，", tags[-1])  # not at every comma: 1,25-dihydroxyvitamin D
    terms = [one_line(part).strip(" ,，") for part in parts]
    kept: dict[str, str] = {}
    for term in filter(None, terms):
        kept.setdefault(term.casefold(), term)
    if not kept:
        raise MalformedOutput(reply, expected=_EXPECTED)
    return tuple(kept.values())[:at_most]


def terms_grammar(*, at_most: int = TERMS, longest: int = 8, among: Sequence[str] = ()) -> Grammar:
    """One to `at_most` terms of up to `longest` words; of those `among`, where any are given."""
    term = alt(*among) if among else term_part(longest)
    more = repeat(seq(" , ", term), 0, at_most - 1)
    return Grammar("terms", seq("<term>", term, more, "</term>"))


_PASSAGE = re.compile(r"<\s*passage\s*>(.*?)(?:<\s*/\s*passage\s*>|$)", re.IGNORECASE | re.DOTALL)
_COPIED = ("your passage", "文字")
LONGEST = 800
"""Characters of a passage under the grammar; a small model would not stop by itself."""


@dataclass(frozen=True)
class Query2Doc:
    """Queries are the question followed by a generated passage, as in Query2doc itself.

    The graph is queried as by Original Question.
    """

    speaker: Speaker
    terms: TermExtractor
    offers: tuple[SourceDescription, ...]
    keep_question: bool = True
    """False: the passage alone is the query."""

    async def plan(self, question: Question, run: Run) -> Proposal:
        works = [partial(self._queries_for, question, offer) for offer in self.offers]
        # One call per source, concurrently; events stay in source order.
        made = await gather_ordered(run, works)
        return Proposal(SourcePlan.of(query for queries in made for query in queries))

    async def _queries_for(
        self, question: Question, offer: SourceDescription, run: Run
    ) -> list[Query]:
        try:
            if offer.is_graph:
                return await self.terms.extract_queries(question, run)
            return await self._write_queries(question, offer, run)
        except BudgetExceeded as spent:
            run.emit(Noted(f"{offer.name} is asked as the question stands: {spent}"))
            return [] if offer.is_graph else queries_of(offer.name, [question.with_options])

    async def _write_queries(
        self, question: Question, offer: SourceDescription, run: Run
    ) -> list[Query]:
        prompt = render_question_prompt(
            "omni/passage",
            question,
            source=offer.name,
            description=offer.describe_in(question.language),
        )
        asked = question.with_options
        try:
            passage = await self.speaker.ask(
                prompt, lambda reply: read_passage(reply.text), run, grammar=passage_grammar()
            )
        except MalformedOutput as error:
            run.emit(Noted(f"{offer.name} is asked as the question stands: {error.message}"))
            return queries_of(offer.name, [asked])
        return queries_of(offer.name, [f"{asked}\n{passage}" if self.keep_question else passage])


def read_passage(reply: str) -> str:
    """The passage on one line; the last tag counts, closed or not. Raises `MalformedOutput`."""
    for found in reversed(_PASSAGE.findall(clean_text(reply))):
        passage = one_line(found)
        if passage and passage.casefold() not in _COPIED:
            return passage
    raise MalformedOutput(reply, expected="<passage>…</passage>")


def passage_grammar(longest: int = LONGEST) -> Grammar:
    return Grammar("passage", seq("<passage>", free_text(longest, without="<>"), "</passage>"))


@dataclass(frozen=True, slots=True)
class PlanAttempt:
    """A plan that was tried, with its feedback."""

    plan: SourcePlan
    score: int
    """0 to 5."""
    suggestion: str
    dropped: tuple[DroppedQuery, ...] = ()
    """Text of the reply that is not in the plan."""
    ends: bool = False
    """Whether nothing better is to be sought, or nothing leads there."""


def plan_prompt(
    question: Question,
    offers: tuple[SourceDescription, ...],
    at_most: int = MOST,
) -> RenderedPrompt:
    """Prompt E.7, in planning as in training records."""
    sources = source_variables(offers, question.language)
    return render_question_prompt("omni/plan", question, sources=sources, at_most=at_most)


@dataclass(frozen=True)
class Proposer:
    """Asks for a plan, or for a better one given feedback on earlier ones."""

    speaker: Speaker
    offers: tuple[SourceDescription, ...]
    at_most: int = MOST

    @property
    def source_names(self) -> tuple[str, ...]:
        return tuple(offer.name for offer in self.offers)

    def for_source(self, source: str) -> Proposer:
        """A copy that plans for one of its sources alone."""
        return replace(self, offers=tuple(o for o in self.offers if o.name == source))

    async def propose(
        self, question: Question, run: Run, tried: Sequence[PlanAttempt] = ()
    ) -> PlanReading:
        """Proposes a plan in view of the attempts `tried`.

        Raises `MalformedOutput` for replies without any source's tag, and `BudgetExceeded`.
        Without sources the model is not asked.
        """
        if not self.offers:
            return PlanReading(SourcePlan())
        return await self.speaker.ask(
            self._render_prompt(question, tried),
            lambda reply: expect_source_plan(
                reply.text, sources=self.source_names, at_most=self.at_most
            ),
            run,
            grammar=source_plan_grammar(self.source_names, at_most=self.at_most),
        )

    def _render_prompt(self, question: Question, tried: Sequence[PlanAttempt]) -> RenderedPrompt:
        if not tried:
            return plan_prompt(question, self.offers, self.at_most)
        return render_question_prompt(
            "omni/improve",
            question,
            sources=source_variables(self.offers, question.language),
            at_most=self.at_most,
            feedback=[
                {
                    "plan": render_source_plan(attempt.plan, self.source_names),
                    "score": attempt.score,
                    "suggestion": attempt.suggestion,
                }
                for attempt in tried
            ],
        )


@dataclass(frozen=True)
class Prompting:
    proposer: Proposer

    async def plan(self, question: Question, run: Run) -> Proposal:
        try:
            reading = await self.proposer.propose(question, run)
        except MalformedOutput as error:
            return plan_fallback(question, self.proposer.offers, error.message, run)
        return Proposal(reading.plan, dropped=reading.dropped)


SYSTEM = "You are a helpful assistant."
"""The system line of the released training records."""
# Not configurable: another temperature would be another method.
SAMPLING = Sampling(temperature=0.0, max_tokens=1000, top=0)
"""App. D.4 and the released code: greedy, 1,000 tokens."""


def trained_planner(
    model: LanguageModel,
    offers: tuple[SourceDescription, ...],
    *,
    at_most: int = MOST,
    seed: int = 0,
) -> Prompting:
    """A model trained to plan (§4.2), or another in its place: full weights, an adapter, a server.

    It is prompted as it was trained: the paper's record is a system line, the prompt E.7 and the
    plan, decoded greedily (App. D.4), and not constrained by a grammar.
    """
    speaker = Speaker(model, "planner", replace(SAMPLING, seed=seed), system=SYSTEM)
    return Prompting(Proposer(speaker, offers, at_most))


def planner_messages(
    question: Question,
    offers: tuple[SourceDescription, ...],
    at_most: int = MOST,
) -> list[Message]:
    """The messages before the plan, in training records and in `trained_planner` alike."""
    prompt = plan_prompt(question, offers, at_most)
    return [Message("system", SYSTEM), Message("user", prompt.text)]

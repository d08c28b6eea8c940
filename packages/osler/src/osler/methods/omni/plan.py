"""The source plan of Omni-RAG (§4.1): the queries for each source.

Its wire form is the paper's (App. E.2, E.7), tags in the order of the sources:

    <book> q0 ; q1 </book>

    <guideline></guideline>                an empty tag: not needed

    <graph> term0 , query0 ; term1 , query1 </graph>

Models write it imperfectly, so the parser is tolerant and reports what it dropped. A query
contains no ";" and no tag, a graph term no " , ": so a rendered plan parses back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from osler.errors import MalformedOutput
from osler.llm.core.grammar import (
    Grammar,
    Named,
    Node,
    alt,
    free_text,
    maybe,
    named_rule,
    repeat,
    seq,
    visible_char,
)
from osler.methods.omni.written_plans import find_written_plans
from osler.questions import QUERY_LIMIT
from osler.sources.catalogue import ALL_SOURCES, GRAPH, SOURCES
from osler.text import one_line
from osler.trace import PlannedQuery

PlannerName = Literal["original", "query2doc", "prompting", "reflexion", "serts", "trained"]
"""The planners' names in settings, the only list of them."""
MOST = 3
"""Queries for a source (§4.1)."""
LONGEST = QUERY_LIMIT
"""Characters of a query or term, which may be a whole question or passage; longer ones are cut."""
WRITTEN = 300
"""Characters of a query that a model was asked to write."""
LONGEST_WORD = 24
"""Characters of one word under the grammar."""

# Signs of the wire form itself, replaced inside queries.
_OWN_SEPARATORS = str.maketrans({";": ",", "；": "，", "{": " ", "}": " "})
# What E.2 writes where the model should write its own words.
_PLACEHOLDER = re.compile(r"\b(?:search_query|query_for_term|medical_term)\d*\b:?", re.IGNORECASE)
_INSTRUCTION = re.compile(r"\(\s*Use\s*[;；][^()]*\)", re.IGNORECASE)
_NOTHING = re.compile(
    r"(?:none|null|n/a|empty|not (?:needed|required)|no quer(?:y|ies)(?: needed)?"
    r"|无|空|不需要|无需检索)[.。]?",
    re.IGNORECASE,
)
_ANY_TAG = re.compile(r"[<＜]\s*/?\s*[\w.-]+\s*/?\s*[>＞]")
_BULLET = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)、])\s+")
_EXPECTED = "a tag for each source, as <book> query ; query </book>, empty where it is not needed"


@dataclass(frozen=True, slots=True)
class Query:
    """A query for one source; `Query.of` makes one from any text.

    Raises `ValueError` for text that the wire form cannot express.
    """

    source: str
    text: str
    """Empty only for a graph term without a further query."""
    term: str = ""
    """The concept to start from; only for the graph."""

    def __post_init__(self) -> None:
        # Queries of the graph, and only those, start from a term (App. E.2).
        if (self.source == GRAPH) is not bool(self.term) or not self.wire:
            raise ValueError(f"no query for {self.source}: {self.term!r}, {self.text!r}")
        if (self.text, self.term) != (_tidy_text(self.text), _tidy_term(self.term)):
            raise ValueError(f"the wire form cannot say {self.term!r}, {self.text!r}")

    @classmethod
    def of(cls, source: str, text: str, term: str = "") -> Query:
        """Makes a query that the wire form can express: on one line, with "," for ";".

        Raises `ValueError` when no query is left.
        """
        return cls(source, _tidy_text(text), _tidy_term(term))

    @classmethod
    def read_wire(cls, source: str, wire: str) -> Query:
        """Parses a query's `wire` form. Raises `ValueError` for an empty or an overlong one."""
        text, term = _split_term(source, wire)
        if max(len(text), len(term)) > LONGEST:
            raise ValueError(f"longer than {LONGEST} characters")
        return cls.of(source, text, term)

    @property
    def wire(self) -> str:
        return f"{self.term} , {self.text}" if self.term and self.text else self.term or self.text


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """P = {(i, j, q)} (§4.1): distinct queries by source. `SourcePlan.of` puts them in order."""

    queries: tuple[Query, ...] = ()

    def __post_init__(self) -> None:
        if self.queries != tuple(_order_queries(self.queries)):
            raise ValueError("the queries of a plan must be distinct and ordered by source")

    @classmethod
    def of(cls, queries: Iterable[Query]) -> SourcePlan:
        """Orders queries by source, keeping the order within each; repeated ones are dropped."""
        return cls(tuple(_order_queries(queries)))

    def of_source(self, source: str) -> tuple[Query, ...]:
        return tuple(query for query in self.queries if query.source == source)

    @property
    def planned_queries(self) -> tuple[PlannedQuery, ...]:
        """The triples (i, j, q) for the event; j counts from 0 in each source."""
        return tuple(
            PlannedQuery(source, j, query.wire)
            for source in dict.fromkeys(query.source for query in self.queries)
            for j, query in enumerate(self.of_source(source))
        )


@dataclass(frozen=True, slots=True)
class DroppedQuery:
    """Text of a reply that is not in the plan, or not in full."""

    source: str
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class PlanReading:
    """A parsed plan and what parsing dropped."""

    plan: SourcePlan
    dropped: tuple[DroppedQuery, ...] = ()
    missing: tuple[str, ...] = ()
    """Sources without a tag; they are not queried."""


def render_source_plan(plan: SourcePlan, sources: Sequence[str] = SOURCES) -> str:
    """Renders the wire form with a tag for each of `sources`; `parse_source_plan` is the inverse.

    Raises `ValueError` for a plan that queries another source.
    """
    if others := {query.source for query in plan.queries} - set(sources):
        raise ValueError(f"the plan queries an unknown source: {', '.join(sorted(others))}")
    return "\n\n".join(_render_tag(source, plan.of_source(source)) for source in sources)


def _render_tag(source: str, queries: Sequence[Query]) -> str:
    inner = " ; ".join(query.wire for query in queries)
    return f"<{source}> {inner} </{source}>" if inner else f"<{source}></{source}>"


def parse_source_plan(
    reply: str,
    *,
    sources: Sequence[str] = SOURCES,
    at_most: int = MOST,
    longest: int = LONGEST,
) -> PlanReading:
    """Parses the plan in a reply; never raises, whatever the reply.

    Accepts tags in capitals, unclosed, closed by another's, repeated or absent, full-width ";",
    "，" and "＜", one query per line, and copied placeholders (which are dropped). Keeps the first
    `at_most` queries of a source, and the first `longest` characters of each.
    """
    whole = PlanReading(SourcePlan(), missing=tuple(sources))
    for tags in find_written_plans(reply, sources):
        reader = _PlanReader(at_most, min(longest, LONGEST), [], [])
        for source, content in tags:
            reader.read_tag(source, content)
        seen = {source for source, _ in tags}
        missing = tuple(source for source in sources if source not in seen)
        # The last is the plan, and what stands before it an attempt; one that asks nothing after
        # one that does is the form repeated.
        if reader.kept or not whole.plan.queries:
            whole = PlanReading(SourcePlan.of(reader.kept), tuple(reader.dropped), missing)
    return whole


def expect_source_plan(
    reply: str, *, sources: Sequence[str] = SOURCES, at_most: int = MOST
) -> PlanReading:
    """Parses the plan that a model was asked for, as `parse_source_plan` does.

    Raises `MalformedOutput` for a reply without any source's tag, so that the model is asked again.
    """
    reading = parse_source_plan(reply, sources=sources, at_most=at_most, longest=WRITTEN)
    if set(reading.missing) == set(sources):
        raise MalformedOutput(reply, expected=_EXPECTED)
    return reading


@dataclass
class _PlanReader:
    at_most: int
    longest: int
    kept: list[Query]
    dropped: list[DroppedQuery]

    def read_tag(self, source: str, content: str) -> None:
        for item in _split_items(content):
            if (why := self._keep_item(source, item)) is not None:
                self.dropped.append(DroppedQuery(source, item[:WRITTEN], why))

    def _keep_item(self, source: str, item: str) -> str | None:
        """Keeps the item; returns why it was not kept in full, or `None`."""
        text, term = _split_term(source, item)
        try:
            query = Query.of(source, text[: self.longest], term[: self.longest])
        except ValueError:
            return "no query"
        of_source = [kept for kept in self.kept if kept.source == source]
        if any(_is_same(query, kept) for kept in of_source):
            return "said before"
        if len(of_source) >= self.at_most:
            return f"more than {self.at_most}"
        self.kept.append(query)
        # Kept, but reported: the plan differs from what the model wrote.
        cut = max(len(text), len(term)) > self.longest
        return f"longer than {self.longest} characters: cut" if cut else None


def _split_term(source: str, item: str) -> tuple[str, str]:
    """Splits text and term at the first " , ": terms contain commas ("Diabetes, Type 2")."""
    if source != GRAPH:
        return item, ""
    # The full-width comma separates as " , " does in Chinese replies.
    separator = next((mark for mark in (" , ", "，") if mark in item), " , ")
    term, _, text = item.partition(separator)
    return text, term


def _split_items(content: str) -> Iterator[str]:
    content = _INSTRUCTION.sub(" ", content).strip()
    listed = "\n" in content
    for item in re.split(r"[;；\n]", content):
        item_text = one_line(_BULLET.sub("", item, count=1) if listed else item)
        if item_text:
            yield item_text


def _tidy_text(text: str) -> str:
    """One line that the wire form can express; "" when nothing is left."""
    # To a fixed point: removing one tag or placeholder may expose another.
    while (tidier := _tidy_line(text)) != text:
        text = tidier
    return text


def _tidy_line(text: str) -> str:
    text = _PLACEHOLDER.sub(" ", one_line(text).translate(_OWN_SEPARATORS))
    text = " ".join(_ANY_TAG.sub(" ", text).split())[:LONGEST].strip(" ,，")
    if _NOTHING.fullmatch(text) or not any(map(str.isalnum, text)):
        return ""
    return text


def _tidy_term(term: str) -> str:
    while (tidier := re.sub(r"\s*，\s*|(?:\s,)+\s", ", ", _tidy_line(term)).strip(" ,")) != term:
        term = tidier
    return term


def _is_same(one: Query, other: Query) -> bool:
    return (one.source, one.wire.casefold()) == (other.source, other.wire.casefold())


def _order_queries(queries: Iterable[Query]) -> list[Query]:
    unique: dict[tuple[str, str], Query] = {}
    for query in queries:
        unique.setdefault((query.source, query.wire.casefold()), query)
    return sorted(unique.values(), key=lambda query: _source_rank(query.source))


def _source_rank(source: str) -> tuple[int, str]:
    known = ALL_SOURCES.index(source) if source in ALL_SOURCES else len(ALL_SOURCES)
    return known, source


def source_plan_grammar(
    sources: Sequence[str] = SOURCES,
    *,
    at_most: int = MOST,
    longest: int = 120,
    words: int = 8,
) -> Grammar:
    """The wire form with a tag for each source.

    A query has up to `longest` characters, a graph term up to `words` words.
    """
    query = named_rule("query", free_text(longest, without=";；<>＜＞{}"))
    item = named_rule("item", seq(term_part(words), " , ", query))
    tags = (_tag_node(source, item if source == GRAPH else query, at_most) for source in sources)
    pieces: list[Node | str] = [piece for tag in tags for piece in ("\n\n", tag)]
    return Grammar("source-plan", seq(*pieces[1:]))


def term_part(longest: int) -> Named:
    """A term of up to `longest` words; it may have commas, but no " , ", which ends it."""
    word = named_rule(
        "word", repeat(visible_char(",，、;；<>＜＞{}", spaces=False), 1, LONGEST_WORD)
    )
    joined = seq(alt(" ", ", ", ","), word)
    return named_rule("term", seq(word, repeat(joined, 0, longest - 1)))


def _tag_node(source: str, item: Node, at_most: int) -> Node:
    """A tag with no query or several; the space before them is the paper's and may be absent."""
    more = [repeat(seq(" ; ", item), 0, at_most - 1)] if at_most > 1 else []
    return seq(f"<{source}>", maybe(seq(maybe(" "), item, *more)), f"</{source}>")

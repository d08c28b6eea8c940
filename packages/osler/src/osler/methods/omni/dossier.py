"""A plan stored with its results, to be read by any reader (Omni-RAG §5.3).

The file is JSON, or the wire form alone. Either may be edited: queries without stored results are
searched when the plan is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from osler.errors import BadRun, describe_invalid, read_text_file
from osler.methods.omni.plan import (
    LONGEST,
    DroppedQuery,
    PlanReading,
    Query,
    SourcePlan,
    parse_source_plan,
    render_source_plan,
)
from osler.retrieve import LookupResult
from osler.sources.catalogue import ALL_SOURCES, SOURCES
from osler.types import Hit, Question

# Queries per source that a file may contain; a person may ask more than a model.
_AT_MOST = 100
_CLOSING = re.compile(r"<\s*/\s*([^<>/\s][^<>/]*?)\s*>")
_FIX = "it is a file of `osler plan`, or lines like <book> query ; query </book>"


@dataclass(frozen=True, slots=True)
class QueryResults:
    """Results of one query."""

    source: str
    query: str
    """In the source's own form: of the graph "term , query"."""
    hits: tuple[Hit, ...] = ()
    failed: str = ""


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """The file that `osler plan` writes and `--plan` reads."""

    plan: str
    """The plan in the wire form, a tag for each source."""
    sources: tuple[str, ...] = SOURCES
    """Sources that were available to the planner."""
    question: Question | None = None
    results: tuple[QueryResults, ...] = ()
    dropped: tuple[str, ...] = ()
    planner: str = ""
    """Planner and model that made the plan."""
    snapshot: str = ""
    """Snapshot of the knowledge base that was searched."""

    @property
    def plan_reading(self) -> PlanReading:
        """The plan, read tolerantly, since the file may have been edited."""
        return parse_source_plan(self.plan, sources=self.sources, at_most=_AT_MOST)

    @property
    def results_by_query(self) -> dict[Query, LookupResult]:
        """The stored results of the plan's queries."""
        held = {(each.source, each.query): each for each in self.results}
        return {
            query: LookupResult(each.hits, each.failed)
            for query in self.plan_reading.plan.queries
            if (each := held.get((query.source, query.wire)))
        }

    def without_source(self, source: str) -> SavedPlan:
        """A copy in which this source is neither queried nor read (Table 6)."""
        kept = [query for query in self.plan_reading.plan.queries if query.source != source]
        rest = tuple(name for name in self.sources if name != source)
        results = tuple(each for each in self.results if each.source != source)
        return replace(
            self, plan=render_source_plan(SourcePlan.of(kept), rest), sources=rest, results=results
        )

    @property
    def document(self) -> str:
        """The plan as JSON; `read_saved_plan` is the inverse."""
        return _plan_adapter().dump_json(self, indent=2).decode()


def save_plan(
    plan: SourcePlan,
    sources: Iterable[str],
    found: Mapping[Query, LookupResult],
    *,
    question: Question | None = None,
    dropped: Iterable[DroppedQuery] = (),
    planner: str = "",
    snapshot: str = "",
) -> SavedPlan:
    every = tuple(dict.fromkeys((*sources, *(query.source for query in plan.queries))))
    return SavedPlan(
        render_source_plan(plan, every),
        every,
        question,
        tuple(
            QueryResults(query.source, query.wire, result.hits, result.failed)
            for query, result in found.items()
        ),
        tuple(map(left_out, dropped)),
        planner,
        snapshot,
    )


def left_out(dropped: DroppedQuery) -> str:
    return f"{dropped.source}: {dropped.text!r} ({dropped.why})"


def read_saved_plan(path: Path) -> SavedPlan:
    """Reads a stored plan, or one written by hand.

    Raises `BadRun` for a file that cannot be read or contains no plan.
    """
    text = read_text_file(path, BadRun, _FIX, what="the plan ")
    # JSON starts with a brace; the wire form starts with a tag.
    if text.lstrip().startswith("{"):
        try:
            return _plan_adapter().validate_json(text)
        except ValidationError as error:
            why = describe_invalid(error, "file")
            raise BadRun(f"{path} contains no plan: {why}", fix=_FIX) from error
    return parse_saved_plan(text, str(path))


def parse_saved_plan(text: str, where: str = "the plan") -> SavedPlan:
    """Parses a plan in the wire form; every closed tag names a source, also a user's own.

    Raises `BadRun` when the text has no tag of a source.
    """
    named = dict.fromkeys((*ALL_SOURCES, *_CLOSING.findall(text)))
    reading = parse_source_plan(text, sources=tuple(named), at_most=_AT_MOST, longest=LONGEST)
    offered = tuple(source for source in named if source not in reading.missing)
    if not offered:
        raise BadRun(f"{where} has no tag of a source", fix=_FIX)
    return SavedPlan(
        render_source_plan(reading.plan, offered),
        offered,
        dropped=tuple(map(left_out, reading.dropped)),
    )


@cache
def _plan_adapter() -> TypeAdapter[SavedPlan]:
    return TypeAdapter(SavedPlan)

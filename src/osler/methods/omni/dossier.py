"""A plan with what it found: stored once, read by any reader (Omni-RAG §5.3; F-OM-81, -85).

The file is JSON, or the wire form alone. Either may be edited: what a plan asks and the file
does not hold is searched when it is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from osler.errors import BadRun
from osler.methods.omni.plan import (
    LONGEST,
    DroppedQuery,
    PlanReading,
    Query,
    SourcePlan,
    parse_source_plan,
    render_source_plan,
)
from osler.retrieve.lookup import LookupResult
from osler.sources.catalogue import ALL_SOURCES, SOURCES
from osler.types import Hit, Question

_AT_MOST = 100
"""Queries of a source that a file may hold: whoever writes them may ask more than a model."""
_CLOSING = re.compile(r"<\s*/\s*([^<>/\s][^<>/]*?)\s*>")
_FIX = "it is a file of `osler plan`, or lines like <book> query ; query </book>"


@dataclass(frozen=True, slots=True)
class QueryResults:
    """What one query found."""

    source: str
    query: str
    """As the source was asked it: of the graph "term , query"."""
    hits: tuple[Hit, ...] = ()
    failed: str = ""


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """What `osler plan` writes, and `--plan` reads."""

    plan: str
    """In the wire form, a tag for each source."""
    sources: tuple[str, ...] = SOURCES
    """Those that were on offer."""
    question: Question | None = None
    results: tuple[QueryResults, ...] = ()
    dropped: tuple[str, ...] = ()
    planner: str = ""
    """How the plan was made, and by which model."""
    snapshot: str = ""
    """Of the knowledge base that was searched."""

    @property
    def plan_reading(self) -> PlanReading:
        """The plan; what it was edited to is read tolerantly."""
        return parse_source_plan(self.plan, sources=self.sources, at_most=_AT_MOST)

    @property
    def results_by_query(self) -> dict[Query, LookupResult]:
        """The results of those queries that the plan has."""
        held = {(each.source, each.query): each for each in self.results}
        return {
            query: LookupResult(each.hits, each.failed)
            for query in self.plan_reading.plan.queries
            if (each := held.get((query.source, query.wire)))
        }

    def without_source(self, source: str) -> SavedPlan:
        """The same with this source neither asked nor read (Table 6)."""
        kept = [query for query in self.plan_reading.plan.queries if query.source != source]
        rest = tuple(name for name in self.sources if name != source)
        results = tuple(each for each in self.results if each.source != source)
        return replace(
            self, plan=render_source_plan(SourcePlan.of(kept), rest), sources=rest, results=results
        )

    @property
    def document(self) -> str:
        """As a file holds it; `read_saved_plan` is the inverse."""
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
    offered = tuple(sources)
    every = (*offered, *(s for s in {q.source: 0 for q in plan.queries} if s not in offered))
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
    """A stored plan, or one that somebody wrote.

    Raises `BadRun` for a file that cannot be read or holds no plan.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRun(f"the plan {path} cannot be read: {error}", fix=_FIX) from error
    if text.lstrip().startswith("{"):
        try:
            return _plan_adapter().validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "file"
            raise BadRun(f"{path} holds no plan: {where}: {first['msg']}", fix=_FIX) from error
    return parse_saved_plan(text, str(path))


def parse_saved_plan(text: str, where: str = "the plan") -> SavedPlan:
    """A plan in the wire form; what is closed like a tag is a source, also one of the user's own.

    Raises `BadRun` where no tag of a source stands in the text.
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

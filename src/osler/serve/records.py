"""MCP's `read_patient`: entries of one record of the source `emr`, and never a whole one.

There only where `serve.patients` says so, and only for whoever is on this machine: over standard
input and output, or on a loopback address.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from osler.errors import UnknownPassage
from osler.kb.base import KnowledgeBase
from osler.serve.keys import is_loopback
from osler.serve.tooling import At, PassageId, calling_caller, read_only_hints, report_refusals
from osler.sources.catalogue import EMR
from osler.sources.patients.entries import RecordEntry, Resource, list_entries

FieldName = Literal["text", "display", "code", "says", "at", "section"]
_LONGEST = 100_000
"""Passages of one record."""


class RecordEntryView(BaseModel):
    """A pointer to a line of the record, with the fields that were asked for."""

    passage_id: str
    span: tuple[int, int]
    """In the passage's text."""
    fields: dict[str, str]


class RecordPage(BaseModel):
    patient: str
    resource: Resource
    total: int
    """Entries of this kind; `list_entries` may hold fewer."""
    entries: list[RecordEntryView]


def add_record_tool(mcp: MCPServer[Any], at: At) -> None:
    @mcp.tool(annotations=read_only_hints("Read a patient's record"))
    @report_refusals
    async def read_patient(
        context: Context[Any, Any],
        patient: PassageId,
        resource: Resource,
        fields: Annotated[list[FieldName], Field(min_length=1, max_length=6)] = ["text"],  # noqa: B006
        count: Annotated[int, Field(ge=1, le=20)] = 10,
        skip: Annotated[int, Field(ge=0, le=100_000)] = 0,
    ) -> RecordPage:
        """Entries of one kind in a de-identified record of the source emr, in the record's order.
        `patient` is the id of the record, or of any of its passages."""
        site, _ = at(context)
        if calling_caller(context) is not None and not is_loopback(site.settings.serve.host):
            raise ToolError("records are read on the machine that keeps them, and nowhere else")
        kb = (await site.shelf.open_knowledge()).kb
        found = await asyncio.to_thread(_read_entries, kb, patient, resource)
        shown = [_entry_view(each, fields) for each in found[skip : skip + count]]
        record = patient.partition("#")[0]
        return RecordPage(patient=record, resource=resource, total=len(found), entries=shown)


def _read_entries(kb: KnowledgeBase, patient: str, resource: Resource) -> list[RecordEntry]:
    """Raises `UnknownPassage`, also for a passage that is of no patient."""
    first = patient if "#" in patient else f"{patient}#0"
    passages = kb.neighbours(first, _LONGEST)
    if passages[0].source != EMR:
        raise UnknownPassage(f"{patient!r} is no record of the source {EMR}")
    return [each for each in list_entries(passages) if each.resource == resource]


def _entry_view(entry: RecordEntry, fields: list[FieldName]) -> RecordEntryView:
    values = {name: str(getattr(entry, name)) for name in fields}
    return RecordEntryView(
        passage_id=entry.passage,
        span=(entry.start, entry.end),
        fields={name: value for name, value in values.items() if value},
    )

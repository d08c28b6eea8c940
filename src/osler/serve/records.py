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
from osler.serve.tooling import At, PassageId, anticipated, caller_of, read_only
from osler.sources.patients.entries import Entry, Resource, entries
from osler.types import EMR

FieldName = Literal["text", "display", "code", "says", "at", "section"]
_LONGEST = 100_000
"""Passages of one record."""


class EntryTold(BaseModel):
    """A pointer to a line of the record, with the fields that were asked for."""

    passage_id: str
    span: tuple[int, int]
    """In the passage's text."""
    fields: dict[str, str]


class PatientRead(BaseModel):
    patient: str
    resource: Resource
    total: int
    """Entries of this kind; `entries` may hold fewer."""
    entries: list[EntryTold]


def add(mcp: MCPServer[Any], at: At) -> None:
    @mcp.tool(annotations=read_only("Read a patient's record"))
    @anticipated
    async def read_patient(
        context: Context[Any, Any],
        patient: PassageId,
        resource: Resource,
        fields: Annotated[list[FieldName], Field(min_length=1, max_length=6)] = ["text"],  # noqa: B006
        count: Annotated[int, Field(ge=1, le=20)] = 10,
        skip: Annotated[int, Field(ge=0, le=100_000)] = 0,
    ) -> PatientRead:
        """Entries of one kind in a de-identified record of the source emr, in the record's order.
        `patient` is the id of the record, or of any of its passages."""
        site, _ = at(context)
        if caller_of(context) is not None and not is_loopback(site.settings.serve.host):
            raise ToolError("records are read on the machine that keeps them, and nowhere else")
        kb = (await site.shelf.knowledge()).kb
        found = await asyncio.to_thread(_read, kb, patient, resource)
        shown = [_told(each, fields) for each in found[skip : skip + count]]
        record = patient.partition("#")[0]
        return PatientRead(patient=record, resource=resource, total=len(found), entries=shown)


def _read(kb: KnowledgeBase, patient: str, resource: Resource) -> list[Entry]:
    """Raises `UnknownPassage`, also for a passage that is of no patient."""
    first = patient if "#" in patient else f"{patient}#0"
    passages = kb.neighbours(first, _LONGEST)
    if passages[0].source != EMR:
        raise UnknownPassage(f"{patient!r} is no record of the source {EMR}")
    return [each for each in entries(passages) if each.resource == resource]


def _told(entry: Entry, fields: list[FieldName]) -> EntryTold:
    values = {name: str(getattr(entry, name)) for name in fields}
    return EntryTold(
        passage_id=entry.passage,
        span=(entry.start, entry.end),
        fields={name: value for name, value in values.items() if value},
    )

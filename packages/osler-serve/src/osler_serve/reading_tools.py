"""Shared parts of the MCP tools, and one of the tools: `read_patient`.

`read_patient` is there only where `serve.patients` says so, and only for whoever is on this
machine: over standard input and output, or on a loopback address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from osler.errors import OslerError, UnknownPassage
from osler.kb.base import KnowledgeBase
from osler.settings.sections import AccessSettings, is_loopback
from osler.sources.catalogue import EMR
from osler_serve.clinic.records.patient_document import RecordEntry, Resource, list_entries
from osler_serve.keys import Caller
from osler_serve.problems import RefusedRequest
from osler_serve.state import ServerState

_P = ParamSpec("_P")
_T = TypeVar("_T")

Many = Annotated[int, Field(ge=1, le=50)]
PassageId = Annotated[str, Field(min_length=1, max_length=500)]
At = Callable[[Context[Any, Any]], tuple[ServerState, Caller]]


def calling_caller(context: Context[Any, Any]) -> Caller | None:
    """Whose request carries the call; `None` over stdio, which only this machine's user has."""
    request = context.request_context.request
    return request.scope["osler.caller"] if request is not None else None


def read_only_hints(title: str, *, same: bool = True) -> ToolAnnotations:
    return ToolAnnotations(
        title=title,
        read_only_hint=True,
        destructive_hint=False,
        idempotent_hint=same,
        open_world_hint=False,
    )


def report_refusals(tool: Callable[_P, Awaitable[_T]]) -> Callable[_P, Awaitable[_T]]:
    """Reports an `OslerError` to the model in words, not as a crash."""

    @wraps(tool)
    async def call_tool(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return await tool(*args, **kwargs)
        except OslerError as error:
            danger = error.danger if isinstance(error, RefusedRequest) else None
            said = f"{danger.text}\n\n{error}" if danger else str(error)
            raise ToolError(said) from error

    return call_tool


FieldName = Literal["text", "display", "code", "says", "at", "section"]
# Passages of one record.
_LONGEST = 100_000


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
        site, caller = at(context)
        if calling_caller(context) is not None and not is_loopback(site.settings.serve.host):
            raise ToolError("records are read on the machine that keeps them, and nowhere else")
        kb = (await site.shelf.open_knowledge()).kb
        record = patient.partition("#")[0]
        access = caller.scope.narrow_settings(site.settings).access
        found = await asyncio.to_thread(_read_entries, kb, access, record, resource)
        shown = [_entry_view(each, fields) for each in found[skip : skip + count]]
        return RecordPage(patient=record, resource=resource, total=len(found), entries=shown)


def _read_entries(
    kb: KnowledgeBase, access: AccessSettings, record: str, resource: Resource
) -> list[RecordEntry]:
    """Raises `UnknownPassage`, in the same words for what is not there and what is closed."""
    unknown = UnknownPassage(f"{record!r} is not a record of the source {EMR}")
    try:
        passages = kb.neighbours(f"{record}#0", _LONGEST)
    except UnknownPassage:
        raise unknown from None
    if passages[0].source != EMR or not access.may_open(EMR, record):
        raise unknown
    return [each for each in list_entries(passages) if each.resource == resource]


def _entry_view(entry: RecordEntry, fields: list[FieldName]) -> RecordEntryView:
    values = {name: str(getattr(entry, name)) for name in fields}
    return RecordEntryView(
        passage_id=entry.passage,
        span=(entry.start, entry.end),
        fields={name: value for name, value in values.items() if value},
    )

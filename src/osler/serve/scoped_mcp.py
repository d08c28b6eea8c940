"""The MCP server: what a key may call and read, in which order, and how long a reply holds."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.types import Tool
from pydantic import AnyUrl

from osler.app.audit.entries import write_entry
from osler.serve.audited_requests import tool_entry
from osler.serve.problems import RefusedRequest
from osler.serve.reading_tools import At
from osler.serve.scopes import TOOL_VERBS

_HOUR, _MINUTE = 3_600_000, 60_000
_SAME_FOR_ALL = CacheHint(ttl_ms=_HOUR, scope="public")
CACHE_HINTS: dict[CacheableMethod, CacheHint] = {
    "server/discover": _SAME_FOR_ALL,
    "tools/list": _SAME_FOR_ALL,
    "prompts/list": _SAME_FOR_ALL,
    "resources/list": _SAME_FOR_ALL,
    "resources/templates/list": _SAME_FOR_ALL,
    # What a key may open is its own affair, and a passage may be forgotten.
    "resources/read": CacheHint(ttl_ms=_MINUTE, scope="private"),
}
"""How long clients of revision 2026-07-28 may keep replies."""


class ScopedServer(MCPServer[Any]):
    """Refuses the tools that the caller's key may not use."""

    def __init__(self, at: At, name: str, **given: Any) -> None:
        super().__init__(name, **given)
        self._at = at

    async def list_tools(self) -> list[Tool]:
        """By name, so that the list is the same wherever it is cached."""
        return sorted(await super().list_tools(), key=lambda tool: tool.name)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> Any:
        if context is not None:  # `None`: called from inside, by no caller
            _, caller = self._at(context)
            try:
                caller.scope.require_verb(TOOL_VERBS.get(name))
            except RefusedRequest as refused:
                raise ToolError(str(refused)) from refused
        result = await super().call_tool(name, arguments, context)
        await self._record(context, name, arguments, result)
        return result

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Any:
        if context is not None:
            _, caller = self._at(context)
            try:
                caller.scope.require_verb("read")
            except RefusedRequest as refused:
                raise ResourceError(str(refused)) from refused
        result = await super().read_resource(uri, context)
        await self._record(context, "resources/read", {"uri": str(uri)}, result)
        return result

    async def _record(
        self, context: Context[Any, Any] | None, name: str, given: dict[str, Any], result: Any
    ) -> None:
        """Over HTTP the request that carries the call is on record already."""
        if context is not None and context.request_context.request is None:
            site, caller = self._at(context)
            record = tool_entry(site.settings, caller, name, given, result)
            await asyncio.to_thread(write_entry, site.settings, record)

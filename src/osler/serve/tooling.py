"""What every tool of MCP shares: whose call it is, and what it promises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Annotated, Any, ParamSpec, TypeVar

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from osler.errors import OslerError
from osler.serve.keys import Caller
from osler.serve.state import ServerState

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
    """What Osler refuses is told the model in words, not as a crash."""

    @wraps(tool)
    async def call_tool(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return await tool(*args, **kwargs)
        except OslerError as error:
            raise ToolError(str(error)) from error

    return call_tool

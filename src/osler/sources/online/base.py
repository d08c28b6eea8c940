"""The protocol of online search services, and helpers to read their replies."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Protocol

from osler.errors import SourceUnavailable
from osler.sources.formats.json_lines import items_at, value_at
from osler.sources.online.cache import CachedReply
from osler.sources.records import Document


class SearchService(Protocol):
    """A search service on the internet."""

    @property
    def name(self) -> str:
        """For messages and as the finder of hits: "wikipedia", "pubmed", "searxng"."""
        ...

    async def find(self, query: str, *, k: int) -> list[Document]:
        """At most `k` documents, in the service's order; [] when it knows none.

        Raises `SourceUnavailable` when it cannot be reached or sends an unreadable reply.
        """
        ...


def read_json(reply: CachedReply, name: str) -> dict[str, Any]:
    """The object in the reply. Raises `SourceUnavailable` for anything else."""
    try:
        value = json.loads(reply.body)
    except (ValueError, RecursionError) as error:
        raise unreadable_reply(name, "no JSON") from error
    if not isinstance(value, dict):
        raise unreadable_reply(name, "no JSON object")
    return value


def dated_kind(kind: str, at: float) -> str:
    """The kind of a document with the day on which it was fetched."""
    day = datetime.fromtimestamp(at, UTC).date().isoformat()
    return f"{kind}, retrieved {day}" if kind else f"retrieved {day}"


def unreadable_reply(name: str, what: str) -> SourceUnavailable:
    return SourceUnavailable(f"{name} sends {what}", fix="check the address in the settings")


def text_at(value: Any, *path: str) -> str:
    """The text or number at a path of keys, as text; "" where there is none."""
    leaf = value_at(value, *path)
    return str(leaf) if isinstance(leaf, str | int) and not isinstance(leaf, bool) else ""


def list_at(value: Any, *path: str) -> list[dict[str, Any]]:
    """The objects in the list at a path of keys."""
    return [item for item in items_at(value, *path) if isinstance(item, dict)]

"""Many texts to a server in one go, and one answer for each: embeddings and reranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from osler.llm.server.bounded_reading import BadReply
from osler.llm.server.connection import ServerClient
from osler.trace.ordered import gather


async def ask_all(door: ServerClient, path: str, bodies: Sequence[dict[str, Any]]) -> list[Any]:
    """The JSON of each reply, in order; so many at once as the door lets through.

    The first failure gives the others up, and is raised as `ServerClient.post` raises it.
    """
    async with door.open() as line:
        return await gather([line.request_json(path, body) for body in bodies])


def objects_by_index(reply: Any, key: str, count: int) -> list[Mapping[str, Any]]:
    """The objects of the list `reply[key]`, by their `index`, one for each of `count` texts.

    Raises `BadReply` for a list that lacks some, has some twice, or is none.
    """
    objects = reply.get(key) if isinstance(reply, Mapping) else None
    if not isinstance(objects, list) or not all(isinstance(one, Mapping) for one in objects):
        raise BadReply(f"the reply has no list of {key}")
    indexes = [one.get("index", i) for i, one in enumerate(objects)]
    placed = {i: one for i, one in zip(indexes, objects, strict=True) if isinstance(i, int)}
    if len(objects) != count or placed.keys() != set(range(count)):
        raise BadReply(f"the reply has {len(objects)} {key} for {count} texts")
    return [placed[i] for i in range(count)]

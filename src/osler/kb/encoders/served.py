"""An encoder behind any server that speaks the OpenAI interface's `/embeddings`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError
from osler.kb.encoders.base import scale_to_unit
from osler.llm.server.bounded_reading import BadReply
from osler.llm.server.connection import ServerClient
from osler.llm.server.replies import objects_by_index
from osler.trace.ordered import gather
from osler.types import Language

if TYPE_CHECKING:
    from osler.kb.encoders.base import Kind, Vectors

_BATCH = 64
_FIX = "set embedder.url and embedder.name to a server and a model that embed"
_BLANK = "."
"""Stands for an empty text, which servers refuse."""


class OpenAIEncoder:
    """`Encoder` on a server. Vectors are checked, and scaled to length 1 here.

    Servers do not tell which weights they hold: the identity is the model's name there,
    so serve another model under another name.
    """

    def __init__(
        self,
        door: ServerClient,
        *,
        languages: frozenset[Language],
        query_prefix: str = "",
        passage_prefix: str = "",
        dimension: int = 0,
        batch: int = _BATCH,
    ) -> None:
        """The prefixes stand before each text, as E5 and others want ("query: ").

        `dimension` 0 is that of the first vectors, which are asked for when it matters.
        """
        self._door = door
        self.languages = languages
        self._prefixes: dict[Kind, str] = {"query": query_prefix, "passage": passage_prefix}
        self._batch = batch
        self._dimension = dimension
        self._asking = threading.Lock()

    @property
    def identity(self) -> str:
        # Another prefix gives other vectors, though model and server are the same.
        prefixes = "\n".join(self._prefixes.values())
        mark = f"+{sha256(prefixes.encode()).hexdigest()[:6]}" if prefixes.strip("\n") else ""
        return f"openai:{self._door.model}{mark}"

    @property
    def dimension(self) -> int:
        """Raises as `encode`: the first time it may have to ask the server."""
        if not self._dimension:
            self.encode(["length"], kind="query")
        return self._dimension

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Encodes texts. Raises `ModelUnreachable`, and `ModelError` for invalid vectors.

        In a thread and a loop of its own, so that it can be called from anywhere.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        sent = [self._prefixes[kind] + (text if text.strip() else _BLANK) for text in texts]
        batches = [sent[at : at + self._batch] for at in range(0, len(sent), self._batch)]
        with ThreadPoolExecutor(1) as pool:
            replies = pool.submit(asyncio.run, self._request_batches(batches)).result()
        try:
            read = [
                self._read_vectors(reply, len(b)) for reply, b in zip(replies, batches, strict=True)
            ]
        except BadReply as error:
            raise ModelError(f"{self._door.name}: {error}", fix=_FIX) from error
        return np.vstack(read)

    async def _request_batches(self, batches: Sequence[Sequence[str]]) -> list[Any]:
        fields = {"model": self._door.model, "encoding_format": "float"}
        bodies = [{**fields, "input": list(batch)} for batch in batches]
        # The first failure gives the other requests up.
        async with self._door.open() as session:
            return await gather([session.request_json("/embeddings", body) for body in bodies])

    def _read_vectors(self, reply: Any, count: int) -> Vectors:
        import numpy as np

        embeddings = [one.get("embedding") for one in objects_by_index(reply, "data", count)]
        try:
            vectors = np.array(embeddings, np.float32)
        except (TypeError, ValueError) as error:
            raise BadReply("the embeddings are no vectors") from error
        if vectors.ndim != 2 or not vectors.shape[1]:
            raise BadReply("the embeddings are no vectors")
        self._check_dimension(vectors.shape[1])
        try:
            return scale_to_unit(vectors)
        except ValueError as error:
            raise BadReply(str(error)) from error

    def _check_dimension(self, length: int) -> None:
        with self._asking:
            self._dimension = self._dimension or length
        if length != self._dimension:
            raise ModelError(
                f"{self._door.name}: embeddings of {length} numbers, not {self._dimension}",
                fix="set embedder.dimension, or serve the model that the knowledge base was"
                " built with",
            )

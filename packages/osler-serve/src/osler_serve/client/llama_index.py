"""A retriever for LlamaIndex over a server of Osler (extra `llama-index`).

retriever = OslerRetriever(Client("http://127.0.0.1:8642"), k=5)
nodes = retriever.retrieve("What is given first in anaphylaxis?")
"""

from __future__ import annotations

from collections.abc import Sequence

from osler.errors import MissingExtra, require_extra
from osler_serve.client.calls import flat_metadata
from osler_serve.client.http_client import Client

with require_extra("llama-index", "the retriever for LlamaIndex needs its package", MissingExtra):
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode


class OslerRetriever(BaseRetriever):  # type: ignore[misc]  # untyped where the extra is absent
    """Finds passages; each node's id is its passage's, so that it can be cited and opened.

    `k`: passages of a search, 1 to 100; `sources`: names, empty = all that are not private. A
    server that refuses, or is not there, raises `OslerError`: an empty list is never an error.
    """

    def __init__(self, client: Client, *, k: int = 10, sources: Sequence[str] = ()) -> None:
        super().__init__()
        self._client, self._k, self._sources = client, k, list(sources)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._client.search(query_bundle.query_str, k=self._k, sources=self._sources).hits
        return [
            NodeWithScore(
                node=TextNode(
                    id_=hit.passage.id,
                    text=hit.passage.text,
                    metadata=flat_metadata(hit),
                ),
                score=hit.score,
            )
            for hit in hits
        ]

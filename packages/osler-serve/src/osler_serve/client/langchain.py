"""A retriever for LangChain over a server of Osler (extra `langchain`).

retriever = OslerRetriever(client=Client("http://127.0.0.1:8642"), k=5)
documents = retriever.invoke("What is given first in anaphylaxis?")
"""

from __future__ import annotations

from pydantic import ConfigDict

from osler.errors import MissingExtra, require_extra
from osler_serve.client.calls import flat_metadata
from osler_serve.client.http_client import Client

with require_extra("langchain", "the retriever for LangChain needs its package", MissingExtra):
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever


class OslerRetriever(BaseRetriever):  # type: ignore[misc]  # untyped where the extra is absent
    """Finds passages; each document's id is its passage's, so that it can be cited and opened.

    `k`: passages of a search, 1 to 100; `sources`: names, empty = all that are not private. A
    server that refuses, or is not there, raises `OslerError`: an empty list is never an error.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Client
    k: int = 10
    sources: tuple[str, ...] = ()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        hits = self.client.search(query, k=self.k, sources=list(self.sources)).hits
        return [
            Document(
                id=hit.passage.id,
                page_content=hit.passage.text,
                metadata=flat_metadata(hit),
            )
            for hit in hits
        ]

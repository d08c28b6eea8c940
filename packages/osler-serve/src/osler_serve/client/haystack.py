"""A retriever component for Haystack over a server of Osler (extra `haystack`).

retriever = OslerRetriever("http://127.0.0.1:8642", top_k=5)
documents = retriever.run("What is given first in anaphylaxis?")["documents"]
"""

from __future__ import annotations

from typing import Any

from osler.errors import MissingExtra, require_extra
from osler_serve.client.calls import flat_metadata
from osler_serve.client.http_client import HOME, Client

with require_extra("haystack", "the retriever for Haystack needs its package", MissingExtra):
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.utils import Secret, deserialize_secrets_inplace


@component
class OslerRetriever:
    """Finds passages; each document's id is its passage's, so that it can be cited and opened."""

    def __init__(
        self,
        url: str = HOME,
        *,
        key: Secret | None = None,
        top_k: int = 10,
        sources: list[str] | None = None,
    ) -> None:
        self.url, self.key, self.top_k, self.sources = url, key, top_k, sources or []

    @component.output_types(documents=list[Document])  # type: ignore[untyped-decorator]
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """The documents, best first."""
        key = (self.key.resolve_value() or "") if self.key else ""
        with Client(self.url, key=key) as client:
            hits = client.search(query, k=top_k or self.top_k, sources=self.sources).hits
        documents = [
            Document(
                id=hit.passage.id,
                content=hit.passage.text,
                meta=flat_metadata(hit),
                score=hit.score,
            )
            for hit in hits
        ]
        return {"documents": documents}

    def to_dict(self) -> dict[str, Any]:
        key = self.key.to_dict() if self.key else None
        return default_to_dict(  # type: ignore[no-any-return]
            self, url=self.url, key=key, top_k=self.top_k, sources=self.sources
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> OslerRetriever:
        deserialize_secrets_inplace(data["init_parameters"], keys=["key"])
        return default_from_dict(cls, data)  # type: ignore[no-any-return]

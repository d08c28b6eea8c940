"""A reranker behind a server: `/rerank` as llama.cpp, vLLM, Jina and Cohere speak it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from osler.errors import ModelError
from osler.llm.server.connection import ServerClient
from osler.llm.server.endpoint import BadReply
from osler.llm.server.replies import objects_by_index

_FIX = "set reranker.url and reranker.name to a server and a model that rerank"


@dataclass(frozen=True)
class OpenAIReranker:
    """`Relevance` by a server; the scores are the server's own, on its own scale."""

    api: ServerClient

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """Scores `texts`. Raises `ModelUnreachable`, and `ModelError` unless every text has a
        score."""
        if not texts:
            return ()
        body = {
            "model": self.api.model,
            "query": query,
            "documents": list(texts),
            "top_n": len(texts),
            "return_documents": False,
        }
        reply = await self.api.post("/rerank", body)
        try:
            return tuple(map(_finite_score, objects_by_index(reply, "results", len(texts))))
        except BadReply as error:
            raise ModelError(f"{self.api.name}: {error}", fix=_FIX) from error


def _finite_score(result: Mapping[str, Any]) -> float:
    told = result.get("relevance_score")
    if isinstance(told, bool) or not isinstance(told, int | float) or not isfinite(told):
        raise BadReply(f"{told!r} is not a relevance score")
    return float(told)

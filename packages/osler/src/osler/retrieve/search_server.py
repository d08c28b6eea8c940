"""The search server of KAG-Thinker's released code: POST `/search` {query, top_n, return_score}.

It answers with a list of documents, each with `contents` whose first line is its title, and with
their scores; or, as FlashRAG's and Search-R1's servers do, with a list of `{"document": …,
"score": …}`, one list for each query, which may stand under `result`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from osler.errors import ModelError, SourceUnavailable
from osler.llm.server.connection import ServerClient
from osler.retrieve import rank_hits
from osler.sources.catalogue import WIKI
from osler.text import language_of
from osler.types import Hit, Passage


@dataclass(frozen=True)
class SearchServer:
    """A `Retriever` over such a server."""

    api: ServerClient
    source: str = WIKI
    """Source of its passages; the paper's is Wikipedia (§4.1)."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """The best `k` documents. Raises `SourceUnavailable`."""
        body = {"query": query, "top_n": k, "return_score": True}
        try:
            async with self.api.open() as line:
                reply = await line.request_json("/search", body, root=True)
        except ModelError as error:
            raise SourceUnavailable(f"the search server: {error}") from error
        documents, scores = _read_reply(reply)
        found = [
            (self._make_passage(document), score)
            for document, score in zip(documents, scores, strict=False)
        ]
        return rank_hits(found[:k], query, self.source)

    def _make_passage(self, document: dict[str, Any]) -> Passage:
        text = str(document["contents"]).strip()
        first, _, rest = text.partition("\n")
        title = first.strip(' "') if rest.strip() else ""
        body = rest.strip() or text
        # Without an id of its own a document is known by its words.
        id = str(document.get("id") or hashlib.sha256(text.encode()).hexdigest()[:12])
        return Passage(
            f"{self.source}:{id}#0", body, self.source, title, language=language_of(body)
        )


def _is_scored(each: Any) -> bool:
    return isinstance(each, dict) and isinstance(each.get("document"), dict | str)


def _as_document(said: dict[str, Any] | str) -> dict[str, Any]:
    """A document with `contents`; a bare text is its contents."""
    if isinstance(said, str):
        return {"contents": said}
    if "contents" in said:
        return said
    title, text = str(said.get("title", "")), str(said.get("text") or said.get("content") or "")
    return {**said, "contents": f"{title}\n{text}" if title else text}


def _read_reply(reply: Any) -> tuple[list[dict[str, Any]], list[float]]:
    """Documents and scores. Raises `SourceUnavailable` for a reply of another form."""
    if isinstance(reply, dict) and isinstance(reply.get("result"), list):
        reply = reply["result"]
    # A list for each query: one was asked.
    if isinstance(reply, list) and len(reply) == 1 and isinstance(reply[0], list):
        reply = reply[0]
    if isinstance(reply, list) and reply and all(_is_scored(each) for each in reply):
        scored = [each.get("score") for each in reply]
        whole = None if None in scored else scored
        reply = [[_as_document(each["document"]) for each in reply], whole]
    paired = isinstance(reply, list) and len(reply) == 2 and isinstance(reply[0], list)
    documents: Any = reply[0] if paired else reply
    scores: Any = reply[1] if paired else None
    if not isinstance(documents, list) or not all(
        isinstance(each, dict) and str(each.get("contents", "")).strip() for each in documents
    ):
        raise SourceUnavailable("the search server answered no documents with contents")
    if scores is None:
        return documents, [1 / rank for rank in range(1, len(documents) + 1)]
    if not isinstance(scores, list) or len(scores) != len(documents):
        raise SourceUnavailable("the search server answered another number of scores")
    return documents, [float(score) for score in scores]

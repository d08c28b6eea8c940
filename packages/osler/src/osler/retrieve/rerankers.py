"""Rerankers: a cross-encoder that transformers runs, and a server's `/rerank`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from osler.errors import ModelError
from osler.llm.server.connection import ServerClient
from osler.llm.server.endpoint import BadReply
from osler.llm.server.replies import objects_by_index
from osler.llm.transformers.hub import (
    Device,
    Dtype,
    Weights,
    load_libraries,
    open_model,
    open_tokenizer,
    weights_name,
)

_BATCH = 8


class CrossEncoder:
    """`Relevance` by sequence classification: MedCPT's cross-encoder, bge-reranker and the like.

    The score is the unbounded logit; for a model with two classes, the second logit minus the
    first. A cancelled call stops between batches.
    """

    def __init__(
        self,
        weights: Weights,
        *,
        longest: int = 512,
        batch: int = _BATCH,
        dtype: Dtype = "float32",
        device: Device = "auto",
    ) -> None:
        """Loads the weights. `longest` is in tokens of query and text together.

        Raises as `osler.llm.transformers.hub.load_pair`, and `ModelError` for a model of more
        classes.
        """
        kind = "AutoModelForSequenceClassification"
        self._model = open_model(kind, weights, dtype=dtype, device=device)
        self._tokenizer = open_tokenizer(weights)
        self._longest = longest
        self._batch = batch
        self._lock = threading.Lock()
        self.name = weights_name(weights)
        if self._model.config.num_labels not in {1, 2}:
            raise ModelError(
                f"{self.name} has {self._model.config.num_labels} classes: a reranker has"
                " one or two",
                fix="set reranker.name or reranker.path to a cross-encoder",
            )

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        gone = threading.Event()
        try:
            return await asyncio.to_thread(self._score_in_thread, query, list(texts), gone)
        finally:
            gone.set()

    def _score_in_thread(
        self, query: str, texts: list[str], gone: threading.Event
    ) -> tuple[float, ...]:
        scores = [0.0] * len(texts)
        # Texts of similar length share a batch: less padding.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        with self._lock:
            for at in range(0, len(order), self._batch):
                if gone.is_set():
                    return ()
                rows = order[at : at + self._batch]
                for row, score in zip(
                    rows, self._score_texts(query, [texts[i] for i in rows]), strict=True
                ):
                    scores[row] = score
        return tuple(scores)

    def _score_texts(self, query: str, texts: list[str]) -> list[float]:
        torch, _ = load_libraries()
        inputs: Any = self._tokenizer(
            [query] * len(texts),
            texts,
            padding=True,
            truncation=True,
            max_length=self._longest,
            return_tensors="pt",
        ).to(self._model.device)
        with torch.no_grad():
            logits = self._model(**inputs).logits.float()
        told = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
        scores: list[float] = told.tolist()
        return scores


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

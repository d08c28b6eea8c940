"""What every extractor is: a name, a key for what it would do with a chunk, and the doing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from osler.extract.items import ExtractedItems
from osler.types import Passage, Usage


@dataclass(frozen=True, slots=True)
class ExtractionCost:
    """What one chunk would take, before it is read. Zero for an extractor without a model."""

    calls: int = 0
    prompt_tokens: int = 0
    """Guessed from characters: four a token, of Chinese one and a half."""
    completion_tokens: int = 0

    def __add__(self, other: ExtractionCost) -> ExtractionCost:
        return ExtractionCost(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class ExtractionOutcome:
    """Of one chunk: what was found, or why nothing could be, and what it cost."""

    found: ExtractedItems = field(default_factory=ExtractedItems)
    usage: Usage = field(default_factory=Usage)
    failed: str = ""
    """Why; the chunk is tried again by the next run."""


class Extractor(Protocol):
    """Reads chunks. Safe to ask for several at a time."""

    @property
    def name(self) -> str:
        """Under which its items stand in the store: "dictionary", "model smollm2"."""
        ...

    @property
    def batch(self) -> int:
        """Chunks that are handed over, and stored, together."""
        ...

    def result_key(self, passage: Passage) -> str:
        """Names all that the result depends on: equal keys give the same items."""
        ...

    def estimate_cost(self, passage: Passage) -> ExtractionCost: ...

    async def extract(self, passages: Sequence[Passage]) -> list[ExtractionOutcome]:
        """One outcome a passage, in order. Raises `ModelError` when nothing more can be asked."""
        ...


def hash_texts(*parts: str) -> str:
    """A hash that tells ("ab", "c") from ("a", "bc")."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode()
        digest.update(f"{len(raw)}:".encode())
        digest.update(raw)
    return digest.hexdigest()


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has; right within a third for common tokenisers."""
    wide = sum(ord(char) > 0x2E80 for char in text)
    return round((len(text) - wide) / 4 + wide / 1.5)

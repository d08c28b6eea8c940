"""Prices of models: what a call cost, from the tokens that its model reported."""

from __future__ import annotations

from dataclasses import dataclass

from osler.types import Money, Usage

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens of a model cost."""

    read: float
    cached: float
    """Of prompt tokens that the server's prefix cache saved."""
    written: float
    currency: str

    def cost_of(self, usage: Usage) -> Money:
        """The cost of calls; tokens that are scored are read."""
        read = usage.prompt_tokens - usage.cached_tokens + usage.scored_tokens
        amount = (
            read * self.read
            + usage.cached_tokens * self.cached
            + usage.completion_tokens * self.written
        )
        return Money(amount / _MILLION, self.currency)

"""What runs cost: calls, tokens, searches, seconds and money."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in a currency of the settings."""

    amount: float
    currency: str


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a run; usages add up with `+`."""

    calls: int = 0
    """Model calls, completions and scorings alike."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the engine's prefix cache saved."""
    scored_tokens: int = 0
    searches: int = 0
    seconds: float = 0.0
    """Seconds spent in model calls, as the model reported them."""
    money: Money | None = None
    """What the calls cost; `None` where the price of one is not known."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.scored_tokens + other.scored_tokens,
            self.searches + other.searches,
            self.seconds + other.seconds,
            self._add_money(other),
        )

    def _add_money(self, other: Usage) -> Money | None:
        # What asked no model has no price to know.
        if not self.calls or not other.calls:
            return self.money or other.money
        if self.money is None or other.money is None:
            return None
        return Money(self.money.amount + other.money.amount, self.money.currency)

    @property
    def is_counted(self) -> bool:
        """False for calls of a server that counts no tokens: a call reads or writes some."""
        return not self.calls or bool(self.prompt_tokens or self.tokens)

    @property
    def tokens(self) -> int:
        """Tokens processed: read without the cache, written or scored."""
        read = self.prompt_tokens - self.cached_tokens
        return read + self.completion_tokens + self.scored_tokens

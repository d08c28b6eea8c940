"""What every way of scoring on the embedded engine gives back, and how it is stopped."""

from __future__ import annotations

from dataclasses import dataclass

from osler.errors import ModelError

Tokens = tuple[int, ...]
"""Ids of a text."""


class CallStopped(ModelError):
    """Raised when the caller left before the reply was there."""


@dataclass(frozen=True, slots=True)
class TextScores:
    """Log-probabilities of the texts of one call."""

    texts: tuple[tuple[float, ...], ...]
    """Of each text's tokens, in nats."""
    cached: int
    """Tokens of the prefix that were not read again."""

"""What a key may spend in a day: reserved before a run, booked after it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from osler.app.config import Settings
from osler.serve.keys import Caller
from osler.serve.ledger import Ledger
from osler.serve.problems import RefusedRequest


class TokenBudget:
    """Tokens of a key in a day (UTC). A run that begins before midnight is booked when it ends."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def reserve(self, caller: Caller, settings: Settings) -> tuple[Settings, int]:
        """The settings, bound to what is left of the day, and how much the run may spend.

        What runs already is reserved: many runs at once cannot spend more than one. Raises
        `RefusedRequest` (429) where nothing is left.
        """
        if (allowed := caller.scope.tokens) is None:
            return settings, 0
        now = datetime.now(UTC)
        left = allowed - caller.reserved - self._ledger.spent_tokens(caller.id, _day(now))
        if left <= 0:
            raise RefusedRequest(
                429,
                "token_budget",
                f"the {allowed:,} tokens a day of this key are spent or reserved",
                fix="wait for a run of yours to end, or for midnight UTC",
                retry_after=1.0 if caller.running else _seconds_left(now),
            )
        bound = min(left, settings.budget.tokens or left)
        budget = settings.budget.model_copy(update={"tokens": bound})
        return settings.model_copy(update={"budget": budget}), bound

    def book(self, caller: Caller, tokens: int) -> None:
        """Counts what a run spent. Blocks. Raises `StorageFailed`."""
        if caller.scope.tokens is not None and tokens:
            self._ledger.add_spent(caller.id, _day(datetime.now(UTC)), tokens)


def _day(now: datetime) -> str:
    return f"{now:%Y-%m-%d}"


def _seconds_left(now: datetime) -> float:
    tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return (tomorrow - now).total_seconds()

"""Assignment of requests to the engine's slots, so that cached prefixes are reused.

A slot keeps the tokens of its last request. A request that goes on from them, or goes back
to a beginning of them (a pop), costs only what is new; one that has little in common with
them throws them away. Conversations and scorings therefore have slots of their own, and a
request goes where the most of what is held stays of use.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum


class SlotUse(Enum):
    """The two uses of a slot."""

    CONVERSATION = "conversation"
    SCORING = "scoring"


@dataclass
class _Slot:
    number: int
    use: SlotUse
    held: str = ""
    """The text of its last prompt."""
    used: int = 0
    """Order of its last use; a counter, not a clock."""


class SlotPool:
    """`pairs` slots for conversations (0, 1, …) and as many for scoring. Thread-safe."""

    def __init__(self, pairs: int) -> None:
        uses = [SlotUse.CONVERSATION] * pairs + [SlotUse.SCORING] * pairs
        self._free = [_Slot(number, use) for number, use in enumerate(uses)]
        self._count = len(uses)
        self._changed = threading.Condition()
        self._taken = 0

    @contextmanager
    def take_slot(self, use: SlotUse, prompt: str) -> Iterator[int]:
        """Lends a slot's number for as long as the block runs; waits until one is free."""
        with self._changed:
            while not (fit := [slot for slot in self._free if slot.use is use]):
                self._changed.wait()
            # Else the one that was used longest ago: what it holds is the least likely to go on.
            slot = self._find_continued(prompt) or min(fit, key=lambda slot: slot.used)
            self._free.remove(slot)
            self._taken += 1
            slot.held, slot.used = prompt, self._taken
        try:
            yield slot.number
        finally:
            with self._changed:
                self._free.append(slot)
                self._changed.notify_all()

    def count_taken(self) -> int:
        """Counts the slots that are lent now."""
        return self._count - len(self._free)

    def holds_prompt(self, prompt: str) -> bool:
        """Returns whether a free slot has read all of the prompt."""
        with self._changed:
            return any(slot.held.startswith(prompt) for slot in self._free)

    def _find_continued(self, prompt: str) -> _Slot | None:
        """Finds the slot that holds the most of the prompt, if it would keep half of what it holds.

        Of either use: a text scored where it was said belongs in its conversation's slot.
        """
        shared = [(shared_prefix(slot.held, prompt), slot) for slot in self._free]
        length, best = max(shared, key=lambda pair: (pair[0], pair[1].used))
        wins = length and length * 2 >= max(len(best.held), len(prompt))
        return best if wins else None


def shared_prefix(one: str, other: str) -> int:
    """Counts the characters that both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low

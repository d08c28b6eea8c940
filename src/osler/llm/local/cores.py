"""How many cores are idle: a question that is alone on the machine may have them all.

An engine's threads wait for each other by spinning, so that one thread more than there are
free cores makes it many times slower, not quicker. Without a way to look, none is taken
beyond those of the settings.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

_STAT = Path("/proc/stat")
_WINDOW = 0.2
"""Seconds; over a shorter time the counters, which tick 100 times a second, say too little."""
_SPARE = 0.25
"""Cores that others may use while all are said to be idle."""


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    """Seconds of the clock; what follows is in core-seconds."""
    idle: float
    own: float


class CoreWatch:
    """Counts the cores that nobody else uses, from one look to the next."""

    def __init__(self) -> None:
        self._last = _look()
        self._free = 0

    def count_free(self) -> int:
        """Returns the cores that were idle, or ours, since the last look; 0 where that is not
        known, as at first.
        """
        last, now = self._last, _look()
        if last and now and now.at - last.at >= _WINDOW:
            free = (now.idle - last.idle + now.own - last.own) / (now.at - last.at)
            self._free, self._last = int(free + _SPARE), now
        return self._free


def _look() -> _Look | None:
    """Looks at the counters of the machine (Linux) and of this process."""
    try:
        fields = _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()
        idle = (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    return _Look(time.monotonic(), idle, time.process_time())

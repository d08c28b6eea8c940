"""Processor time of a call, without that of other processes."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import thread_time


def cpu_seconds(call: Callable[[], object], *, tries: int = 1) -> float:
    """Seconds of this thread's processor that the quickest of so many calls takes.

    The garbage collector waits: what it does depends on all that ran before.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return min(_once(call) for _ in range(tries))
    finally:
        if collects:
            gc.enable()


def _once(call: Callable[[], object]) -> float:
    began = thread_time()
    call()
    return thread_time() - began

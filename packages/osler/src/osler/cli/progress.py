"""Progress of long jobs: a bar on a terminal, a line every ten seconds elsewhere.

The lines go on while a single step takes its time, so that a job in a pipe is seen to be alive.
Nothing is shown of a job that is over within two seconds.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TextIO

from osler.cli.session import CliSession, ProgressMode
from osler.cli.words import say

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

# Seconds before the first sign of progress, and between two lines.
PATIENCE, INTERVAL = 2.0, 10.0
# Seconds between two looks at whether a line is due.
BEAT = 1.0

# Called with what is being done, how much of it is done, and the total if known.
Report = Callable[[str, int, int | None], None]
Clock = Callable[[], float]


class ProgressDisplay(Protocol):
    def show(self, stage: str, done: int, total: int | None) -> None: ...
    def close(self) -> None: ...


def resolve_mode(wanted: ProgressMode, *, terminal: bool) -> ProgressMode:
    """Resolves "auto" for this output."""
    if wanted == "auto":
        return "rich" if terminal else "plain"
    return wanted


@contextmanager
def show_progress(session: CliSession) -> Iterator[Report | None]:
    """The progress callback of a long job; `None` if progress is off."""
    mode = resolve_mode(session.progress, terminal=sys.stderr.isatty())
    # --quiet silences what was not asked for; an explicit --progress still holds.
    if mode == "none" or (session.quiet and session.progress == "auto"):
        yield None
        return
    display: ProgressDisplay
    if mode == "rich":
        display = BarDisplay(session)
    else:
        display = LineDisplay(sys.stderr, as_json=mode == "json")
    delayed = DelayedDisplay(display)
    try:
        # A bar counts its seconds by itself.
        with contextlib.nullcontext() if mode == "rich" else repeat_often(delayed.repeat_report):
            yield delayed.report_progress
    finally:
        display.close()


@contextmanager
def repeat_often(show: Callable[[], None]) -> Iterator[None]:
    """Shows the last report again and again: between two reports may lie minutes."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(BEAT):
            show()

    beat = threading.Thread(target=repeat, name="progress", daemon=True)
    beat.start()
    try:
        yield
    finally:
        over.set()
        beat.join()


@dataclass
class DelayedDisplay:
    """Passes reports on once the job has lasted for `PATIENCE` seconds."""

    display: ProgressDisplay
    clock: Clock = time.monotonic
    started: float = field(init=False)
    _latest: tuple[str, int, int | None] | None = None
    # Reports come from the job's thread and from the one that repeats them.
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def report_progress(self, stage: str, done: int, total: int | None) -> None:
        self._latest = (stage, done, total)
        self.repeat_report()

    def repeat_report(self) -> None:
        """Shows the last report again; nothing before the first."""
        with self._lock:
            if self._latest is not None and self.clock() - self.started >= PATIENCE:
                self.display.show(*self._latest)


@dataclass
class LineDisplay:
    """One line every `INTERVAL` seconds."""

    out: TextIO
    as_json: bool = False
    clock: Clock = time.monotonic
    # When each stage was first seen, and how much of it was done by then.
    _since: dict[str, tuple[float, int]] = field(default_factory=dict)
    _last: float | None = None
    # The last line's content, and what came too soon after it to have one of its own.
    _said: tuple[str, int, int | None] | None = None
    _unsaid: tuple[str, int, int | None] | None = None

    def show(self, stage: str, done: int, total: int | None) -> None:
        now = self.clock()
        # The rate counts from the first report, so what was done before does not inflate it.
        then, before = self._since.setdefault(stage, (now, done))
        self._unsaid = (stage, done, total)
        if self._last is not None and now - self._last < INTERVAL:
            return
        # Stages share the interval: many short ones write no more than one long one.
        self._last, self._said = now, self._unsaid
        rate = (done - before) / (now - then) if now > then else None
        self.out.write(self._format_line(stage, done, total, rate) + "\n")
        self.out.flush()

    def close(self) -> None:
        """Ends with how far the job came, where lines were written at all."""
        if self._unsaid is not None and self._unsaid != self._said:
            self.out.write(self._format_line(*self._unsaid, None) + "\n")
        self.out.flush()

    def _format_line(self, stage: str, done: int, total: int | None, rate: float | None) -> str:
        left = (total - done) / rate if total is not None and rate else None
        if self.as_json:
            return json.dumps(
                {
                    "stage": stage,
                    "done": done,
                    "total": total,
                    "per_second": None if rate is None else round(rate, 1),
                    "seconds_left": None if left is None else round(left),
                },
                ensure_ascii=False,
            )
        counted = f": {done:,}" + (f" of {total:,}" if total is not None else "")
        parts = [f"{say(stage)}{counted}" if done or total is not None else say(stage)]
        if rate:
            parts.append(say(f"{rate:,.1f}/s" if rate >= 0.1 else f"{1 / rate:,.0f} s each"))
        parts += [say(f"{left:,.0f} s left")] if left is not None else []
        return ", ".join(parts)


class BarDisplay:
    """A bar for each stage."""

    def __init__(self, session: CliSession) -> None:
        self._session = session
        self._bar: Bar | None = None
        self._tasks: dict[str, TaskID] = {}

    def show(self, stage: str, done: int, total: int | None) -> None:
        bar = self._bar or self._start_bar()
        if stage not in self._tasks:
            self._tasks[stage] = bar.add_task(say(stage), total=total)
        bar.update(self._tasks[stage], completed=done, total=total)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _start_bar(self) -> Bar:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._session.make_console(stderr=True),
            transient=True,
        )
        self._bar.start()
        return self._bar

"""One line while a run works: the step in plain words, how long it took so far, what is next."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from osler.cli.progress import INTERVAL, PATIENCE, repeat_often

if TYPE_CHECKING:
    from osler.trace import Event

# What is done, and what comes after it; empty where that is open.
Step = tuple[str, str]

# To the first column, and the rest of the line empty.
_AFRESH = "\r\x1b[2K"


def describe_step(event: Event) -> Step | None:
    """The step that begins with an event; `None` where the one before goes on."""
    from osler import trace

    match event:
        case trace.Started():
            return "reading the question", "a search"
        case trace.SourcesPlanned():
            sources = dict.fromkeys(query.source for query in event.queries)
            return f"planned what to ask of {_join_words([*sources])}", "a search"
        case trace.Searched():
            return f"searching {_join_words(event.sources)}", "reading what is found"
        case trace.Retrieved():
            found = f"reading {len(event.hits)} passages of {_join_words(_sources_of(event))}"
            return (found if event.hits else "nothing found there"), "the answer, or another search"
        case trace.FormsPlanned():
            return f"planned {len(event.nodes)} steps", "the first step"
        case trace.FormBegun():
            return f"step {event.n}: {event.question}", "its answer"
        case trace.FormSolved():
            return f"step {event.n} is done", "the next step, or the answer"
        case trace.Calculated():
            return "calculating", "the answer"
        case trace.Pushed() if event.kind == "Thought":
            return "thinking it over", "a search, or the answer"
        case trace.Pushed() if event.kind == "Conclusion":
            return "checking how sure the answer is", "the answer, or another look"
    return None


def _sources_of(event: object) -> list[str]:
    hits = getattr(event, "hits", ())
    return [*dict.fromkeys(hit.passage.partition(":")[0] for hit in hits)]


def _join_words(words: Sequence[str]) -> str:
    """Three at most: the line must fit."""
    more = f" and {len(words) - 3} more" if len(words) > 3 else ""
    return (", ".join(words[:3]) + more) or "what there is"


@dataclass
class WaitingLine:
    """On a terminal one line that is written over; elsewhere a line every `INTERVAL` seconds."""

    out: TextIO
    terminal: bool
    now: Step
    width: int = 100
    clock: Callable[[], float] = time.monotonic
    began: float = field(init=False)
    _said: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self._said = self.clock()

    def turn_to(self, event: Event) -> None:
        self.now = describe_step(event) or self.now
        self.show()

    def show(self) -> None:
        """Writes the line where it is due: nothing in the first seconds."""
        at = self.clock()
        if self.terminal and at - self.began >= PATIENCE:
            self.out.write(f"{_AFRESH}{self.line[: self.width - 1]}")
            self.out.flush()
        elif not self.terminal and at - self._said >= INTERVAL:
            self._said = at
            self.out.write(f"{self.line}\n")
            self.out.flush()

    def close(self) -> None:
        if self.terminal:
            self.out.write(_AFRESH)
            self.out.flush()

    @property
    def line(self) -> str:
        from osler.text import escape_controls

        step, then = self.now
        after = f"; next: {then}" if then else ""
        return escape_controls(f"{step}, {self.clock() - self.began:.0f} s{after}")


@contextmanager
def show_waiting(first: Step) -> Iterator[Callable[[Event], None]]:
    """The line on standard error; the callback takes each event of the run."""
    import shutil

    width = shutil.get_terminal_size().columns
    line = WaitingLine(sys.stderr, sys.stderr.isatty(), first, width)
    try:
        with repeat_often(line.show):
            yield line.turn_to
    finally:
        line.close()

"""A run's progress in a Jupyter notebook: one line that is written over until the answer is there.

    from osler.cli.notebook import NotebookProgress

    run = await osler.ask(settings, question, sink=NotebookProgress())

It needs no widget library: whatever shows HTML and replaces an output by its id shows it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from osler.cli.run_output import Step, describe_step
from osler.text import escape_controls
from osler.trace import Answered, DangerNoticed

if TYPE_CHECKING:
    from osler.trace import Event


class NotebookProgress:
    """A `sink` of `osler.ask`, for one run. Raises `ImportError` outside IPython."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        from IPython.display import display

        self._clock, self._began = clock, clock()
        self._now: Step = ("opening the knowledge base", "reading the question")
        self._danger, self._done = "", 0
        self._over = False
        # Empty where no notebook is connected: a plain interpreter.
        self._handle: Any = display(self, display_id=True)

    def __call__(self, event: Event) -> None:
        if isinstance(event, DangerNoticed):
            self._danger = event.notice.text
        self._over = self._over or isinstance(event, Answered)
        if step := describe_step(event):
            self._now, self._done = step, self._done + 1
        elif not (self._over or isinstance(event, DangerNoticed)):
            return  # the same step goes on
        if self._handle is not None:
            self._handle.update(self)

    def _repr_html_(self) -> str:
        """The words to somebody in danger first, then the step, the time, and what is next."""
        first = f'<p class="danger"><b>{_shown(self._danger)}</b></p>' if self._danger else ""
        if self._over:
            return f"{first}<p>{self._done} steps, {self._seconds:.1f} s</p>"
        step, then = self._now
        after = f"; next: {_shown(then)}" if then else ""
        return f"{first}<p><progress></progress> {_shown(step)}, {self._seconds:.0f} s{after}</p>"

    def __repr__(self) -> str:
        step = "done" if self._over else self._now[0]
        return f"{self._danger} {step}, {self._seconds:.0f} s".strip()

    @property
    def _seconds(self) -> float:
        return self._clock() - self._began


def _shown(text: str) -> str:
    return escape(escape_controls(text))

"""The two entries of a run: that it began, and what it showed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from osler.app.audit.entries import RUN_FILES, content_of, hash_file, write_entry
from osler.app.config import Settings
from osler.trace import Answered, Event, Retrieved, Sink
from osler.types import Question


class HeldAnswer:
    """Passes events on as they come, but for the answer: that waits until it is on record."""

    def __init__(self, sink: Sink | None, *, hold: bool) -> None:
        self._sink, self._hold = sink, hold
        self._held: list[Event] = []

    def __call__(self, event: Event) -> None:
        if self._hold and isinstance(event, Answered):
            self._held.append(event)
        elif self._sink is not None:
            self._sink(event)

    def release(self) -> None:
        for event in self._held:
            if self._sink is not None:
                self._sink(event)
        self._held.clear()


def begin_entry(settings: Settings, run: str, question: Question) -> None:
    """Written before a model is asked. Raises as `write_entry` does."""
    if settings.audit.log != "off":
        asked = content_of(settings, question.with_options)
        write_entry(settings, {"what": "run.begun", "run": run, "asked": asked})


def end_entry(
    settings: Settings,
    question: Question,
    facts: Mapping[str, Any],
    events: Sequence[Event],
    folder: Path | None,
) -> None:
    """What was shown, with the hashes of the run's files, where it was kept; before it is shown.

    Raises as `write_entry` does.
    """
    if settings.audit.log == "off":
        return
    answer = events[-1].solution.answer if isinstance(events[-1], Answered) else None
    found = (note.passage for one in events if isinstance(one, Retrieved) for note in one.hits)
    files = {} if folder is None else RUN_FILES
    write_entry(
        settings,
        {
            "what": "run",
            **facts,
            "asked": content_of(settings, question.with_options),
            "shown": content_of(settings, answer.text if answer else ""),
            "cited": [one.passage.id for one in answer.evidence] if answer else [],
            "found": sorted(set(found)),
            **{name: hash_file(folder / file) for name, file in files.items() if folder},
        },
    )
